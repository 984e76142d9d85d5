package oracle

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/controlplane"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
)

// Expected is a workload to be checked.
type Expected struct {
	upstream.Deployed
	// Released is true if its ThreeportWorkload was deleted: what the control plane holds of it has to be
	// right, and need not be complete.
	Released bool
}

// History is what the control plane holds.
type History struct {
	Events    []controlplane.WorkloadEvent
	Resources []controlplane.WorkloadResourceInstance
}

// Read returns what the control plane holds.
func Read(ctx context.Context, api upstream.API) (History, error) {
	events, err := api.Events(ctx, nil)
	if err != nil {
		return History{}, err
	}
	resources, err := api.Resources(ctx, nil)
	return History{events, resources}, err
}

// Check compares what the control plane holds with what was seen in the cluster, and returns every
// difference: each Event about a workload's object is one row, no other Event is, times and attributions are
// right, and each listed resource is there in its newest version, or DELETED.
func (o *Oracle) Check(h History, workloads []Expected) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append(o.checkEvents(h, workloads), o.checkResources(h, workloads)...)
}

// claim is where an Event belongs.
type claim struct {
	workload *Expected
	resource v1alpha1.WorkloadResourceInstance
	itself   bool
}

func (o *Oracle) checkEvents(h History, workloads []Expected) []string {
	var problems []string
	rows := map[types.UID][]controlplane.WorkloadEvent{}
	for _, row := range h.Events {
		uid := types.UID(deref(row.RuntimeEventUID))
		rows[uid] = append(rows[uid], row)
		if row.Timestamp == nil || row.Timestamp.Year() < 2000 {
			problems = append(problems, fmt.Sprintf("row %d of event %s has time %v", deref(row.ID), uid, row.Timestamp))
		}
	}
	listed := o.listedUIDs(workloads)
	for uid, ev := range o.events {
		c, belongs := o.claimOf(ev.InvolvedObject.UID, listed)
		name := fmt.Sprintf("event %s of %s %s/%s (%s)", ev.Reason, ev.InvolvedObject.Kind, ev.InvolvedObject.Namespace, ev.InvolvedObject.Name, uid)
		switch found := rows[uid]; {
		case !belongs && len(found) > 0:
			problems = append(problems, name+" belongs to no workload and is in the control plane")
		case !belongs, len(found) == 0 && c.workload.Released:
		case len(found) != 1:
			problems = append(problems, fmt.Sprintf("%s has %d rows, expected 1", name, len(found)))
		case !c.workload.Released:
			problems = append(problems, checkRow(name, found[0], ev, c)...)
		}
		delete(rows, uid)
	}
	for uid := range rows {
		problems = append(problems, fmt.Sprintf("the control plane has event %s, which the API server never had", uid))
	}
	slices.Sort(problems)
	return problems
}

func checkRow(name string, row controlplane.WorkloadEvent, ev *corev1.Event, c claim) []string {
	var problems []string
	expect := func(field string, got, want any) {
		if got != want {
			problems = append(problems, fmt.Sprintf("%s: %s is %v, expected %v", name, field, got, want))
		}
	}
	workloadID, helmID := c.workload.InstanceID, int64(0)
	if c.workload.Type == v1alpha1.WorkloadTypeHelmInstance {
		workloadID, helmID = 0, c.workload.InstanceID
	}
	message := ev.Message
	if !c.itself {
		message = ev.InvolvedObject.Kind + " " + ev.InvolvedObject.Name + ": " + ev.Message
	}
	expect("WorkloadInstanceID", deref(row.WorkloadInstanceID), workloadID)
	expect("HelmWorkloadInstanceID", deref(row.HelmWorkloadInstanceID), helmID)
	expect("WorkloadResourceInstanceID", deref(row.WorkloadResourceInstanceID), c.resource.ThreeportID)
	expect("Type", deref(row.Type), ev.Type)
	expect("Reason", deref(row.Reason), ev.Reason)
	expect("Message", deref(row.Message), message)
	expect("Timestamp", row.Timestamp.UTC().Format(time.RFC3339Nano), lastSeen(ev).UTC().Format(time.RFC3339Nano))
	return problems
}

