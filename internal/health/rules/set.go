package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/threeport/threeport-agent/internal/health"
	"github.com/threeport/threeport-agent/internal/reload"
)

// File is the text of a file of rules.
type File = reload.File

// Set holds rules by kind. It does not change and is safe for concurrent use. The nil Set has no rules.
type Set struct {
	rules []*rule
	kinds map[schema.GroupKind][]*rule
}

// Parse reads and checks rules. The error is of type Errors and has all errors.
func Parse(files ...File) (*Set, error) {
	s, all := define(files)
	for _, r := range s.rules {
		all = append(all, r.compile()...)
	}
	if len(all) > 0 {
		slices.SortStableFunc(all, func(a, b *Error) int {
			return cmp.Or(strings.Compare(a.File, b.File), a.Line-b.Line, a.Column-b.Column)
		})
		return nil, all
	}
	return s, nil
}

// Define reads rules without compiling their expressions. A rule is compiled for its first object and takes little memory
// until then. It is for rules that were checked before. The error is of type Errors; the valid rules are returned too.
func Define(files ...File) (*Set, error) {
	s, all := define(files)
	if len(all) > 0 {
		return s, all
	}
	return s, nil
}

func define(files []File) (*Set, Errors) {
	s := &Set{kinds: map[schema.GroupKind][]*rule{}}
	var all Errors
	for _, file := range files {
		if isScript(file.Path) {
			if r, err := readScript(file); err != nil {
				all = append(all, err)
			} else {
				all = append(all, s.add(r)...)
			}
			continue
		}
		d := decoder{file: file.Name}
		rules := d.decode(file.Data)
		all = append(all, d.errors...)
		for _, r := range rules {
			all = append(all, s.add(r)...)
		}
	}
	return s, all
}

// add adds a rule. A second rule for a kind and a version is an error.
func (s *Set) add(r *rule) Errors {
	var errs Errors
	s.rules = append(s.rules, r)
	for _, name := range r.kinds {
		kind := schema.GroupKind{Group: r.group, Kind: name}
		if at := slices.IndexFunc(s.kinds[kind], r.overlaps); at >= 0 {
			other := s.kinds[kind][at]
			errs = append(errs, &Error{
				File: r.file, Line: r.line, Column: r.column, Rule: r.name,
				Text: fmt.Sprintf("there is a rule for %s already, at %s:%d:%d", ruleName(name, r.group), other.file, other.line, other.column),
			})
			continue
		}
		s.kinds[kind] = append(s.kinds[kind], r)
	}
	return errs
}

// overlaps reports whether two rules for a kind have a version in common, or are both for all versions. A script overlaps with
// any rule.
func (r *rule) overlaps(other *rule) bool {
	if r.script != nil || other.script != nil {
		return true
	}
	if len(r.versions) == 0 || len(other.versions) == 0 {
		return len(r.versions) == len(other.versions)
	}
	return slices.ContainsFunc(r.versions, func(v string) bool { return slices.Contains(other.versions, v) })
}

// Len returns the number of rules.
func (s *Set) Len() int {
	if s == nil {
		return 0
	}
	return len(s.rules)
}

// Judge assesses an object by the rule for its kind; false if there is none or no check holds.
func (s *Set) Judge(kind schema.GroupKind, object map[string]any, now time.Time) (health.Assessment, bool) {
	a, decision := s.Decide(kind, object, now)
	return a, decision != nil
}

// Decision describes how a verdict came about.
type Decision struct {
	Branch
	// When is the expression of the check; empty for else, and if no check decided.
	When string
	// Failed means that an expression or a script failed or cost too much.
	Failed bool
	// Script means that a script decided, and not a check.
	Script bool
}

// String names the check in a sentence.
func (d *Decision) String() string {
	rule := fmt.Sprintf("the rule for %s at %s:%d", d.Rule, d.File, d.Line)
	if d.Script {
		rule = fmt.Sprintf("the script for %s at %s", d.Rule, d.File)
	}
	switch {
	case d.Script && !d.Failed:
		return rule
	case d.Check == 0 && d.Failed:
		return rule + ", which failed"
	case d.Check == 0:
		return rule + ": status.observedGeneration is behind metadata.generation"
	case d.When == "":
		return rule + ": no check applies"
	case d.Over:
		return fmt.Sprintf("%s, check %d, whose time is over: %s", rule, d.Check, d.When)
	}
	return fmt.Sprintf("%s, check %d: %s", rule, d.Check, d.When)
}

