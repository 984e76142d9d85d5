package oracle

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// Kubernetes creates no Event for the termination of a container or for a transition of a workload's health. The agent
// creates synthetic ones. Their UIDs are UID/CONTAINER/RESTARTS, with the next restart count, and UID/TIME/HEALTH. The oracle
// derives them from the statuses of pods and ThreeportWorkloads.

// restarted is the reason of the Event of a container that was not killed, and restarted.
const restarted = "ContainerRestarted"

// termination is the termination of a container.
type termination struct {
	reason   string // from the kubelet
	exitCode int32
	at       time.Time // zero if unknown
}

// podTerminations are the observed terminations of a pod's containers.
type podTerminations struct {
	name string
	all  map[string]termination // by CONTAINER/RESTARTS
	// latest has the last termination of each container in the current status; nil after the deletion of the pod.
	latest []string
}

// transition is a transition of a workload's health.
type transition struct {
	from, to string
	at       time.Time
}

// workloadTransitions are the observed transitions of a ThreeportWorkload.
type workloadTransitions struct {
	workload string
	all      map[string]transition // by TIME/HEALTH
	latest   string                // empty without one, and after the deletion
}

// recordPod records the terminations in the status of a pod.
func (o *Oracle) recordPod(obj any, deleted bool) {
	pod, ok := unwrapTombstone(obj).(*corev1.Pod)
	if !ok {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	known := o.terminations[pod.UID]
	known.name, known.latest = pod.Name, nil
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses, pod.Status.EphemeralContainerStatuses) {
		found := terminationsOf(status)
		for n, e := range found {
			if known.all == nil {
				known.all = map[string]termination{}
			}
			known.all[fmt.Sprintf("%s/%d", status.Name, n)] = e
		}
		if len(found) > 0 && !deleted {
			known.latest = append(known.latest, fmt.Sprintf("%s/%d", status.Name, slices.Max(slices.Collect(maps.Keys(found)))))
		}
	}
	if known.all != nil {
		o.terminations[pod.UID] = known
	}
}

// terminationsOf returns the terminations in the status of a container, by the restart count that follows each. lastState
// is the termination before the current run, or, if the container waits and still has the same ID, of the current run.
func terminationsOf(status corev1.ContainerStatus) map[int32]termination {
	out := map[int32]termination{}
	if last := status.LastTerminationState.Terminated; last != nil {
		follows := status.RestartCount
		if status.State.Waiting != nil && last.ContainerID == status.ContainerID && status.ContainerID != "" {
			follows++
		}
		if follows > 0 {
			out[follows] = terminationOf(last)
		}
	}
	if killed := status.State.Terminated; killed != nil && killed.Reason == "OOMKilled" {
		out[status.RestartCount+1] = terminationOf(killed)
	}
	return out
}

func terminationOf(t *corev1.ContainerStateTerminated) termination {
	return termination{t.Reason, t.ExitCode, t.FinishedAt.UTC()}
}

// recordWorkload records the transition in the status of a ThreeportWorkload. A first transition to Unknown does not count.
func (o *Oracle) recordWorkload(obj any, deleted bool) {
	u, ok := unwrapTombstone(obj).(*unstructured.Unstructured)
	if !ok {
		return
	}
	text := func(path ...string) string {
		s, _, _ := unstructured.NestedString(u.Object, append([]string{"status"}, path...)...)
		return s
	}
	at, err := time.Parse(time.RFC3339, text("healthSince"))
	c := transition{text("healthChange", "from"), text("health"), at}
	_, hasTransition, _ := unstructured.NestedMap(u.Object, "status", "healthChange")
	o.mu.Lock()
	defer o.mu.Unlock()
	known := o.transitions[u.GetUID()]
	known.workload, known.latest = u.GetName(), ""
	if err == nil && hasTransition && (c.from != "" || c.to != "Unknown") {
		key := text("healthSince") + "/" + c.to
		if known.all == nil {
			known.all = map[string]transition{}
		}
		known.all[key] = c
		if !deleted {
			known.latest = key
		}
	}
	if known.all != nil {
		o.transitions[u.GetUID()] = known
	}
}

// syntheticCheck checks the rows of synthetic Events.
type syntheticCheck struct {
	*eventCheck
	*Oracle
	attributions attributions
}

