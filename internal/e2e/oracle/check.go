package oracle

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// Expected is a workload to be checked.
type Expected struct {
	upstream.Deployed
	// Released is true if its ThreeportWorkload was deleted: what the control plane holds of it has to be
	// its own, and need be neither complete nor the newest.
	Released bool
}

func (w *Expected) helm() bool { return w.Type == v1alpha1.WorkloadTypeHelmInstance }

// ids returns the IDs of the instance that the rows of its Events have; 0 stands for none.
func (w *Expected) ids() (workload, helm int64) {
	if w.helm() {
		return 0, w.InstanceID
	}
	return w.InstanceID, 0
}

// Check compares what the control plane holds with what was seen in the cluster: each Event about a workload's
// object, the latest end of each container and the latest change of its health are one row each, or counted in a row that
// says how many were dropped; no other Event is; times and attributions
// are right; and each listed resource is there in its newest version, or DELETED. It returns a sentence for each
// difference, which says of whom what was expected.
func (o *Oracle) Check(h History, workloads []Expected) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	differences := o.checkEvents(h.Events, workloads)
	for i := range workloads {
		w := &workloads[i]
		if w.Released || w.helm() { // a Helm workload's resources have no rows
			continue
		}
		for _, res := range w.Resources {
			differences = append(differences, o.checkResource(w, res, h.Resources)...)
		}
	}
	slices.Sort(differences)
	return differences
}

// report is what the control plane says of one object or Event.
type report struct {
	subject     string
	differences []string
}

func (r *report) expect(field string, got, want any) {
	if got != want {
		r.differences = append(r.differences, fmt.Sprintf("%s with %s %v, the API has %v", r.subject, field, want, got))
	}
}

func (o *Oracle) checkEvents(events []threeport.WorkloadEvent, workloads []Expected) []string {
	c := eventCheck{events: o.events, workloads: workloads, rows: map[types.UID][]threeport.WorkloadEvent{}, gaps: gaps{}}
	c.sort(events)
	claims := o.claims(workloads)
	for _, ev := range o.events {
		if at, belongs := claims.of(ev.InvolvedObject.UID); belongs {
			c.check(ev, at)
		}
	}
	ownCheck{&c, o, claims}.check()
	c.checkGaps()
	c.checkRest()
	return c.differences
}

// eventCheck compares rows with Events.
type eventCheck struct {
	events      map[types.UID]*corev1.Event
	workloads   []Expected
	rows        map[types.UID][]threeport.WorkloadEvent // without those that were checked
	gaps        gaps
	differences []string
}

func (c *eventCheck) differ(format string, args ...any) {
	c.differences = append(c.differences, fmt.Sprintf(format, args...))
}

// sort puts rows in order by their Event, and reads those about gaps.
func (c *eventCheck) sort(rows []threeport.WorkloadEvent) {
	for _, row := range rows {
		uid := types.UID(deref(row.RuntimeEventUID))
		c.rows[uid] = append(c.rows[uid], row)
		if len(c.rows[uid]) > 1 || !c.isGap(row) {
			continue
		}
		if err := c.gaps.take(row, c.workloads); err != nil {
			c.differ("%s: expected the agent to say how many Events it dropped (%s): %v", nameOf(row, c.workloads), uid, err)
		}
	}
}

// isGap reports whether a row is about Events that were dropped, and not one of the cluster's.
func (c *eventCheck) isGap(row threeport.WorkloadEvent) bool {
	return deref(row.Reason) == gapReason && c.events[types.UID(deref(row.RuntimeEventUID))] == nil
}

// check compares an Event that belongs to a workload with its rows.
func (c *eventCheck) check(ev *corev1.Event, at claim) {
	found := c.rows[ev.UID]
	delete(c.rows, ev.UID)
	r := report{subject: fmt.Sprintf("%s: expected the agent to report Event %s of %s %s (%s)",
		at.workload.Name, ev.Reason, ev.InvolvedObject.Kind, ev.InvolvedObject.Name, ev.UID)}
	newest := report{subject: r.subject}
	if n := len(found); n > 1 || n == 0 && !at.workload.Released && !c.gaps[at.workload].covers(ev.Type) {
		c.differ("%s once, the API has %d rows of it", r.subject, n)
	}
	for _, row := range found {
		r.checkEvent(row, ev, at)
		newest.checkNewest(row, ev, at)
	}
	c.differences = append(c.differences, r.differences...)
	// The newest version may be one of those that were dropped.
	if len(newest.differences) > 0 && !c.gaps[at.workload].covers(ev.Type) {
		c.differences = append(c.differences, newest.differences...)
	}
}

// checkGaps expects that no more is counted as dropped than is missing.
func (c *eventCheck) checkGaps() {
	for w, gap := range c.gaps {
		for eventType, left := range gap {
			if left > 0 && !w.Released {
				c.differ("%s: expected the agent to count the Events that it dropped, it counts %d %s Events more than are missing",
					w.Name, left, eventType)
			}
		}
	}
}

