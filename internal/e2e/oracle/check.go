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

// Expected describes a workload to check.
type Expected struct {
	upstream.Deployed
	// Released is true after the deletion of the ThreeportWorkload. Then the rows of the workload need not be complete or
	// up to date, but must still be correct.
	Released bool
}

func (w *Expected) helm() bool { return w.Type == v1alpha1.WorkloadTypeHelmInstance }

// ids returns the instance IDs in the rows of its Events; 0 means none.
func (w *Expected) ids() (workload, helm int64) {
	if w.helm() {
		return 0, w.InstanceID
	}
	return w.InstanceID, 0
}

// Check compares the rows of the control plane with the cluster. It expects:
//
//   - one row for each Event about a workload's object, or a row that counts the Event as dropped;
//   - the same for the latest termination of each container and for the latest transition of the workload's health;
//   - no other rows of Events;
//   - correct times and attributions;
//   - each listed resource in its latest version, or as DELETED.
//
// It returns a sentence for each difference, with the expectation and its subject.
func (o *Oracle) Check(h History, workloads []Expected) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	differences := o.checkEvents(h.Events, workloads)
	for i := range workloads {
		w := &workloads[i]
		if w.Released || w.helm() { // The resources of a Helm workload have no rows.
			continue
		}
		for _, res := range w.Resources {
			differences = append(differences, o.checkResource(w, res, h.Resources)...)
		}
	}
	slices.Sort(differences)
	return differences
}

// report collects the differences of one object or Event.
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
	c := eventCheck{events: o.events, workloads: workloads, rows: map[types.UID][]threeport.WorkloadEvent{}, dropped: droppedByWorkload{}}
	c.group(events)
	claims := o.attributions(workloads)
	for _, ev := range o.events {
		if at, belongs := claims.of(ev.InvolvedObject.UID); belongs && o.names(ev) {
			c.checkEvent(ev, at)
		}
	}
	syntheticCheck{&c, o, claims}.check()
	c.checkDropped()
	c.checkRemaining()
	return c.differences
}

// names reports whether an Event names the object of its UID, from the namespace of that object. The creator of an Event
// chooses the UID.
func (o *Oracle) names(ev *corev1.Event) bool {
	object := o.objects[ev.InvolvedObject.UID]
	return ev.InvolvedObject.Kind == object.kind.Kind && ev.InvolvedObject.Name == object.name &&
		ev.InvolvedObject.Namespace == object.namespace && (object.namespace == "" || ev.Namespace == object.namespace)
}

// eventCheck is the state of a check of Events.
type eventCheck struct {
	events      map[types.UID]*corev1.Event
	workloads   []Expected
	rows        map[types.UID][]threeport.WorkloadEvent // not checked yet
	dropped     droppedByWorkload
	differences []string
}

func (c *eventCheck) addDifference(format string, args ...any) {
	c.differences = append(c.differences, fmt.Sprintf(format, args...))
}

// group groups rows by Event, and reads the rows that count dropped Events.
func (c *eventCheck) group(rows []threeport.WorkloadEvent) {
	for _, row := range rows {
		uid := types.UID(deref(row.RuntimeEventUID))
		c.rows[uid] = append(c.rows[uid], row)
		if len(c.rows[uid]) > 1 || !c.isDroppedRow(row) {
			continue
		}
		if err := c.dropped.add(row, c.workloads); err != nil {
			c.addDifference("%s: expected the agent to report the number of dropped Events (%s): %v", nameOf(row, c.workloads), uid, err)
		}
	}
}

// isDroppedRow reports whether a row counts dropped Events. An Event of the cluster may have the same reason.
func (c *eventCheck) isDroppedRow(row threeport.WorkloadEvent) bool {
	return deref(row.Reason) == droppedReason && c.events[types.UID(deref(row.RuntimeEventUID))] == nil
}

