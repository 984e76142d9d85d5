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

// Kubernetes writes no Event for the end of a container, nor does anybody for a change of a workload's health. The agent
// makes some, which the oracle knows from the status of pods and of ThreeportWorkloads: UID/CONTAINER/RESTARTS, with the
// restart count that the container has next, and UID/TIME/HEALTH.

// restarted is the reason of the Event about a container that ended in an ordinary way, and was started again.
const restarted = "ContainerRestarted"

// end is how a container ended.
type end struct {
	reason   string // as the kubelet has it
	exitCode int32
	at       time.Time // zero if it does not know
}

// ends are what the statuses of a pod told.
type ends struct {
	name string
	all  map[string]end // by CONTAINER/RESTARTS
	// latest are those that it tells now, of each container the last one; nil if the pod is gone.
	latest []string
}

// change is a change of a workload's health.
type change struct {
	from, to string
	at       time.Time
}

// changes are what a ThreeportWorkload told.
type changes struct {
	workload string
	all      map[string]change // by TIME/HEALTH
	latest   string            // empty if there is none, or it is gone
}

// sawPod keeps the ends that a pod tells of.
func (o *Oracle) sawPod(obj any, deleted bool) {
	pod, ok := lastKnown(obj).(*corev1.Pod)
	if !ok {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	known := o.ends[pod.UID]
	known.name, known.latest = pod.Name, nil
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses, pod.Status.EphemeralContainerStatuses) {
		told := endsOf(status)
		for n, e := range told {
			if known.all == nil {
				known.all = map[string]end{}
			}
			known.all[fmt.Sprintf("%s/%d", status.Name, n)] = e
		}
		if len(told) > 0 && !deleted {
			known.latest = append(known.latest, fmt.Sprintf("%s/%d", status.Name, slices.Max(slices.Collect(maps.Keys(told)))))
		}
	}
	if known.all != nil {
		o.ends[pod.UID] = known
	}
}

// endsOf returns the ends that a container's status tells of, by the restart count that follows each. The end in
// lastState is that of the run before the present one; except if there is no present one, because the container is not
// running and has the same ID still.
func endsOf(status corev1.ContainerStatus) map[int32]end {
	out := map[int32]end{}
	if last := status.LastTerminationState.Terminated; last != nil {
		follows := status.RestartCount
		if status.State.Waiting != nil && last.ContainerID == status.ContainerID && status.ContainerID != "" {
			follows++
		}
		if follows > 0 {
			out[follows] = endOf(last)
		}
	}
	if killed := status.State.Terminated; killed != nil && killed.Reason == "OOMKilled" {
		out[status.RestartCount+1] = endOf(killed)
	}
	return out
}

func endOf(t *corev1.ContainerStateTerminated) end {
	return end{t.Reason, t.ExitCode, t.FinishedAt.UTC()}
}

// sawWorkload keeps the change that a ThreeportWorkload tells of. That one is Unknown at first is none.
func (o *Oracle) sawWorkload(obj any, deleted bool) {
	u, ok := lastKnown(obj).(*unstructured.Unstructured)
	if !ok {
		return
	}
	text := func(path ...string) string {
		s, _, _ := unstructured.NestedString(u.Object, append([]string{"status"}, path...)...)
		return s
	}
	at, err := time.Parse(time.RFC3339, text("healthSince"))
	c := change{text("healthChange", "from"), text("health"), at}
	_, told, _ := unstructured.NestedMap(u.Object, "status", "healthChange")
	o.mu.Lock()
	defer o.mu.Unlock()
	known := o.changes[u.GetUID()]
	known.workload, known.latest = u.GetName(), ""
	if err == nil && told && (c.from != "" || c.to != "Unknown") {
		key := text("healthSince") + "/" + c.to
		if known.all == nil {
			known.all = map[string]change{}
		}
		known.all[key] = c
		if !deleted {
			known.latest = key
		}
	}
	if known.all != nil {
		o.changes[u.GetUID()] = known
	}
}

// ownCheck compares the rows of the Events that the agent makes.
type ownCheck struct {
	*eventCheck
	*Oracle
	claims claims
}

