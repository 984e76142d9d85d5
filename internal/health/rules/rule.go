package rules

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/google/cel-go/cel"
	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/threeport/threeport-agent/internal/health"
	"github.com/threeport/threeport-agent/internal/health/luascript"
)

// Reasons of verdicts that no check gives.
const (
	// RuleFailed is the reason of Unknown if an expression fails.
	RuleFailed = "RuleFailed"
	// ruleTooExpensive is the reason of Unknown if the expressions cost too much.
	ruleTooExpensive = "RuleTooExpensive"

	specNotObserved = "SpecNotObserved"
)

// maxDetail bounds the text that a message quotes from the object, in bytes.
const maxDetail = 512

// rule assesses the objects of some kinds of a group.
type rule struct {
	name         string
	file         string
	line, column int
	content      string // of the file, for positions in expressions; empty once they are compiled

	group           string
	kinds           []string
	versions        []string // empty for all
	checkGeneration bool     // it is not asked as long as the controller has not seen the latest spec
	checks          []*check // the one without a condition, if there is one, is the last

	script *luascript.Script // instead of checks; nil for a rule in CEL

	once   sync.Once
	errors Errors
}

// sourceExpression is an expression that is not compiled, with the position and the style of its scalar.
type sourceExpression struct {
	text         string
	line, column int
	style        yaml.Style
}

// check gives a verdict if its condition holds.
type check struct {
	line      int
	status    health.Status
	reason    string
	message   string
	condition string        // the type of the condition for reason, detail and since
	then      health.Status // the status after until; empty to continue with the next check

	// The expressions, before and after they are compiled; nil for none. Only else has no when.
	source                                 struct{ when, reasonFrom, detail, since, until *sourceExpression }
	when, reasonFrom, detail, since, until *expression
}

// compile compiles the expressions of a rule, once.
func (r *rule) compile() Errors {
	r.once.Do(func() {
		for i, c := range r.checks {
			place := fmt.Sprintf("check %d", i+1)
			if c.source.when == nil {
				place = "else"
			}
			for _, x := range []struct {
				name   string
				source *sourceExpression
				want   *cel.Type
				to     **expression
			}{
				{"when", c.source.when, cel.BoolType, &c.when},
				{"reasonFrom", c.source.reasonFrom, cel.StringType, &c.reasonFrom},
				{"detail", c.source.detail, cel.StringType, &c.detail},
				{"since", c.source.since, cel.TimestampType, &c.since},
				{"until", c.source.until, cel.TimestampType, &c.until},
			} {
				if x.source != nil {
					*x.to = r.expression(place+", "+x.name, x.source, x.want)
				}
			}
		}
		r.content = "" // errors of later checks need no position
	})
	return r.errors
}

func (r *rule) expression(place string, x *sourceExpression, want *cel.Type) *expression {
	compiled, issues := compile(x.text, want)
	for _, i := range issues {
		e := &Error{File: r.file, Line: x.line, Column: x.column, Rule: r.name, Place: place, Text: i.text}
		if i.line > 0 {
			e.ExprLine, e.ExprColumn = i.line, i.column
			e.Line, e.Column = x.locate(r.content, i.line, i.column)
		}
		r.errors = append(r.errors, e)
	}
	return compiled
}

// subject is an object that a rule assesses.
type subject struct {
	kind   schema.GroupKind
	object map[string]any
	eval   *evaluation
	now    time.Time
}

// name returns the name of the object in a sentence.
func (s subject) name() string {
	if name, err := findText(s.object, []string{"metadata", "name"}); err == nil && name != "" {
		return s.kind.Kind + " " + name
	}
	return s.kind.Kind
}

// decide evaluates the checks in turn. It returns the index of the check that decided; -1 if the object's generation or an
// error did. It returns false if no check holds.
func (r *rule) decide(s subject) (a health.Assessment, place int, decided bool) {
	if errs := r.compile(); len(errs) > 0 {
		return r.failed(s, "", errs[0]), -1, true
	}
	if r.checkGeneration {
		behind, err := isBehind(s.object)
		if err != nil {
			return r.failed(s, "", err), -1, true
		}
		if behind {
			return assess(health.Reconciling, specNotObserved, "the controller of "+s.name()+" has not seen the latest spec yet"), -1, true
		}
	}
	for i, c := range r.checks {
		a, holds, err := c.evaluate(s)
		switch {
		case err != nil:
			where := fmt.Sprintf(", check %d", i+1)
			if c.when == nil {
				where = ", else"
			}
			return r.failed(s, where, err), -1, true
		case holds:
			return a, i, true
		}
	}
	return health.Assessment{}, -1, false
}

