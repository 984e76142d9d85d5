// Package health assesses Kubernetes objects: whether they work and, if not, why. It is pure: it does no I/O, and its
// only clock is the time that the caller gives.
//
// [Object] and [Pod] assess an object by itself. [Dependents] adds the objects that descend from it: a Deployment whose
// pods crash is not Reconciling. [Forest] does both for a set of objects. Each rule names the API field or the convention
// that it reads. A kind without a rule is assessed by its whole status; the words for that are in lexicon_tables.go.
package health

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Status is a verdict in one word, as users of the control-plane API read it.
type Status string

const (
	// Healthy means that the object works as declared, or that it exists and has nothing to run, or that it is suspended on request.
	Healthy Status = "Healthy"
	// Unknown means that the object gives no signal. It is never reported as Healthy.
	Unknown Status = "Unknown"
	// Reconciling means that the object approaches its desired state within a deadline.
	Reconciling Status = "Reconciling"
	// Unhealthy means that the object works in part, or that something is wrong.
	Unhealthy Status = "Unhealthy"
	// Down means that no part of the object works.
	Down Status = "Down"
)

// statusOrder has the statuses from best to worst.
var statusOrder = []Status{Healthy, Unknown, Reconciling, Unhealthy, Down}

// worse reports whether a status is worse than another.
func worse(a, b Status) bool { return slices.Index(statusOrder, a) > slices.Index(statusOrder, b) }

// IsFault reports whether the status is worse than Reconciling: Unhealthy or Down. Events about a fault are of the type Warning.
func (s Status) IsFault() bool { return worse(s, Reconciling) }

// Completed is the reason of an object that is Healthy because it has run to its end.
const Completed = "Completed"

// Reasons of an object that wants no pod. It is idle.
const (
	ScaledToZero   = "ScaledToZero"
	NoNodeSelected = "NoNodeSelected" // of a DaemonSet
)

// idle reports whether an object is Healthy although it does not run, or is not reconciled, because somebody wants it so.
func (v Verdict) idle() bool { return v.Status == Healthy && v.Reason != "" && v.Reason != Completed }

// wantsNoPod reports whether an object is idle because no pod is wanted.
func (v Verdict) wantsNoPod() bool {
	return v.Status == Healthy && (v.Reason == ScaledToZero || v.Reason == NoNodeSelected)
}

// Verdict is a status with its reason.
type Verdict struct {
	Status Status
	// Reason is one CamelCase word. If Healthy, it is Completed, that of an idle object such as ScaledToZero or Suspended, or empty.
	Reason string
	// Message is a sentence for a person; empty if Healthy, unless the object is idle. Of an aggregate, it is the rendered cause.
	Message string
}

// HasCompleted reports whether an object has run to its end.
func (v Verdict) HasCompleted() bool { return v.Status == Healthy && v.Reason == Completed }

// NotChecked is the reason of a listed resource that is deliberately not read. It does not count in the verdict on its workload.
const NotChecked = "NotChecked"

// NothingListed is the verdict on a ThreeportWorkload that lists no resources.
var NothingListed = Verdict{Unknown, "NothingListed", "spec.workloadResourceInstances is empty"}

// PodPhase is the state of a pod as far as it counts for its owners.
type PodPhase uint8

const (
	// NotServing is a pod that does not work, or not yet. It is the zero value: a Healthy object counts as Serving then.
	NotServing PodPhase = iota
	// Serving is a pod that is ready, even if something is wrong with it.
	Serving
	// Restarting is a pod that has failed and is started again.
	Restarting
	// Overdue is a pod whose start exceeds the startup limit. The deadline of its owner takes precedence.
	Overdue
	// Terminating is a pod that is being deleted, within its grace period.
	Terminating
	// Ended is a pod that ran and does not run again.
	Ended
)

// Assessment is the verdict on an object with its times and its phase.
type Assessment struct {
	Verdict
	// Phase counts for the owners of a pod.
	Phase PodPhase
	// Subject names the object, such as "Deployment web", for a verdict without a message; [Pod] leaves it empty.
	Subject string
	// Revision is the ReplicaSet that a Deployment rolls out, or the ControllerRevision that a StatefulSet rolls out. That of a
	// Pod is its ControllerRevision. It is empty if it is not known, and for other kinds.
	Revision string
	// WithoutTimeout is the message for the case that the pods do not confirm a timeout that was inferred from the object
	// alone; empty if no timeout was inferred.
	WithoutTimeout string
	// Since is when the state began; zero if the object does not record it.
	Since time.Time
	// Recheck is when a deadline ends, so that the object has to be assessed again without a change; zero for never.
	Recheck time.Time
}

// Context is the input of an assessment beside the object.
type Context struct {
	// Now is the time of the assessment.
	Now time.Time
	// Warning is the latest Event of type Warning about the object; zero if there is none. It counts only until the object
	// shows that the fault is over.
	Warning Warning
	// Rules take precedence over the built-in ones; nil for none.
	Rules Rules
	// Trace collects how the verdict comes about; nil for no trace.
	Trace *Trace
}

// Rules are rules that are not built in.
type Rules interface {
	// Judge assesses an object by a rule for its kind; false if no rule applies.
	Judge(kind schema.GroupKind, object map[string]any, now time.Time) (Assessment, bool)
	// Covers reports whether there may be a rule for a kind. Callers ask first, because the conversion of an object for
	// Judge may take longer than the assessment.
	Covers(kind schema.GroupKind) bool
}

// Explainer are Rules that can name the rule and the check that decide on an object; empty if no rule applies.
type Explainer interface {
	Explain(kind schema.GroupKind, object map[string]any, now time.Time) (decision string)
}

// Warning is the content of an Event of type Warning.
type Warning struct {
	Reason, Message string
	Time            time.Time // the latest occurrence
}

// Worst returns the worst of some verdicts, the first of equals; Healthy if there are none. A verdict without a known
// status counts as Unknown.
func Worst(verdicts ...Verdict) Verdict {
	worst := Verdict{Status: Healthy}
	for i, v := range verdicts {
		if !slices.Contains(statusOrder, v.Status) {
			v = Verdict{Unknown, "NotJudged", "there is no verdict"}
		}
		if i == 0 || worse(v.Status, worst.Status) {
			worst = v
		}
	}
	return worst
}