// check takes the rows of what the agent makes, and expects the latest of each to be there.
func (c ownCheck) check() {
	missing := map[types.UID]struct{}{}
	for pod, e := range c.ends {
		if at, belongs := c.claims.of(pod); belongs && !at.workload.Released {
			for _, key := range e.latest {
				missing[pod+"/"+types.UID(key)] = struct{}{}
			}
		}
	}
	for cr, e := range c.changes {
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
		if _, known := c.changes[types.UID(subject)]; known {
			taken = c.checkChange(uid, types.UID(subject), key)
		} else {
			taken = c.checkEnd(uid, types.UID(subject), key)
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

func (c ownCheck) declared(name string) *Expected {
	for i := range c.workloads {
		if c.workloads[i].Name == name {
			return &c.workloads[i]
		}
	}
	return nil
}

// checkMissing expects that something is made known, or counted as dropped.
func (c ownCheck) checkMissing(uid types.UID) {
	subject, key, _ := strings.Cut(string(uid), "/")
	if e, isChange := c.changes[types.UID(subject)]; isChange {
		w := c.declared(e.workload)
		if !c.gaps[w].covers(e.all[key].eventType()) {
			c.differ("%s: expected the agent to say that it is %s since %s (%s) once, the API has 0 rows of it",
				w.Name, e.all[key].to, e.all[key].at.UTC().Format(time.RFC3339), uid)
		}
		return
	}
	at, _ := c.claims.of(types.UID(subject))
	if !c.gaps[at.workload].covers(corev1.EventTypeWarning) {
		c.differ("%s: expected the agent to say that a container of Pod %s ended (%s) once, the API has 0 rows of it",
			at.workload.Name, c.ends[types.UID(subject)].name, uid)
	}
}

// checkEnd compares the row about an end of a container. It returns false if the row is about something else.
func (c ownCheck) checkEnd(uid, pod types.UID, key string) bool {
	container, restarts, ok := strings.Cut(key, "/")
	if _, err := strconv.Atoi(restarts); !ok || err != nil || c.objects[pod].kind.Kind != "Pod" {
		return false
	}
	at, belongs := c.claims.of(pod)
	seen, told := c.ends[pod].all[key]
	if !belongs || !told && !c.missed {
		return false
	}
	r := report{subject: fmt.Sprintf("%s: expected the agent to say that container %s of Pod %s ended (%s)",
		at.workload.Name, container, c.objects[pod].name, uid)}
	c.once(&r, uid)
	for _, row := range c.rows[uid] {
		workloadID, helmID := at.workload.ids()
		r.expect("workload instance", deref(row.WorkloadInstanceID), workloadID)
		r.expect("Helm workload instance", deref(row.HelmWorkloadInstanceID), helmID)
		r.expect("resource instance", deref(row.WorkloadResourceInstanceID), at.resourceID)
		r.expect("type", deref(row.Type), corev1.EventTypeWarning)
		if !told {
			continue
		}
		reason := restarted
		if seen.reason == "OOMKilled" {
			reason = seen.reason
		}
		r.expect("reason", deref(row.Reason), reason)
		for _, part := range []string{c.objects[pod].name, container, fmt.Sprintf("exit code %d", seen.exitCode), seen.reason} {
			r.expectPart(row, part)
		}
		if !seen.at.IsZero() {
			r.expectTime(row, seen.at)
		}
	}
	c.differences = append(c.differences, r.differences...)
	return true
}

// checkChange compares the row about a change of a workload's health. It returns false if the row is about something else.
func (c ownCheck) checkChange(uid, cr types.UID, key string) bool {
	known := c.changes[cr]
	w := c.declared(known.workload)
	seen, told := known.all[key]
	if w == nil || !told && !c.missed {
		return false
	}
	r := report{subject: fmt.Sprintf("%s: expected the agent to say that its health changed (%s)", w.Name, uid)}
	c.once(&r, uid)
	for _, row := range c.rows[uid] {
		workloadID, helmID := w.ids()
		r.expect("workload instance", deref(row.WorkloadInstanceID), workloadID)
		r.expect("Helm workload instance", deref(row.HelmWorkloadInstanceID), helmID)
		r.expect("resource instance", deref(row.WorkloadResourceInstanceID), int64(0))
		if !told {
			continue
		}
		r.expect("type", deref(row.Type), seen.eventType())
		r.expect("reason", deref(row.Reason), "Workload"+seen.to)
		for _, part := range []string{w.Name, seen.from, seen.to} {
			r.expectPart(row, part)
		}
		r.expectTime(row, seen.at)
	}
	c.differences = append(c.differences, r.differences...)
	return true
}

func (c change) eventType() string {
	if c.to == "Unhealthy" || c.to == "Down" {
		return corev1.EventTypeWarning
	}
	return corev1.EventTypeNormal
}

// once expects one row.
func (c ownCheck) once(r *report, uid types.UID) {
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