// checkRest expects no rows besides those of Events and of gaps.
func (c *eventCheck) checkRest() {
	for uid, found := range c.rows {
		if c.isGap(found[0]) {
			if len(found) > 1 {
				c.differ("%s: expected the agent to say once how many Events it dropped (%s), the API has %d rows of it",
					nameOf(found[0], c.workloads), uid, len(found))
			}
			continue
		}
		origin := ""
		if c.events[uid] == nil {
			origin = ", which the cluster never had"
		}
		c.differ("%s: expected the agent to report no Events but those about objects of workloads, the API has %s %q (%s)%s",
			nameOf(found[0], c.workloads), deref(found[0].Reason), deref(found[0].Message), uid, origin)
	}
}

// checkEvent compares a row with its Event.
func (r *report) checkEvent(row threeport.WorkloadEvent, ev *corev1.Event, at claim) {
	workloadID, helmID := at.workload.ids()
	r.expect("workload instance", deref(row.WorkloadInstanceID), workloadID)
	r.expect("Helm workload instance", deref(row.HelmWorkloadInstanceID), helmID)
	r.expect("resource instance", deref(row.WorkloadResourceInstanceID), at.resourceID)
	r.expect("type", deref(row.Type), ev.Type)
	r.expect("reason", deref(row.Reason), ev.Reason)
	if deref(row.Timestamp).IsZero() {
		r.differences = append(r.differences, r.subject+" with a time, the API has the zero time")
	}
}

// checkNewest compares what a repeat changes.
func (r *report) checkNewest(row threeport.WorkloadEvent, ev *corev1.Event, at claim) {
	reported := deref(row.Timestamp)
	if reported.IsZero() || at.workload.Released { // a released workload's Event may have been repeated since
		return
	}
	message := ev.Message
	if !at.itself {
		message = fmt.Sprintf("%s %s: %s", ev.InvolvedObject.Kind, ev.InvolvedObject.Name, ev.Message)
	}
	r.expect("message", deref(row.Message), message)
	r.expect("time", reported.UTC().Format(time.RFC3339Nano), lastSeen(ev).UTC().Format(time.RFC3339Nano))
}

// lastSeen is when an Event happened last. Events of the newer API have no lastTimestamp.
func lastSeen(ev *corev1.Event) time.Time {
	times := []time.Time{ev.LastTimestamp.Time, ev.EventTime.Time, ev.FirstTimestamp.Time}
	if ev.Series != nil {
		times = slices.Insert(times, 0, ev.Series.LastObservedTime.Time)
	}
	if i := slices.IndexFunc(times, func(t time.Time) bool { return !t.IsZero() }); i >= 0 {
		return times[i]
	}
	return ev.CreationTimestamp.Time
}

// nameOf returns the name of the workload that a row is attributed to.
func nameOf(row threeport.WorkloadEvent, workloads []Expected) string {
	for i := range workloads {
		workload, helm := workloads[i].ids()
		if workload == deref(row.WorkloadInstanceID) && helm == deref(row.HelmWorkloadInstanceID) {
			return workloads[i].Name
		}
	}
	return "no workload"
}

// checkResource compares a listed resource's row with the object that bears its name.
func (o *Oracle) checkResource(w *Expected, res v1alpha1.WorkloadResourceInstance, rows map[int64]threeport.WorkloadResourceInstance) []string {
	kind := schema.GroupKind{Group: res.Group, Kind: res.Kind}
	if o.watched[kind] == nil {
		return []string{fmt.Sprintf("%s: expected the oracle to watch %s, nobody added it", w.Name, kind)}
	}
	r := report{subject: fmt.Sprintf("%s: expected the agent to report %s %s", w.Name, res.Kind, res.Name)}
	row, ok := rows[res.ThreeportID]
	if !ok {
		return []string{fmt.Sprintf("%s, the API has no row %d for it", r.subject, res.ThreeportID)}
	}
	operation := deref(row.LastOperation)
	incarnations := o.incarnations(w, res)
	var latest object
	if len(incarnations) > 0 {
		latest = o.objects[incarnations[len(incarnations)-1]]
	}
	switch exists := latest.uid != "" && !latest.deleted; {
	case exists && operation != threeport.OperationAdded && operation != threeport.OperationModified:
		return []string{fmt.Sprintf("%s as ADDED or MODIFIED, its last operation is %q", r.subject, operation)}
	case exists:
		r.checkDefinition(row.RuntimeDefinition, latest)
	case latest.uid == "" && operation == "": // it was never there
	case operation != threeport.OperationDeleted:
		return []string{fmt.Sprintf("%s as DELETED, its last operation is %q", r.subject, operation)}
	}
	return r.differences
}

// definition is what the checks read of a RuntimeDefinition.
type definition struct {
	Kind     string
	Metadata struct {
		Namespace, Name, ResourceVersion string
		UID                              types.UID
	}
}

// checkDefinition compares a RuntimeDefinition with its object.
func (r *report) checkDefinition(held []byte, current object) {
	var got definition
	if err := json.Unmarshal(held, &got); err != nil {
		r.differences = append(r.differences, fmt.Sprintf("%s with its object, the runtime definition is none: %v", r.subject, err))
		return
	}
	r.expect("kind", got.Kind, current.kind.Kind)
	r.expect("name", got.Metadata.Name, current.name)
	r.expect("namespace", got.Metadata.Namespace, current.namespace)
	r.expect("uid", got.Metadata.UID, current.uid)
	r.expect("resource version", got.Metadata.ResourceVersion, current.resourceVersion)
}
