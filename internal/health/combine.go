package health

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// keepers keep a number of pods: one that has ended is replaced, and counts no more.
var keepers = map[schema.GroupKind]bool{
	{Group: "apps", Kind: "Deployment"}:  true,
	{Group: "apps", Kind: "ReplicaSet"}:  true,
	{Kind: "ReplicationController"}:      true,
	{Group: "apps", Kind: "StatefulSet"}: true,
	{Group: "apps", Kind: "DaemonSet"}:   true,
}

// Combine judges a resource by itself and by what descends from it: a Deployment that is on its way, and whose pods
// crash, is not on its way. What has completed is not changed by the tries that failed before. A resource without a kind
// is what belongs to a workload by its label alone. It takes as long as there are different causes, however many members.
func (f *Dependents) Combine(kind schema.GroupKind, own Assessment) Assessment {
	if len(f.members) == 0 || own.Status == Healthy && own.Reason == Completed {
		return own
	}
	if kind == serviceKind {
		return f.reachable(own)
	}
	own = f.inTime(kind, own)
	e := f.explain(kind, own)
	out := own
	out.Verdict = Verdict{Status: f.joint(kind, own, e.weight), Reason: own.Reason, Message: own.Message}
	if out.Status == Unknown && own.Status == Unknown && f.present() > 0 {
		ready := fmt.Sprintf("%d of %d pods ready", f.parts[Serving], f.present())
		out.Message = strings.Join(compact(own.Message, ready), "; ")
	}
	if e.group == nil || out.Status == Healthy {
		return out
	}
	// The cause is what the reason names, unless the resource says better why it is as bad.
	if worse(e.weight, Reconciling) && (own.Status != Down || keepers[kind]) || worse(e.weight, own.Status) {
		out.Reason, out.Since = e.Reason, e.group.since
	}
	out.Message = f.chain(own, e)
	return out
}

// inTime takes it back that a workload takes too long by what it tells alone: it may have been ready before, and begin
// again. How long its pods take is known of them.
func (f *Dependents) inTime(kind schema.GroupKind, own Assessment) Assessment {
	if !keepers[kind] || own.Phase != Late || f.present() == 0 {
		return own
	}
	own.Status, own.Phase, own.Since = Reconciling, Idle, time.Time{}
	own.Message = strings.TrimSuffix(own.Message, ", for more than "+spell(startup))
	return own
}

// explanation is the cause of a verdict.
type explanation struct {
	cause
	group  *group // nil if there is none
	weight Status // how bad it is for the resource
	more   int    // other causes as bad as this or nearly
}

// explain returns the worst cause; of equals the most frequent, of equals the one whose text sorts first. What does not
// count for the resource's status explains it still, if nothing else does.
func (f *Dependents) explain(kind schema.GroupKind, own Assessment) explanation {
	best := explanation{weight: Healthy}
	others := map[Verdict]bool{}
	for c, g := range f.groups {
		if c.kind != podKind.Kind || c.part == Leaving && !f.onlyLeaves(kind) {
			continue
		}
		e := explanation{cause: c, group: g, weight: f.weigh(kind, own, c)}
		if e.weight == Healthy && !worse(own.Status, Reconciling) {
			continue
		}
		if worse(c.Status, Reconciling) {
			others[c.Verdict] = true
		}
		if best.group == nil || compare(e, best) < 0 {
			best = e
		}
	}
	delete(others, best.Verdict)
	if best.group != nil && worse(best.Status, Reconciling) {
		best.more = len(others)
	}
	return best
}

// worst returns the cause that is worst by itself; nil if all members are Healthy.
func (f *Dependents) worst() (cause, *group) {
	var best explanation
	for c, g := range f.groups {
		if e := (explanation{cause: c, group: g}); best.group == nil || compare(e, best) < 0 {
			best = e
		}
	}
	return best.cause, best.group
}

func compare(a, b explanation) int {
	if a.weight != b.weight || a.Status != b.Status {
		if worse(a.weight, b.weight) || a.weight == b.weight && worse(a.Status, b.Status) {
			return -1
		}
		return 1
	}
	return cmp.Or(
		cmp.Compare(len(b.group.members), len(a.group.members)),
		cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Message, b.Message),
		cmp.Compare(a.kind, b.kind), cmp.Compare(a.via, b.via), cmp.Compare(a.part, b.part),
	)
}

// onlyLeaves reports whether all that belongs to a workload by its label alone is on its way out.
func (f *Dependents) onlyLeaves(kind schema.GroupKind) bool {
	return kind == schema.GroupKind{} && f.parts[Leaving] == f.kinds[podKind.Kind].Total
}

