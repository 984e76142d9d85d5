package filter

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/threeport/threeport-agent/internal/reload"
)

// Limits of a file of filters.
const (
	maxFilters = 100
	maxName    = 63      // bytes
	minBytes   = 16      // that Shorten leaves of a message
	maxBytes   = 4 << 10 // a report has no more
)

// Parse parses filters. Its error has one line for each mistake, with the file, the line and the number of the filter.
func Parse(files ...reload.File) (*Filters, error) {
	filters := &Filters{}
	lines := map[string]string{} // of the names
	var failed []error
	for _, file := range files {
		items, err := reload.Items(file, "filters")
		if err != nil {
			failed = append(failed, err)
		}
		for i, item := range items {
			at := fmt.Sprintf("%s:%d", file.Name, item.Line)
			f, err := parseFilter(item)
			if first, again := lines[f.decision.Filter]; err == nil && again {
				err = fmt.Errorf("the name %q is that of the filter at %s", f.decision.Filter, first)
			}
			if err != nil {
				failed = append(failed, fmt.Errorf("%s: filter number %d: %w", at, i+1, err))
				continue
			}
			lines[f.decision.Filter] = at
			if f.of == Objects {
				filters.objects = append(filters.objects, f)
			} else {
				filters.events = append(filters.events, f)
			}
		}
	}
	if n := filters.Len(); n > maxFilters {
		failed = append(failed, fmt.Errorf("there are %d filters: give %d at most", n, maxFilters))
	}
	return filters, errors.Join(failed...)
}

// fields are the fields of a filter in YAML.
type fields struct {
	Name      string  `yaml:"name"`
	Of        Subject `yaml:"of"`
	If        string  `yaml:"if"`
	Action    Action  `yaml:"action"`
	Bytes     int     `yaml:"bytes"`
	PerMinute int     `yaml:"perMinute"`
}

var fieldNames = []string{"name", "of", "if", "action", "bytes", "perMinute"}

func parseFilter(n *yaml.Node) (filter, error) {
	if n.Kind != yaml.MappingNode {
		return filter{}, fmt.Errorf("a filter is a mapping: give the fields %s", strings.Join(fieldNames, ", "))
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if name := n.Content[i].Value; !slices.Contains(fieldNames, name) {
			return filter{}, fmt.Errorf("%q is no field of a filter: give %s", name, strings.Join(fieldNames, ", "))
		}
	}
	f := fields{Of: Events}
	if err := n.Decode(&f); err != nil {
		if wrong, ok := errors.AsType[*yaml.TypeError](err); ok {
			err = errors.New(strings.Join(wrong.Errors, "; "))
		}
		return filter{}, err
	}
	if err := f.validate(); err != nil {
		return filter{}, err
	}
	environment := eventEnvironment
	if f.Of == Objects {
		environment = objectEnvironment
	}
	matches, err := compile(f.If, environment)
	if err != nil {
		return filter{}, fmt.Errorf("if: %w", err)
	}
	return filter{f.Of, Decision{Filter: f.Name, Action: f.Action, Bytes: f.Bytes, PerMinute: f.PerMinute}, matches}, nil
}

func (f fields) validate() error {
	if f.Action == Limit && f.Of == Objects {
		return errors.New("the action limit is of Events only: give report, drop or shorten")
	}
	return cmp.Or(f.validateTerms(), f.validateNumbers())
}

func (f fields) validateTerms() error {
	switch {
	case f.Name == "" || len(f.Name) > maxName:
		return fmt.Errorf("name is %q: give 1 to %d bytes", f.Name, maxName)
	case f.Of != Events && f.Of != Objects:
		return fmt.Errorf("of is %q: give events or objects", f.Of)
	case f.If == "":
		return errors.New(`if is missing: give a CEL expression, such as event.reason == "Pulled"`)
	case !slices.Contains([]Action{Report, Drop, Shorten, Limit}, f.Action):
		return fmt.Errorf("action is %q: give report, drop, shorten or limit", f.Action)
	}
	return nil
}

func (f fields) validateNumbers() error {
	switch {
	case f.Action == Shorten && (f.Bytes < minBytes || f.Bytes > maxBytes):
		return fmt.Errorf("bytes is %d: give the bytes that shorten leaves of a message, %d to %d", f.Bytes, minBytes, maxBytes)
	case f.Action != Shorten && f.Bytes != 0:
		return errors.New("bytes is for the action shorten only")
	case f.Action == Limit && f.PerMinute < 1:
		return fmt.Errorf("perMinute is %d: give the Events per minute that limit reports of a workload, at least 1", f.PerMinute)
	case f.Action != Limit && f.PerMinute != 0:
		return errors.New("perMinute is for the action limit only")
	}
	return nil
}
