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
	"github.com/threeport/threeport-agent/internal/controlplane"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
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
// object is one row, no other Event is, times and attributions are right, and each listed resource is there in
// its newest version, or DELETED. It returns a sentence for each difference, which says of whom what was
// expected.
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

func (o *Oracle) checkEvents(events []controlplane.WorkloadEvent, workloads []Expected) []string {
	var differences []string
	rows := map[types.UID][]controlplane.WorkloadEvent{}
	for _, row := range events {
		uid := types.UID(deref(row.RuntimeEventUID))
		rows[uid] = append(rows[uid], row)
	}
	claims := o.claims(workloads)
	for uid, ev := range o.events {
		at, belongs := claims.of(ev.InvolvedObject.UID)
		if !belongs {
			continue
		}
		found := rows[uid]
		delete(rows, uid)
		r := report{subject: fmt.Sprintf("%s: expected the agent to report Event %s of %s %s (%s)",
			at.workload.Name, ev.Reason, ev.InvolvedObject.Kind, ev.InvolvedObject.Name, uid)}
		if n := len(found); n > 1 || n == 0 && !at.workload.Released {
			differences = append(differences, fmt.Sprintf("%s once, the API has %d rows of it", r.subject, n))
		}
		for _, row := range found {
			r.checkEvent(row, ev, at)
		}
		differences = append(differences, r.differences...)
	}
	for uid, found := range rows {
		origin := ""
		if o.events[uid] == nil {
			origin = ", which the cluster never had"
		}
		differences = append(differences, fmt.Sprintf(
			"%s: expected the agent to report no Events but those about objects of workloads, the API has %s %q (%s)%s",
			nameOf(found[0], workloads), deref(found[0].Reason), deref(found[0].Message), uid, origin))
	}
	return differences
}

// checkEvent compares a row with its Event.
func (r *report) checkEvent(row controlplane.WorkloadEvent, ev *corev1.Event, at claim) {
	workloadID, helmID := at.workload.ids()
	r.expect("workload instance", deref(row.WorkloadInstanceID), workloadID)
	r.expect("Helm workload instance", deref(row.HelmWorkloadInstanceID), helmID)
	r.expect("resource instance", deref(row.WorkloadResourceInstanceID), at.resourceID)
	r.expect("type", deref(row.Type), ev.Type)
	r.expect("reason", deref(row.Reason), ev.Reason)
	reported := deref(row.Timestamp)
	if reported.IsZero() {
		r.differences = append(r.differences, r.subject+" with a time, the API has the zero time")
		return
	}
	if at.workload.Released { // the Event may have been repeated since
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
func nameOf(row controlplane.WorkloadEvent, workloads []Expected) string {
	for i := range workloads {
		workload, helm := workloads[i].ids()
		if workload == deref(row.WorkloadInstanceID) && helm == deref(row.HelmWorkloadInstanceID) {
			return workloads[i].Name
		}
	}
	return "no workload"
}

// checkResource compares a listed resource's row with the object that bears its name.
func (o *Oracle) checkResource(w *Expected, res v1alpha1.WorkloadResourceInstance, rows map[int64]controlplane.WorkloadResourceInstance) []string {
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
	case exists && operation != controlplane.OperationAdded && operation != controlplane.OperationModified:
		return []string{fmt.Sprintf("%s as ADDED or MODIFIED, its last operation is %q", r.subject, operation)}
	case exists:
		r.checkDefinition(row.RuntimeDefinition, latest)
	case latest.uid == "" && operation == "": // it was never there
	case operation != controlplane.OperationDeleted:
		return []string{fmt.Sprintf("%s as DELETED, its last operation is %q", r.subject, operation)}
	}
	return r.differences
}

// checkDefinition compares a RuntimeDefinition with its object.
func (r *report) checkDefinition(definition []byte, current object) {
	var got struct {
		Kind     string
		Metadata struct {
			Namespace, Name, ResourceVersion string
			UID                              types.UID
		}
	}
	if err := json.Unmarshal(definition, &got); err != nil {
		r.differences = append(r.differences, fmt.Sprintf("%s with its object, the runtime definition is none: %v", r.subject, err))
		return
	}
	r.expect("kind", got.Kind, current.kind.Kind)
	r.expect("name", got.Metadata.Name, current.name)
	r.expect("namespace", got.Metadata.Namespace, current.namespace)
	r.expect("uid", got.Metadata.UID, current.uid)
	r.expect("resource version", got.Metadata.ResourceVersion, current.resourceVersion)
}