// lastSeen is when an Event happened last, to the microsecond that the API server keeps.
func lastSeen(ev *corev1.Event) time.Time {
	times := []time.Time{ev.LastTimestamp.Time, ev.EventTime.Time, ev.FirstTimestamp.Time, ev.CreationTimestamp.Time}
	if ev.Series != nil {
		times = slices.Insert(times, 0, ev.Series.LastObservedTime.Time)
	}
	i := slices.IndexFunc(times, func(t time.Time) bool { return !t.IsZero() })
	return times[i]
}

// listedUIDs returns what every incarnation of a listed name belongs to.
func (o *Oracle) listedUIDs(workloads []Expected) map[types.UID]claim {
	out := map[types.UID]claim{}
	for i := range workloads {
		for _, res := range workloads[i].Resources {
			for uid, obj := range o.objects {
				if obj.Kind == res.Kind && obj.Name == res.Name && (obj.Namespace == res.Namespace || res.Namespace == "") {
					out[uid] = claim{&workloads[i], res, true}
				}
			}
		}
	}
	return out
}

// claimOf walks up the owners of an object to one that is listed.
func (o *Oracle) claimOf(uid types.UID, listed map[types.UID]claim) (claim, bool) {
	seen := map[types.UID]bool{}
	for level, itself := []types.UID{uid}, true; len(level) > 0; itself = false {
		var next []types.UID
		for _, at := range level {
			if c, ok := listed[at]; ok {
				c.itself = itself
				return c, true
			}
			if !seen[at] {
				seen[at] = true
				next = append(next, o.objects[at].Owners...)
			}
		}
		level = next
	}
	return claim{}, false
}

func (o *Oracle) checkResources(h History, workloads []Expected) []string {
	rows := map[int64]controlplane.WorkloadResourceInstance{}
	for _, row := range h.Resources {
		rows[deref(row.ID)] = row
	}
	var problems []string
	for _, w := range workloads {
		for _, res := range w.Resources {
			if res.ThreeportID == 0 || w.Released {
				continue
			}
			name := fmt.Sprintf("%s %s/%s of %s", res.Kind, res.Namespace, res.Name, w.Name)
			problems = append(problems, o.checkResource(name, rows[res.ThreeportID], res)...)
		}
	}
	return problems
}

func (o *Oracle) checkResource(name string, row controlplane.WorkloadResourceInstance, res v1alpha1.WorkloadResourceInstance) []string {
	var current *Object
	for _, obj := range o.objects {
		if obj.Kind == res.Kind && obj.Namespace == res.Namespace && obj.Name == res.Name && !obj.Deleted {
			current = &obj
		}
	}
	operation := deref(row.LastOperation)
	if current == nil {
		if operation != controlplane.OperationDeleted {
			return []string{fmt.Sprintf("%s is gone; its last operation is %q, expected DELETED", name, operation)}
		}
		return nil
	}
	if operation != controlplane.OperationAdded && operation != controlplane.OperationModified {
		return []string{fmt.Sprintf("%s exists; its last operation is %q, expected ADDED or MODIFIED", name, operation)}
	}
	var definition struct {
		Metadata struct {
			UID             types.UID
			ResourceVersion string
		}
	}
	if err := json.Unmarshal(row.RuntimeDefinition, &definition); err != nil {
		return []string{fmt.Sprintf("%s: runtime definition: %v", name, err)}
	}
	if got := definition.Metadata; got.UID != current.UID || got.ResourceVersion != current.ResourceVersion {
		return []string{fmt.Sprintf("%s is reported as %s at version %s, expected %s at %s",
			name, got.UID, got.ResourceVersion, current.UID, current.ResourceVersion)}
	}
	return nil
}

// Await checks again and again until there is no difference, or the context ends; then it returns the last
// differences.
func (o *Oracle) Await(ctx context.Context, api upstream.API, workloads []Expected) error {
	ticker := time.NewTicker(250 * time.Millisecond)
	defer ticker.Stop()
	for {
		h, err := Read(ctx, api)
		problems := []string{"read the control plane: " + fmt.Sprint(err)}
		if err == nil {
			problems = o.Check(h, workloads)
		}
		if len(problems) == 0 {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			const shown = 10
			text := strings.Join(problems[:min(len(problems), shown)], "\n  ")
			return fmt.Errorf("%d differences between the cluster and the control plane, such as:\n  %s", len(problems), text)
		}
	}
}

func deref[T any](p *T) T {
	var zero T
	return *cmp.Or(p, &zero)
}
