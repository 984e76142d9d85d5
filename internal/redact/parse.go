package redact

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/threeport/threeport-agent/internal/reload"
)

// Parse parses the rules of a user. Its error has one line for each mistake, with the file, the line and the number of the rule.
func Parse(files ...reload.File) (*Rules, error) {
	user, err := parseFiles(files)
	if err != nil {
		return nil, err
	}
	return newRules(user), nil
}

func parseFiles(files []reload.File) (layer, error) {
	var kept, redacted []*rule
	var failed []error
	for _, f := range files {
		nodes, err := reload.Items(f, "rules")
		if err != nil {
			failed = append(failed, err)
		}
		for i, n := range nodes {
			r, err := parseRule(n)
			switch {
			case err != nil:
				failed = append(failed, fmt.Errorf("%s:%d: rule number %d: %w", f.Name, n.Line, i+1, err))
			case r.action == keep:
				kept = append(kept, r)
			default:
				redacted = append(redacted, r)
			}
		}
	}
	return layer{newRuleSet(kept), newRuleSet(redacted)}, errors.Join(failed...)
}

// fields are the fields of a rule in YAML.
type fields struct {
	Group      *string  `yaml:"group"`
	Kinds      []string `yaml:"kinds"`
	Path       string   `yaml:"path"`
	Annotation string   `yaml:"annotation"`
	Except     string   `yaml:"except"`
	Action     action   `yaml:"action"`
	StatusOnly bool     `yaml:"statusOnly"`
}

var fieldNames = []string{"group", "kinds", "path", "annotation", "except", "action", "statusOnly"}

func parseRule(n *yaml.Node) (*rule, error) {
	if n.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("a rule is a mapping: give the fields %s", strings.Join(fieldNames, ", "))
	}
	var f fields
	for i := 0; i+1 < len(n.Content); i += 2 {
		if name := n.Content[i].Value; !slices.Contains(fieldNames, name) {
			return nil, fmt.Errorf("%q is no field of a rule: give %s", name, strings.Join(fieldNames, ", "))
		}
	}
	if err := n.Decode(&f); err != nil {
		return nil, err
	}
	return f.rule()
}

// rule checks the fields and returns the rule.
func (f fields) rule() (*rule, error) {
	switch {
	case f.Group == nil:
		return nil, errors.New(`group is missing: give the name of an API group, "" for the core group, or "*" for all`)
	case len(f.Kinds) == 0:
		return nil, errors.New(`kinds is missing: give a list of kinds, or ["*"] for all`)
	case f.Except != "" && f.Annotation == "":
		return nil, errors.New("except is for annotations only")
	}
	r := &rule{group: allOr(*f.Group), kind: allOr(strings.Join(f.Kinds, "|"))}
	var err error
	if r.action, err = f.effect(); err != nil {
		return nil, err
	}
	if f.Path != "" {
		r.path, err = parsePath(f.Path)
	} else {
		r.annotation, r.except = patternOf(f.Annotation), patternOf(f.Except)
	}
	return r, err
}

// effect returns the action of the one selection.
func (f fields) effect() (action, error) {
	selections := 0
	for _, given := range []bool{f.Path != "", f.Annotation != "", f.StatusOnly} {
		if given {
			selections++
		}
	}
	switch {
	case selections != 1:
		return "", errors.New("give exactly one of path, annotation and statusOnly: true")
	case f.StatusOnly && f.Action != "":
		return "", errors.New("statusOnly: true has no action")
	case f.StatusOnly:
		return statusOnly, nil
	case f.Action != drop && f.Action != hash && f.Action != keep:
		return "", fmt.Errorf("action is %q: give drop, hash or keep", f.Action)
	}
	return f.Action, nil
}

// patternOf returns a pattern; nil for none.
func patternOf(text string) *pattern {
	if text == "" {
		return nil
	}
	p := newPattern(text)
	return &p
}

// allOr returns a pattern; nil for "*".
func allOr(text string) *pattern {
	if text == "*" {
		return nil
	}
	p := newPattern(text)
	return &p
}
