package health

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ResourceVerdict is the verdict on a listed resource. The zero reference is that of the objects that belong to a workload by its label
// alone.
type ResourceVerdict struct {
	ObjectRef
	Verdict
}

// Workload combines the verdicts on a workload's resources. It is the worst one. Its message also names the worst of the others that
// are not Healthy. If all are Healthy, it names an idle one. The verdicts on unchecked resources are only counted, unless there are no
// others. Without resources it is [NothingListed].
func Workload(resources []ResourceVerdict, unchecked ...ResourceVerdict) Verdict {
	switch {
	case len(resources) == 0 && len(unchecked) == 0:
		return NothingListed
	case len(resources) == 0:
		return Workload(unchecked)
	}
	at := indexOfWorst(resources, -1)
	worst := Worst(resources[at].Verdict)
	if worst.Status == Healthy {
		worst = firstIdle(resources)
	}
	message := nonEmpty(worst.Message)
	if worst.Status != Healthy && worst.Message == "" {
		message = append(message, resources[at].subject()+" is "+string(worst.Status))
	}
	message = append(message, nonEmpty(otherFaults(resources, at))...)
	switch n := len(unchecked); {
	case n == 1:
		message = append(message, "1 resource is not checked")
	case n > 1:
		message = append(message, fmt.Sprintf("%d resources are not checked", n))
	}
	worst.Message = strings.Join(message, "; ")
	return worst
}

// indexOfWorst returns the index of the worst resource except one, the first of equals; -1 if there is none. A Service without ready
// endpoints comes after others of its status, which may be the cause of that.
func indexOfWorst(resources []ResourceVerdict, except int) int {
	worst := -1
	for i, r := range resources {
		if i == except {
			continue
		}
		status, before := Worst(r.Verdict).Status, Status("")
		if worst >= 0 {
			before = Worst(resources[worst].Verdict).Status
		}
		if worst < 0 || worse(status, before) || status == before && resources[worst].lacksEndpoints() && !r.lacksEndpoints() {
			worst = i
		}
	}
	return worst
}

func (r ResourceVerdict) lacksEndpoints() bool {
	return r.Reason == noEndpoints || r.Reason == noReadyEndpoints
}

// otherFaults names the worst of the resources that are not Healthy, and counts the others. It leaves out one resource.
func otherFaults(resources []ResourceVerdict, except int) string {
	count := 0
	for i, r := range resources {
		if i != except && r.Status != Healthy {
			count++
		}
	}
	if count == 0 {
		return ""
	}
	worst := resources[indexOfWorst(resources, except)]
	switch subject := worst.subject(); {
	case count == 1 && worst.Status == Unknown:
		return subject + " is Unknown"
	case count == 1:
		return subject + " is not Healthy"
	case count == 2:
		return subject + " and 1 other are not Healthy"
	default:
		return fmt.Sprintf("%s and %d others are not Healthy", subject, count-1)
	}
}

// subject names the resource in a sentence.
func (r ResourceVerdict) subject() string {
	if r.ObjectRef == (ObjectRef{}) {
		return "an object with the label of the workload"
	}
	return ObjectRef{r.Kind, truncate(r.Name, maxName)}.String()
}

// firstIdle returns the verdict on Healthy resources: that on the first idle one, with the number of other idle ones.
func firstIdle(resources []ResourceVerdict) Verdict {
	out, others := Verdict{Status: Healthy}, -1
	for _, v := range resources {
		if !v.idle() {
			continue
		}
		if others++; others == 0 {
			out = v.Verdict
		}
	}
	if others > 0 {
		out.Message += fmt.Sprintf("; %d other idle %s", others, plural(int64(others), "resource"))
	}
	return out
}

// Aggregate is the verdict on a resource together with its dependents. Its message is the rendered cause, if it has one.
type Aggregate struct {
	Assessment
	// Cause explains the verdict by the dependents; zero if they do not explain it.
	Cause Cause
}

// replacesPods has the kinds that keep a number of Pods: they replace a Pod that has ended, so that it counts no more.
var replacesPods = map[schema.GroupKind]bool{
	{Group: "apps", Kind: "Deployment"}:  true,
	{Group: "apps", Kind: "ReplicaSet"}:  true,
	{Kind: "ReplicationController"}:      true,
	{Group: "apps", Kind: "StatefulSet"}: true,
	{Group: "apps", Kind: "DaemonSet"}:   true,
}