// weigh returns how bad a cause is for a resource; Healthy if it does not count.
func (f *Dependents) weigh(kind schema.GroupKind, own Assessment, c cause) Status {
	switch {
	case own.Reason == "Terminating" && c.Reason != terminatingTooLong:
		return Healthy // they go with it
	case c.part == Leaving:
		if f.onlyLeaves(kind) {
			return Reconciling
		}
		return Healthy
	case c.part == Ended:
		if f.isMadeUpFor(kind, c) {
			return Healthy
		}
	case c.part == Late && hasDeadline(kind, own):
		return Reconciling
	case kind == cronJobKind || isFromJob(c.via) && kind != jobKind:
		return weighRun(c)
	case kind == jobKind && isTry(c):
		return Unhealthy // it has more
	}
	return c.Status
}

// hasDeadline reports whether a resource has a deadline of its own, which is not over: how long its pods take does not
// count.
func hasDeadline(kind schema.GroupKind, own Assessment) bool {
	if kind.Group != "apps" || kind.Kind != "Deployment" || own.Status != Reconciling {
		return false
	}
	return own.Reason != replicasMissing || !own.Recheck.IsZero()
}

// weighRun returns how bad the state of a run is for what runs from time to time: that it starts is an ordinary thing,
// and there will be others.
func weighRun(c cause) Status {
	if worse(c.Status, Reconciling) {
		return Unhealthy
	}
	return Healthy
}

// isTry reports whether a pod fails as a Job allows it to: its program does. One that cannot start at all does not count
// as a try.
func isTry(c cause) bool { return c.part == Trying || c.Status == Unhealthy }

// isMadeUpFor reports whether it is over that a pod failed: another was made in its place, or it was but a try.
func (f *Dependents) isMadeUpFor(kind schema.GroupKind, c cause) bool {
	switch {
	case keepers[kind]:
		return f.present() > 0
	case kind == jobKind || kind == cronJobKind:
		return true // they count their failures
	}
	return c.via != "" && f.works[c.via] > 0
}

// joint returns the status of a resource, with the weight of the worst cause.
func (f *Dependents) joint(kind schema.GroupKind, own Assessment, weight Status) Status {
	if !worse(weight, Reconciling) {
		if worse(own.Status, weight) {
			return own.Status
		}
		return weight
	}
	switch {
	case own.Status == Down:
		return Down
	case kind == cronJobKind, f.parts[Serving] > 0, !keepers[kind] && len(f.works) > 0:
		return Unhealthy
	case own.Status == Healthy && kind != (schema.GroupKind{}):
		return Unhealthy // it says that it works, and its status may only lag behind
	case kind == jobKind, own.Status == Unknown, kind == schema.GroupKind{}:
		return weight
	}
	return Down
}

// How long a message may become, by its parts, in bytes.
const (
	maxHead  = 500
	maxVia   = 300
	maxCause = 500
)

// chain tells of a resource and the cause of its state: "Deployment web has 0 of 5 replicas ready ← ReplicaSet web-78 ←
// 5 pods ImagePullBackOff: image example/app:9 cannot be pulled, since 2026-01-01T10:02Z".
func (f *Dependents) chain(own Assessment, e explanation) string {
	head := own.Message
	if head == "" {
		head = own.Subject
	}
	text := strings.Join(compact(bounded(head, maxHead), bounded(e.via, maxVia), f.describe(e.cause, e.group)), " ← ")
	switch {
	case e.more == 1:
		text += "; and 1 other cause"
	case e.more > 1:
		text += fmt.Sprintf("; and %d other causes", e.more)
	}
	return text
}

// describe tells of a group: "5 pods ImagePullBackOff: image example/app:9 cannot be pulled, since 2026-01-01T10:02Z".
func (f *Dependents) describe(c cause, g *group) string {
	text := fmt.Sprintf("%d %ss", len(g.members), strings.ToLower(c.kind))
	if len(g.members) == 1 {
		for uid := range g.members {
			text = c.kind + " " + f.members[uid].Name
		}
	}
	text += " " + c.Reason
	if c.Message != "" {
		text += ": " + c.Message
	}
	text = bounded(text, maxCause)
	if !g.since.IsZero() {
		text += ", since " + g.since.UTC().Format("2006-01-02T15:04Z")
	}
	return text
}

// compact returns the texts that are not empty.
func compact(texts ...string) []string {
	var out []string
	for _, text := range texts {
		if text != "" {
			out = append(out, text)
		}
	}
	return out
}