// failed returns the verdict on an object for which a rule fails.
func (r *rule) failed(s subject, where string, err error) health.Assessment {
	reason := RuleFailed
	if errors.Is(err, errTooExpensive) || errors.Is(err, luascript.ErrTooExpensive) {
		reason = ruleTooExpensive
	}
	return assess(health.Unknown, reason,
		fmt.Sprintf("%s cannot be judged by the rule %s%s: %s", s.name(), ruleName(s.kind.Kind, r.group), where, concise(err.Error())))
}

// isBehind reports whether the controller of the object has not observed its latest spec. An observed generation that is no number, such
// as a hash, does not count.
//
// Source: metadata.generation and status.observedGeneration, API conventions, "Typical status properties".
func isBehind(object map[string]any) (bool, error) {
	v, err := find(object, []string{"status", "observedGeneration"})
	if err != nil {
		return false, err
	}
	observed, ok := wholeNumber(v)
	if !ok {
		return false, nil
	}
	generation, _, err := findNumber(object, []string{"metadata", "generation"})
	return observed < generation, err
}

// evaluate assesses an object by a check, if it holds.
func (c *check) evaluate(s subject) (a health.Assessment, holds bool, err error) {
	if c.when != nil {
		if holds, err = s.eval.bool(c.when); err != nil || !holds {
			return a, false, err
		}
	}
	status, over := c.status, false
	if c.until != nil {
		until, err := s.eval.time(c.until)
		if err != nil {
			return a, false, err
		}
		if over = !until.IsZero() && !s.now.Before(until); !over {
			a.Recheck = until
		} else if status = c.then; status == "" {
			return a, false, nil
		}
	}
	a.Since = c.sinceTime(s)
	a.Status = status
	switch {
	case c.isPlainHealthy():
		a.Reason = c.reason
	case status != health.Healthy || c.then == "":
		a.Reason, a.Message = c.texts(s, over)
	}
	return a, true, nil
}

// isPlainHealthy reports whether the check gives Healthy without a message. With the reason of an idle object it has one.
func (c *check) isPlainHealthy() bool {
	return c.status == health.Healthy && c.then == "" && (c.reason == "" || c.reason == health.Completed)
}

// texts returns reason and message. The rule's own texts replace those that the object lacks.
func (c *check) texts(s subject, over bool) (reason, message string) {
	var found Condition
	if c.condition != "" {
		found, _ = findCondition(s.object, c.condition) // an error affects only the texts
	}
	reason, detail := found.Reason, found.Message
	if c.reasonFrom != nil {
		reason, _ = s.eval.text(c.reasonFrom)
	}
	if c.detail != nil {
		detail, _ = s.eval.text(c.detail)
	}
	if !camelCase.MatchString(reason) {
		reason = c.reason
	}
	message = s.name() + " " + c.message
	if over && c.status == health.Reconciling {
		message += " for too long"
	}
	if detail = concise(detail); detail != "" {
		message += ": " + detail
	}
	return reason, message
}

func (c *check) sinceTime(s subject) time.Time {
	var since time.Time
	var err error
	switch {
	case c.since != nil:
		since, err = s.eval.time(c.since)
	case c.condition != "":
		var found Condition
		found, err = findCondition(s.object, c.condition)
		since = found.LastTransitionTime
	}
	if err != nil {
		return time.Time{}
	}
	return since
}

func assess(status health.Status, reason, message string) health.Assessment {
	return health.Assessment{Verdict: health.Verdict{Status: status, Reason: reason, Message: message}}
}

// concise returns a text as one line of bounded length.
func concise(text string) string {
	if len(text) > 8*maxDetail {
		text = text[:8*maxDetail]
	}
	text = strings.ToValidUTF8(strings.Join(strings.Fields(text), " "), "")
	if len(text) > maxDetail {
		text = strings.ToValidUTF8(text[:maxDetail], "") + "…"
	}
	return strings.TrimSuffix(text, ".")
}