// checkEvent checks the rows of an Event of a workload.
func (c *eventCheck) checkEvent(ev *corev1.Event, at attribution) {
	found := c.rows[ev.UID]
	delete(c.rows, ev.UID)
	r := report{subject: fmt.Sprintf("%s: expected the agent to report Event %s of %s %s (%s)",
		at.workload.Name, ev.Reason, ev.InvolvedObject.Kind, ev.InvolvedObject.Name, ev.UID)}
	newest := report{subject: r.subject}
	if n := len(found); n > 1 || n == 0 && !at.workload.Released && !c.dropped[at.workload].takeOne(ev.Type) {
		c.addDifference("%s once, the API has %d rows of it", r.subject, n)
	}
	for _, row := range found {
		r.checkEvent(row, ev, at)
		newest.checkNewest(row, ev, at)
	}
	c.differences = append(c.differences, r.differences...)
	// The latest version of the Event may have been dropped.
	if len(newest.differences) > 0 && !c.dropped[at.workload].takeOne(ev.Type) {
		c.differences = append(c.differences, newest.differences...)
	}
}

// checkDropped expects that the agent counts no more Events as dropped than are missing.
func (c *eventCheck) checkDropped() {
	for w, counts := range c.dropped {
		for eventType, left := range counts {
			if left > 0 && !w.Released {
				c.addDifference("%s: expected the agent to count the dropped Events, it counts %d %s Events more than are missing",
					w.Name, left, eventType)
			}
		}
	}
}

// checkRemaining expects no other rows.
func (c *eventCheck) checkRemaining() {
	for uid, found := range c.rows {
		if c.isDroppedRow(found[0]) {
			if len(found) > 1 {
				c.addDifference("%s: expected the agent to report the number of dropped Events (%s) once, the API has %d rows of it",
					nameOf(found[0], c.workloads), uid, len(found))
			}
			continue
		}
		origin := ""
		if c.events[uid] == nil {
			origin = ", which never existed in the cluster"
		}
		c.addDifference("%s: expected the agent to report only Events about objects of workloads, the API has %s %q (%s)%s",
			nameOf(found[0], c.workloads), deref(found[0].Reason), deref(found[0].Message), uid, origin)
	}
}

// checkEvent compares a row with its Event, except for the parts that change with a repeat.
func (r *report) checkEvent(row threeport.WorkloadEvent, ev *corev1.Event, at attribution) {
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

// checkNewest compares the parts of a row that change with a repeat of the Event.
func (r *report) checkNewest(row threeport.WorkloadEvent, ev *corev1.Event, at attribution) {
	reported := deref(row.Timestamp)
	if reported.IsZero() || at.workload.Released { // The Event may have been repeated after the release.
		return
	}
	message := ev.Message
	if !at.itself {
		message = fmt.Sprintf("%s %s: %s", ev.InvolvedObject.Kind, ev.InvolvedObject.Name, ev.Message)
	}
	r.expect("message", deref(row.Message), message)
	r.expect("time", reported.UTC().Format(time.RFC3339Nano), lastSeen(ev).UTC().Format(time.RFC3339Nano))
}

// lastSeen returns the time of the last occurrence of an Event. Events of events.k8s.io have no lastTimestamp.
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

// nameOf returns the name of the workload of a row.
func nameOf(row threeport.WorkloadEvent, workloads []Expected) string {
	for i := range workloads {
		workload, helm := workloads[i].ids()
		if workload == deref(row.WorkloadInstanceID) && helm == deref(row.HelmWorkloadInstanceID) {
			return workloads[i].Name
		}
	}
	return "no workload"
}

// checkResource compares the row of a listed resource with the latest object of its name.
func (o *Oracle) checkResource(w *Expected, res v1alpha1.WorkloadResourceInstance, rows map[int64]threeport.WorkloadResourceInstance) []string {
	kind := schema.GroupKind{Group: res.Group, Kind: res.Kind}
	if o.watched[kind] == nil {
		return []string{fmt.Sprintf("%s: the oracle does not watch %s; call Add", w.Name, kind)}
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
	case latest.uid == "" && operation == "": // The object never existed.
	case operation != threeport.OperationDeleted:
		return []string{fmt.Sprintf("%s as DELETED, its last operation is %q", r.subject, operation)}
	}
	return r.differences
}

// definition is the part of a RuntimeDefinition that the checks read.
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
		r.differences = append(r.differences, fmt.Sprintf("%s with its object, the runtime definition is not valid: %v", r.subject, err))
		return
	}
	r.expect("kind", got.Kind, current.kind.Kind)
	r.expect("name", got.Metadata.Name, current.name)
	r.expect("namespace", got.Metadata.Namespace, current.namespace)
	r.expect("uid", got.Metadata.UID, current.uid)
	r.expect("resource version", got.Metadata.ResourceVersion, current.resourceVersion)
}
