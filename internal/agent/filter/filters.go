package filter

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/ext"
	corev1 "k8s.io/api/core/v1"
)

// Action is what happens to an Event that matches a filter.
type Action string

// The actions.
const (
	// Report exempts it from later filters.
	Report Action = "report"
	// Drop counts it only.
	Drop Action = "drop"
	// Shorten reports it with the beginning of its message.
	Shorten Action = "shorten"
	// Limit reports it as long as its workload has few of them, and counts it otherwise.
	Limit Action = "limit"
)

// Subject is what a filter is of.
type Subject string

// The subjects.
const (
	Events  Subject = "events"
	Objects Subject = "objects" // derived ones
)

// Decision is what the first matching filter says of an Event or an object.
type Decision struct {
	Filter    string // its name; empty if none matched
	Action    Action
	Bytes     int // of the message or cause that Shorten leaves
	PerMinute int // Events of a workload that Limit reports
}

// Filters are the filters of the user, in their order. Nil has none.
type Filters struct{ events, objects []filter }

type filter struct {
	of       Subject
	decision Decision
	matches  cel.Program
}

// Len is the number of filters.
func (f *Filters) Len() int {
	if f == nil {
		return 0
	}
	return len(f.events) + len(f.objects)
}

// Decide returns the decision of the first filter that matches an Event. An expression that fails does not match, and its error is
// returned too.
func (f *Filters) Decide(ev *corev1.Event) (Decision, error) {
	if f == nil || len(f.events) == 0 {
		return Decision{Action: Report}, nil
	}
	return first(f.events, map[string]any{"event": eventOf(ev)})
}

// DecideObject is Decide for a derived object.
func (f *Filters) DecideObject(o Object) (Decision, error) {
	if f == nil || len(f.objects) == 0 {
		return Decision{Action: Report}, nil
	}
	return first(f.objects, map[string]any{"object": o})
}

// first returns the decision of the first filter that matches.
func first(filters []filter, vars map[string]any) (d Decision, err error) {
	d = Decision{Action: Report}
	for _, filter := range filters {
		matched, _, failure := filter.matches.Eval(vars)
		if failure != nil {
			err = fmt.Errorf("filter %q: %w", filter.decision.Filter, failure)
			continue
		}
		if matched == types.True {
			return filter.decision, err
		}
	}
	return d, err
}

// event is an Event as expressions see it.
type event struct {
	Type      string   `cel:"type"`
	Reason    string   `cel:"reason"`
	Message   string   `cel:"message"`
	Namespace string   `cel:"namespace"`
	Component string   `cel:"component"`
	Object    involved `cel:"object"`
}

// involved is the object that an Event is about.
type involved struct {
	APIVersion string `cel:"apiVersion"`
	Kind       string `cel:"kind"`
	Namespace  string `cel:"namespace"`
	Name       string `cel:"name"`
}

// Object is a derived object as expressions see it.
type Object struct {
	Group     string `cel:"group"` // of its API; empty for the core group
	Kind      string `cel:"kind"`
	Namespace string `cel:"namespace"`
	Name      string `cel:"name"`
	Health    string `cel:"health"`
	Reason    string `cel:"reason"`
}

func eventOf(ev *corev1.Event) event {
	about := ev.InvolvedObject
	return event{
		Type: ev.Type, Reason: ev.Reason, Message: ev.Message, Namespace: ev.Namespace,
		Component: cmp.Or(ev.Source.Component, ev.ReportingController),
		Object:    involved{APIVersion: about.APIVersion, Kind: about.Kind, Namespace: about.Namespace, Name: about.Name},
	}
}

// Limits of expressions, so that a filter cannot stall the agent. The library of strings is left out, because CEL counts the same cost for
// its functions whatever they return.
const (
	maxExpression = 2048    // bytes
	maxCost       = 100_000 // of one evaluation, as CEL counts
)

var (
	eventEnvironment = sync.OnceValues(func() (*cel.Env, error) {
		return newEnvironment(cel.Variable("event", cel.ObjectType("filter.event")), reflect.TypeFor[event](), reflect.TypeFor[involved]())
	})
	objectEnvironment = sync.OnceValues(func() (*cel.Env, error) {
		return newEnvironment(cel.Variable("object", cel.ObjectType("filter.Object")), reflect.TypeFor[Object]())
	})
)

// newEnvironment returns an environment with a variable whose type is among the Go types.
func newEnvironment(variable cel.EnvOption, types ...any) (*cel.Env, error) {
	return cel.NewEnv(
		ext.NativeTypes(append(types, ext.ParseStructTags(true))...),
		variable,
		cel.ParserExpressionSizeLimit(maxExpression),
		cel.RegexProgramSizeLimit(1000),
		cel.ASTValidators(cel.ValidateRegexLiterals()),
	)
}

// compile returns the program of an expression, which has to give true or false.
func compile(text string, environment func() (*cel.Env, error)) (cel.Program, error) {
	env, err := environment()
	if err != nil {
		return nil, err
	}
	checked, issues := env.Compile(text)
	if issues.Err() != nil {
		var failed []string
		for _, e := range issues.Errors() {
			message, _, _ := strings.Cut(e.Message, "\n")
			failed = append(failed, fmt.Sprintf("column %d: %s", e.Location.Column()+1, message))
		}
		return nil, errors.New(strings.Join(failed, "; "))
	}
	if got := checked.OutputType(); !got.IsExactType(cel.BoolType) {
		return nil, fmt.Errorf("the expression gives %s, and has to give true or false", cel.FormatCELType(got))
	}
	return env.Program(checked, cel.CostLimit(maxCost), cel.EvalOptions(cel.OptOptimize))
}