// check checks the rows of synthetic Events, and expects a row for the latest one of each container and workload.
func (c syntheticCheck) check() {
	missing := map[types.UID]struct{}{}
	for pod, e := range c.terminations {
		if at, belongs := c.attributions.of(pod); belongs && !at.workload.Released {
			for _, key := range e.latest {
				missing[pod+"/"+types.UID(key)] = struct{}{}
			}
		}
	}
	for cr, e := range c.transitions {
		if w := c.declared(e.workload); w != nil && !w.Released && e.latest != "" {
			missing[cr+"/"+types.UID(e.latest)] = struct{}{}
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(c.rows)) {
		subject, key, isOwn := strings.Cut(string(uid), "/")
		if !isOwn {
			continue
		}
		var taken bool
		if _, known := c.transitions[types.UID(subject)]; known {
			taken = c.checkTransition(uid, types.UID(subject), key)
		} else {
			taken = c.checkTermination(uid, types.UID(subject), key)
		}
		if taken {
			delete(c.rows, uid)
			delete(missing, uid)
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(missing)) {
		c.checkMissing(uid)
	}
}

func (c syntheticCheck) declared(name string) *Expected {
	for i := range c.workloads {
		if c.workloads[i].Name == name {
			return &c.workloads[i]
		}
	}
	return nil
}

// checkMissing expects that an Event without a row is counted as dropped.
func (c syntheticCheck) checkMissing(uid types.UID) {
	subject, key, _ := strings.Cut(string(uid), "/")
	if e, isChange := c.transitions[types.UID(subject)]; isChange {
		w := c.declared(e.workload)
		if !c.dropped[w].takeOne(e.all[key].eventType()) {
			c.addDifference("%s: expected the agent to report the transition to %s at %s (%s) once, the API has 0 rows of it",
				w.Name, e.all[key].to, e.all[key].at.UTC().Format(time.RFC3339), uid)
		}
		return
	}
	at, _ := c.attributions.of(types.UID(subject))
	if !c.dropped[at.workload].takeOne(corev1.EventTypeWarning) {
		c.addDifference("%s: expected the agent to report the termination of a container of Pod %s (%s) once, the API has 0 rows of it",
			at.workload.Name, c.terminations[types.UID(subject)].name, uid)
	}
}

// checkTermination checks the row of a termination. It returns false for a row of another kind.
func (c syntheticCheck) checkTermination(uid, pod types.UID, key string) bool {
	container, restarts, ok := strings.Cut(key, "/")
	if _, err := strconv.Atoi(restarts); !ok || err != nil || c.objects[pod].kind.Kind != "Pod" {
		return false
	}
	at, belongs := c.attributions.of(pod)
	want, known := c.terminations[pod].all[key]
	if !belongs || !known && !c.mayHaveMissed {
		return false
	}
	r := report{subject: fmt.Sprintf("%s: expected the agent to report the termination of container %s of Pod %s (%s)",
		at.workload.Name, container, c.objects[pod].name, uid)}
	c.expectOneRow(&r, uid)
	for _, row := range c.rows[uid] {
		workloadID, helmID := at.workload.ids()
		r.expect("workload instance", deref(row.WorkloadInstanceID), workloadID)
		r.expect("Helm workload instance", deref(row.HelmWorkloadInstanceID), helmID)
		r.expect("resource instance", deref(row.WorkloadResourceInstanceID), at.resourceID)
		r.expect("type", deref(row.Type), corev1.EventTypeWarning)
		if !known {
			continue
		}
		reason := restarted
		if want.reason == "OOMKilled" {
			reason = want.reason
		}
		r.expect("reason", deref(row.Reason), reason)
		for _, part := range []string{c.objects[pod].name, container, fmt.Sprintf("exit code %d", want.exitCode), want.reason} {
			r.expectPart(row, part)
		}
		if !want.at.IsZero() {
			r.expectTime(row, want.at)
		}
	}
	c.differences = append(c.differences, r.differences...)
	return true
}

// checkTransition checks the row of a transition. It returns false for a row of another kind.
func (c syntheticCheck) checkTransition(uid, cr types.UID, key string) bool {
	known := c.transitions[cr]
	w := c.declared(known.workload)
	want, isKnown := known.all[key]
	if w == nil || !isKnown && !c.mayHaveMissed {
		return false
	}
	r := report{subject: fmt.Sprintf("%s: expected the agent to report the transition of its health (%s)", w.Name, uid)}
	c.expectOneRow(&r, uid)
	for _, row := range c.rows[uid] {
		workloadID, helmID := w.ids()
		r.expect("workload instance", deref(row.WorkloadInstanceID), workloadID)
		r.expect("Helm workload instance", deref(row.HelmWorkloadInstanceID), helmID)
		r.expect("resource instance", deref(row.WorkloadResourceInstanceID), int64(0))
		if !isKnown {
			continue
		}
		r.expect("type", deref(row.Type), want.eventType())
		r.expect("reason", deref(row.Reason), "Workload"+want.to)
		for _, part := range []string{w.Name, want.from, want.to} {
			r.expectPart(row, part)
		}
		r.expectTime(row, want.at)
	}
	c.differences = append(c.differences, r.differences...)
	return true
}

func (c transition) eventType() string {
	if c.to == "Unhealthy" || c.to == "Down" {
		return corev1.EventTypeWarning
	}
	return corev1.EventTypeNormal
}

// expectOneRow expects at most one row of an Event.
func (c syntheticCheck) expectOneRow(r *report, uid types.UID) {
	if n := len(c.rows[uid]); n > 1 {
		r.differences = append(r.differences, fmt.Sprintf("%s once, the API has %d rows of it", r.subject, n))
	}
}

func (r *report) expectPart(row threeport.WorkloadEvent, part string) {
	if !strings.Contains(deref(row.Message), part) {
		r.differences = append(r.differences, fmt.Sprintf("%s with %q in its message, the API has %q", r.subject, part, deref(row.Message)))
	}
}

func (r *report) expectTime(row threeport.WorkloadEvent, want time.Time) {
	r.expect("time", deref(row.Timestamp).UTC().Format(time.RFC3339Nano), want.UTC().Format(time.RFC3339Nano))
}
