// Package health judges objects: does it run, and if not, why? Everything here is pure: no I/O, no clock.
package health

import (
	"fmt"
	"slices"
	"strings"
)

// Status is a verdict in one word.
type Status string

// The words, as the control-plane API's users read them.
const (
	// Healthy means that it runs as declared, or that it is there and there is nothing to run.
	Healthy Status = "Healthy"
	// Unknown means that there is no signal to judge by. It is never dressed as Healthy.
	Unknown Status = "Unknown"
	// Reconciling means that it is on its way.
	Reconciling Status = "Reconciling"
	// Unhealthy means that it works in part, or that something is wrong.
	Unhealthy Status = "Unhealthy"
	// Down means that nothing of it works.
	Down Status = "Down"
)

// order is from best to worst.
var order = []Status{Healthy, Unknown, Reconciling, Unhealthy, Down}

// Completed is the reason of what is Healthy because it ran to its end, and has nothing left to run.
const Completed = "Completed"

// Verdict is a status with its cause.
type Verdict struct {
	Status Status
	// Reason is one CamelCase word; empty, or Completed, if Healthy.
	Reason string
	// Message is a sentence for a person; empty if Healthy.
	Message string
}

// Worst returns the worst of some verdicts, the first of equals; Healthy if there are none. One that says
// nothing counts as Unknown.
func Worst(verdicts ...Verdict) Verdict {
	worst := Verdict{Status: Healthy}
	for _, v := range verdicts {
		if !slices.Contains(order, v.Status) {
			v = Verdict{Unknown, "NotJudged", "there is no verdict"}
		}
		if slices.Index(order, v.Status) > slices.Index(order, worst.Status) {
			worst = v
		}
	}
	return worst
}

// Derived sums up the verdicts on the objects that descend from a resource.
type Derived struct {
	// Healthy is how many of them are.
	Healthy int
	// Failing counts those that are Unhealthy or Down by their verdict, names left out.
	Failing map[Verdict]int
}

// Combine judges a resource by itself and by what descends from it: a Deployment that is on its way, and
// whose pods crash, is not on its way. What has completed is not changed by the tries that failed before.
func Combine(own Verdict, derived Derived) Verdict {
	if len(derived.Failing) == 0 || own.Status == Down || own.Status == Healthy && own.Reason == Completed {
		return own
	}
	cause, count := derived.cause()
	v := Verdict{Status: Unhealthy, Reason: cause.Reason}
	if (own.Status == Reconciling || own.Status == Unhealthy) && derived.Healthy == 0 {
		v.Status = Down
	}
	v.Message = fmt.Sprintf("%d × %s", count, cause.Message)
	if own.Message != "" {
		v.Message = own.Message + " ← " + v.Message
	}
	return v
}

// cause returns the most frequent failure; of equals the one whose text sorts first.
func (d Derived) cause() (Verdict, int) {
	var cause Verdict
	count := 0
	for v, n := range d.Failing {
		if n > count || n == count && strings.Compare(v.Reason+v.Message, cause.Reason+cause.Message) < 0 {
			cause, count = v, n
		}
	}
	return cause, count
}