// Explain returns the decision on an object as text; empty if no rule applies.
func (s *Set) Explain(kind schema.GroupKind, object map[string]any, now time.Time) (decision string) {
	if _, d := s.Decide(kind, object, now); d != nil {
		return d.String()
	}
	return ""
}

// Branch is one path through a rule. Tests of the catalogue use it to find branches without a case.
type Branch struct {
	File string
	Line int    // of the rule
	Rule string // its kinds and its group
	// Check is the number of a check from 1, with else as the last; 0 if the object's generation or an error decided.
	Check int
	// Over means that the time of until has passed and then applies.
	Over bool
}

// Decide assesses like Judge and also returns the decision; nil if no rule applies.
func (s *Set) Decide(kind schema.GroupKind, object map[string]any, now time.Time) (a health.Assessment, d *Decision) {
	if s == nil {
		return health.Assessment{}, nil
	}
	r := s.find(kind, object)
	if r == nil {
		return health.Assessment{}, nil
	}
	subject := subject{kind: kind, object: object, eval: newEvaluation(object, now), now: now}
	d = &Decision{Branch: Branch{File: r.file, Line: r.line, Rule: r.name}}
	defer func() {
		if p := recover(); p != nil { // cel-go may panic on unexpected objects
			a, d.Failed = r.failed(subject, "", fmt.Errorf("%v", p)), true
		}
	}()
	if r.script != nil {
		d.Script = true
		a, d.Failed = r.runScript(subject)
		return a, d
	}
	a, place, decided := r.decide(subject)
	if !decided {
		return health.Assessment{}, nil
	}
	if d.Check = place + 1; place >= 0 {
		c := r.checks[place]
		d.Over = c.then != "" && a.Status == c.then
		if c.source.when != nil {
			d.When = c.source.when.text
		}
	}
	d.Failed = place < 0 && a.Status == health.Unknown
	return a, d
}

// find returns the most specific rule for an object: for its kind, for all kinds of its group, or for a suffix of its
// group, the longest first.
func (s *Set) find(kind schema.GroupKind, object map[string]any) *rule {
	var found *rule
	eachCandidate(kind, func(name schema.GroupKind) bool {
		found = byVersion(s.kinds[name], object)
		return found != nil
	})
	return found
}

// eachCandidate tries the names under which there may be rules for a kind, the most exact first, until one is right.
func eachCandidate(kind schema.GroupKind, right func(schema.GroupKind) bool) {
	for group, rest := kind.Group, kind.Group; ; group = "*." + rest {
		if right(schema.GroupKind{Group: group, Kind: kind.Kind}) || right(schema.GroupKind{Group: group, Kind: "*"}) {
			return
		}
		var more bool
		if _, rest, more = strings.Cut(rest, "."); !more {
			return
		}
	}
}

// byVersion returns the rule for the version of an object, or else the rule for all versions.
func byVersion(candidates []*rule, object map[string]any) *rule {
	apiVersion, _ := object["apiVersion"].(string)
	version := apiVersion[strings.LastIndexByte(apiVersion, '/')+1:]
	var general *rule
	for _, r := range candidates {
		if slices.Contains(r.versions, version) {
			return r
		}
		if len(r.versions) == 0 {
			general = r
		}
	}
	return general
}

// Covers reports whether there may be a rule for a kind.
func (s *Set) Covers(kind schema.GroupKind) bool {
	if s == nil {
		return false
	}
	covered := false
	eachCandidate(kind, func(name schema.GroupKind) bool {
		covered = len(s.kinds[name]) > 0
		return covered
	})
	return covered
}

// Branches returns all branches through checks. It is for tests of the catalogue.
func (s *Set) Branches() []Branch {
	var out []Branch
	for _, r := range s.rules {
		for i, c := range r.checks {
			b := Branch{File: r.file, Line: r.line, Rule: r.name, Check: i + 1}
			out = append(out, b)
			if c.then != "" {
				b.Over = true
				out = append(out, b)
			}
		}
	}
	return out
}

// Kinds returns the kinds with a rule, sorted.
func (s *Set) Kinds() []schema.GroupKind {
	var out []schema.GroupKind
	for kind := range s.kinds {
		out = append(out, kind)
	}
	slices.SortFunc(out, func(a, b schema.GroupKind) int { return strings.Compare(a.String(), b.String()) })
	return out
}
