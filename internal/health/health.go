// Package health judges objects: does it run, and if not, why? Everything here is pure: no I/O, and no clock but the
// time that the caller gives.
//
// [Object] and [Pod] judge an object by itself. A [Dependents] adds what descends from it: a Deployment that is on its
// way, and whose pods crash, is not on its way. Each rule names the API field or convention that it reads.
package health

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Status is a verdict in one word.
type Status string

// The words, as the control-plane API's users read them.
const (
	// Healthy means that it runs as declared, or that it is there and there is nothing to run.
	Healthy Status = "Healthy"
	// Unknown means that there is no signal to judge by. It is never dressed as Healthy.
	Unknown Status = "Unknown"
	// Reconciling means that it is on its way, and within its own deadline or a reasonable one; or that it rests because
	// somebody wants it to.
	Reconciling Status = "Reconciling"
	// Unhealthy means that it works in part, or that something is wrong.
	Unhealthy Status = "Unhealthy"
	// Down means that nothing of it works.
	Down Status = "Down"
)

// order is from best to worst.
var statusOrder = []Status{Healthy, Unknown, Reconciling, Unhealthy, Down}

// worse reports whether a status is worse than another.
func worse(a, b Status) bool { return slices.Index(statusOrder, a) > slices.Index(statusOrder, b) }

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

// NothingListed is the verdict on a ThreeportWorkload that lists no resources.
var NothingListed = Verdict{Unknown, "NothingListed", "spec.workloadResourceInstances is empty"}

// PodPhase is what an object contributes to what it descends from.
type PodPhase uint8

const (
	// Idle is what does nothing yet, or nothing right. It is the zero value; what is Healthy counts as Serving then.
	NotServing PodPhase = iota
	// Serving is what is ready, though something may be wrong with it.
	Serving
	// Trying is what has failed, and is started again.
	Restarting
	// Late is what starts for longer than is reasonable. An owner with a deadline of its own knows better.
	Overdue
	// Leaving is what is being deleted, and within its grace.
	Terminating
	// Ended is what ran, and does not run again.
	Ended
)

// Assessment is a verdict with the times that belong to it.
type Assessment struct {
	Verdict
	// Phase is what it contributes to what it descends from.
	Phase PodPhase
	// Subject names it, such as "Deployment web", as far as its rule tells; for a verdict that has no message.
	Subject string
	// WithoutTimeout is the message for the case that the pods do not confirm a timeout that was inferred from the object
	// alone; empty if no timeout was inferred.
	WithoutTimeout string
	// Since is when it came to be so, as far as the object tells; else zero.
	Since time.Time
	// Recheck is when to judge again although nothing has changed, because a deadline is over then; zero for never.
	Recheck time.Time
}

// Context is what is known beside an object.
type Context struct {
	// Now is the time of the judgement.
	Now time.Time
	// Warning is the latest Event of type Warning about the object; zero if there is none. That it says something is
	// evidence of trouble only as long as the object does not show that the trouble is over.
	Warning Warning
	// Rules are asked first, before the built-in ones; nil for none.
	Rules Rules
}

// Rules are a user's own.
type Rules interface {
	// Judge judges an object by a rule for its kind; false if there is none that applies.
	Judge(kind schema.GroupKind, object map[string]any, now time.Time) (Assessment, bool)
	// Covers reports whether there may be a rule for a kind: to put an object in the form that rules read may take
	// longer than to judge it.
	Covers(kind schema.GroupKind) bool
}

// Warning is what an Event of type Warning says.
type Warning struct {
	Reason, Message string
	Time            time.Time // the latest time that it happened
}

// Worst returns the worst of some verdicts, the first of equals; Healthy if there are none. One that says
// nothing counts as Unknown.
func Worst(verdicts ...Verdict) Verdict {
	worst := Verdict{Status: Healthy}
	for _, v := range verdicts {
		if !slices.Contains(statusOrder, v.Status) {
			v = Verdict{Unknown, "NotJudged", "there is no verdict"}
		}
		if worse(v.Status, worst.Status) {
			worst = v
		}
	}
	return worst
}
