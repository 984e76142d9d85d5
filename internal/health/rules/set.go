package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/threeport/threeport-agent/internal/health"
)

// File is the text of a file of rules.
type File struct {
	Name string // as errors call it
	Data []byte
}

// Set are rules for kinds. It does not change, and is safe for concurrent use. The nil Set has no rules.
type Set struct {
	rules []*rule
	kinds map[schema.GroupKind][]*rule
}

// Parse reads and checks rules. An error is Errors, with all that is wrong.
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

// Define reads rules without their expressions: those of a rule are compiled when an object is judged by it first, and
// until then take no memory. It is for rules that have been checked before. An error is Errors, and comes with the
// rules that can be read.
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
		d := decoder{file: file.Name}
		rules := d.decode(file.Data)
		all = append(all, d.errors...)
		for _, r := range rules {
			all = append(all, s.add(r)...)
		}
	}
	return s, all
}

// add puts in a rule, unless there is one for the same kind and version.
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

// overlaps reports whether two rules for a kind are for the same version, or both for all that have none of their own.
func (r *rule) overlaps(other *rule) bool {
	if len(r.versions) == 0 || len(other.versions) == 0 {
		return len(r.versions) == len(other.versions)
	}
	return slices.ContainsFunc(r.versions, func(v string) bool { return slices.Contains(other.versions, v) })
}

// Len returns how many rules there are.
func (s *Set) Len() int {
	if s == nil {
		return 0
	}
	return len(s.rules)
}

// Judge judges an object by the rule for its kind; false if there is none, or it does not apply.
func (s *Set) Judge(kind schema.GroupKind, object map[string]any, now time.Time) (health.Assessment, bool) {
	a, decision := s.Explain(kind, object, now)
	return a, decision != nil
}

// Decision tells what decided.
type Decision struct {
	Branch
	// Failed means that an expression could not be evaluated, or the rule costs too much.
	Failed bool
}

// Branch is one way through a rule. The catalogue's tests look by it for ways that no case goes.
type Branch struct {
	File string
	Line int    // where the rule stands
	Rule string // its kinds and its group
	// Check is the number of a check, from 1, or of the else behind them; 0 for what comes before them: the object's
	// generation, and errors.
	Check int
	// Over means that the time of a check's until has come, and its then holds.
	Over bool
}

// Explain judges like Judge, and tells by what; nil if no rule applies. Outside it is for the catalogue's tests.
func (s *Set) Explain(kind schema.GroupKind, object map[string]any, now time.Time) (a health.Assessment, d *Decision) {
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
		if p := recover(); p != nil { // an object that cel-go does not expect is no reason to end
			a, d.Failed = r.failed(subject, "", fmt.Errorf("%v", p)), true
		}
	}()
	a, place, decided := r.decide(subject)
	if !decided {
		return health.Assessment{}, nil
	}
	if d.Check = place + 1; place >= 0 {
		c := r.checks[place]
		d.Over = c.then != "" && a.Status == c.then
	}
	d.Failed = place < 0 && a.Status == health.Unknown
	return a, d
}

// find returns the rule for an object's kind; or else that for all kinds of its group; or else one for the groups that
// end like its own, the longest end first.
func (s *Set) find(kind schema.GroupKind, object map[string]any) *rule {
	var found *rule
	eachCandidate(kind, func(name schema.GroupKind) bool {
		found = byVersion(s.kinds[name], object)
		return found != nil
	})
	return found
}

// eachName tries the names under which there may be rules for a kind, the most exact first, until one is right.
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

// pick returns the rule for an object's version, or else the one for all versions.
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

// Branches returns all ways through the rules, without those before the checks. It is for the catalogue's tests.
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

// Kinds returns the kinds that there are rules for, sorted.
func (s *Set) Kinds() []schema.GroupKind {
	var out []schema.GroupKind
	for kind := range s.kinds {
		out = append(out, kind)
	}
	slices.SortFunc(out, func(a, b schema.GroupKind) int { return strings.Compare(a.String(), b.String()) })
	return out
}