// Combine assesses a resource by itself and by its dependents: a Deployment whose Pods crash is not Reconciling. Failed
// Pods do not change a resource that has completed. The kind is empty for the objects that belong to a workload by
// its label alone. The assessments of the dependents come in through [Dependents.Set]. The time depends on the number of different
// causes, not on the number of dependents.
func (ds *Dependents) Combine(kind schema.GroupKind, self Assessment) Aggregate {
	if len(ds.byUID) == 0 || self.HasCompleted() {
		return Aggregate{Assessment: self}
	}
	if kind == serviceKind {
		return ds.combineService(self)
	}
	self = ds.clearTimeout(kind, self)
	e := ds.explain(kind, self)
	out := Aggregate{Assessment: self}
	out.Status = ds.status(kind, self, e.severity)
	if out.Status == Unknown && self.Status == Unknown && ds.activePods() > 0 {
		active := ds.activePods()
		ready := fmt.Sprintf("%d of %d %s ready", ds.phases[Serving], active, plural(int64(active), "pod"))
		out.Message = strings.Join(nonEmpty(self.Message, ready), "; ")
	}
	serving := ds.serving(self, out.Status)
	if e.group == nil || out.Status == Healthy {
		out.Message = strings.Join(nonEmpty(out.Message, serving), "; ")
		return out
	}
	// The reason is that of the cause, unless the resource itself has a reason for an equally bad status.
	if worse(e.severity, Reconciling) && (self.Status != Down || replacesPods[kind]) || worse(e.severity, self.Status) {
		out.Reason, out.Since = e.key.Reason, e.group.since
	}
	out.Cause = ds.cause(self, e)
	out.Cause.Serving = serving
	out.Message = out.Cause.String()
	return out
}

// serving counts the Pods that serve while a rollout fails: "3 of 3 old pods serve, 0 of 1 new ready". It is empty for a
// status that is no fault, and without Pods of earlier revisions.
func (ds *Dependents) serving(self Assessment, status Status) string {
	if self.Revision == "" || !status.IsFault() {
		return ""
	}
	var old revisionPods
	for revision, n := range ds.revisions {
		if revision != self.Revision {
			old.active, old.serving = old.active+n.active, old.serving+n.serving
		}
	}
	if old.active == 0 {
		return ""
	}
	latest := ds.revisions[self.Revision]
	return fmt.Sprintf("%d of %d old %s, %d of %d new ready", old.serving, old.active, serve(old.active), latest.serving, latest.active)
}

func serve(pods int) string {
	if pods == 1 {
		return "pod serves"
	}
	return "pods serve"
}

// combineService assesses a Service by itself and by its EndpointSlices: it works while one of them has a ready endpoint.
func (ds *Dependents) combineService(self Assessment) Aggregate {
	count := ds.Count("EndpointSlice")
	if self.Status == Down || count.Total == 0 || count.Healthy > 0 {
		return Aggregate{Assessment: self}
	}
	worst := ds.worst()
	self.Message = cmp.Or(self.Message, "the Service has no ready endpoint")
	out := Aggregate{Cause: ds.cause(self, worst)}
	out.Verdict = Verdict{Status: worst.key.Status, Reason: worst.key.Reason, Message: out.Cause.String()}
	out.Since, out.Recheck = worst.group.since, self.Recheck
	return out
}

// clearTimeout clears a startup timeout inferred from the workload alone when its Pods give better evidence.
func (ds *Dependents) clearTimeout(kind schema.GroupKind, self Assessment) Assessment {
	if !replacesPods[kind] || self.Phase != Overdue || ds.activePods() == 0 {
		return self
	}
	self.Status, self.Phase, self.Since = Reconciling, NotServing, time.Time{}
	self.Message = cmp.Or(self.WithoutTimeout, self.Message)
	return self
}

// explanation is a group of dependents as the cause of a resource's status.
type explanation struct {
	key   groupKey
	group *group // nil if there is no cause
	// severity is how bad the cause is for the resource; Healthy if it does not count.
	severity Status
	// latest is true for a cause in the revision that is rolled out.
	latest bool
	others int // further causes that are worse than Reconciling
}

// explain returns the worst cause. Among equals one of the latest revision wins, then the most frequent one. The last criterion is the
// order of their texts. A cause that does not count for the resource's status is returned if there is no other.
func (ds *Dependents) explain(kind schema.GroupKind, self Assessment) explanation {
	best := explanation{severity: Healthy}
	others := map[Verdict]bool{}
	for key, g := range ds.groups {
		if key.kind != podKind.Kind || key.phase == Terminating && !ds.allTerminating(kind) {
			continue
		}
		e := explanation{
			key: key, group: g, severity: ds.severity(kind, self, key), latest: self.Revision != "" && key.via.Last().Name == self.Revision,
		}
		if e.severity == Healthy && !worse(self.Status, Reconciling) {
			continue
		}
		if worse(key.Status, Reconciling) {
			others[key.Verdict] = true
		}
		if best.group == nil || e.before(best) {
			best = e
		}
	}
	delete(others, best.key.Verdict)
	if best.group != nil && worse(best.key.Status, Reconciling) {
		best.others = len(others)
	}
	return best
}

// worst returns the group whose own status is worst; an empty explanation if all dependents are Healthy.
func (ds *Dependents) worst() explanation {
	var best explanation
	for key, g := range ds.groups {
		if e := (explanation{key: key, group: g}); best.group == nil || e.before(best) {
			best = e
		}
	}
	return best
}

// before reports whether a cause is named rather than another one. The order is total, so that equal dependents have
// equal messages.
func (e explanation) before(other explanation) bool {
	a, b := e.key, other.key
	switch {
	case e.severity != other.severity:
		return worse(e.severity, other.severity)
	case a.Status != b.Status:
		return worse(a.Status, b.Status)
	case e.latest != other.latest:
		return e.latest
	case len(e.group.uids) != len(other.group.uids):
		return len(e.group.uids) > len(other.group.uids)
	}
	if c := cmp.Or(cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Message, b.Message), cmp.Compare(a.kind, b.kind)); c != 0 {
		return c < 0
	}
	if a.via != b.via {
		return a.via.String() < b.via.String()
	}
	return a.phase < b.phase
}

// cause returns the chain from a resource to a group of its dependents.
func (ds *Dependents) cause(self Assessment, e explanation) Cause {
	g := CauseGroup{
		Kind: e.key.kind, Count: len(e.group.uids), Reason: e.key.Reason, Message: e.key.Message,
	}
	if g.Count == 1 {
		for uid := range e.group.uids {
			g.Name = ds.byUID[uid].name
		}
	}
	return Cause{Effect: cmp.Or(self.Message, self.Subject), Path: e.key.via, Group: g, Others: e.others}
}

// allTerminating reports whether everything that belongs to a workload by its label alone is being deleted.
func (ds *Dependents) allTerminating(kind schema.GroupKind) bool {
	return kind == schema.GroupKind{} && ds.phases[Terminating] == ds.kinds[podKind.Kind].Total
}

// severity returns how bad a cause is for a resource; Healthy if it does not count.
func (ds *Dependents) severity(kind schema.GroupKind, self Assessment, key groupKey) Status {
	switch {
	case self.Reason == "Terminating" && key.Reason != terminatingTooLong:
		return Healthy // the Pods are deleted with the resource
	case key.phase == Terminating:
		if ds.allTerminating(kind) {
			return Reconciling
		}
		return Healthy
	case key.phase == Ended:
		if ds.isReplaced(kind, key) {
			return Healthy
		}
	case key.phase == Overdue && hasDeadline(kind, self):
		return Reconciling
	case kind == cronJobKind || key.via.Includes(jobKind.Kind) && kind != jobKind:
		return runSeverity(key)
	case kind == jobKind && isRetried(key):
		return Unhealthy
	}
	return key.Status
}

// hasDeadline reports whether a Deployment's own deadline still runs. It decides then, and not the time its Pods take.
func hasDeadline(kind schema.GroupKind, self Assessment) bool {
	if kind.Group != "apps" || kind.Kind != "Deployment" || self.Status != Reconciling {
		return false
	}
	return self.Reason != replicasMissing || !self.Recheck.IsZero()
}

// runSeverity returns how bad a Pod of one run is for the resource that starts the runs. A run that starts does not
// count, and a run that fails is followed by others.
func runSeverity(key groupKey) Status {
	if worse(key.Status, Reconciling) {
		return Unhealthy
	}
	return Healthy
}

// isRetried reports whether a Job tries again after the failure of a Pod: its program fails. A Pod that cannot start at
// all is not an attempt.
func isRetried(key groupKey) bool { return key.phase == Restarting || key.Status == Unhealthy }

// isReplaced reports whether the failure of a Pod is over: its owner has created another one, or counts failures itself.
func (ds *Dependents) isReplaced(kind schema.GroupKind, key groupKey) bool {
	switch {
	case replacesPods[kind]:
		return ds.activePods() > 0
	case kind == jobKind || kind == cronJobKind:
		return true
	}
	return !key.via.IsEmpty() && ds.works[key.via] > 0
}

// status returns the status of a resource, given the severity of the worst cause.
func (ds *Dependents) status(kind schema.GroupKind, self Assessment, severity Status) Status {
	if !worse(severity, Reconciling) {
		if worse(self.Status, severity) {
			return self.Status
		}
		return severity
	}
	switch {
	case self.Status == Down:
		return Down
	case kind == cronJobKind, ds.phases[Serving] > 0, !replacesPods[kind] && len(ds.works) > 0:
		return Unhealthy
	case self.Status == Healthy && kind != (schema.GroupKind{}):
		return Unhealthy // its own status may only lag behind
	case kind == jobKind, self.Status == Unknown, kind == schema.GroupKind{}:
		return severity
	}
	return Down
}
