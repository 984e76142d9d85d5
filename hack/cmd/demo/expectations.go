package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/controlplane"
)

// check compares what the control-plane API says with what was expected and with what the API server holds. It
// returns a sentence for each difference, which says of whom what was expected; none if all is well.
func check(workloads []deployed, said history, held truth) []string {
	var unmet []string
	for _, w := range workloads {
		if got := said.statuses[w.name]; got != w.status {
			unmet = append(unmet, fmt.Sprintf("%s: expected the agent to report the status %s, the API has %q", w.name, w.status, got))
		}
		unmet = append(unmet, checkReasons(w, said.eventsOf(w))...)
		for _, res := range w.resources {
			if !w.helm() { // a Helm workload's resources have no rows
				unmet = append(unmet, checkResource(w.name, res, said, held)...)
			}
		}
	}
	unmet = append(unmet, checkEvents(workloads, said.events, held)...)
	for _, where := range said.leaks {
		unmet = append(unmet, "web: expected the agent to keep the Secret's value in the cluster, it is in "+where)
	}
	return unmet
}

func checkReasons(w deployed, rows []controlplane.WorkloadEvent) []string {
	var unmet []string
	for _, reason := range w.reasons {
		if !slices.ContainsFunc(rows, func(row controlplane.WorkloadEvent) bool { return value(row.Reason) == reason }) {
			unmet = append(unmet, fmt.Sprintf("%s: expected the agent to report an Event with the reason %s, the API has none", w.name, reason))
		}
	}
	return unmet
}

// definition is what is read of a RuntimeDefinition.
type definition struct {
	Kind     string
	Metadata struct {
		Namespace, Name string
		UID             types.UID
		ResourceVersion string
	}
}

// checkResource compares a listed resource's row with the object.
func checkResource(workload string, res v1alpha1.WorkloadResourceInstance, said history, held truth) []string {
	var unmet []string
	subject := fmt.Sprintf("%s: expected the agent to report %s %s", workload, res.Kind, res.Name)
	live, ok := held.current(res)
	if !ok {
		return []string{fmt.Sprintf("%s: expected the cluster to have %s %s, it has not", workload, res.Kind, res.Name)}
	}
	row, ok := said.resources[res.ThreeportID]
	if !ok {
		return []string{fmt.Sprintf("%s, the API has no row %d for it", subject, res.ThreeportID)}
	}
	switch operation := value(row.LastOperation); operation {
	case controlplane.OperationAdded, controlplane.OperationModified:
	case "":
		return []string{subject + ", its row has no last operation"}
	default:
		unmet = append(unmet, fmt.Sprintf("%s as ADDED or MODIFIED, its last operation is %s", subject, operation))
	}
	var got definition
	if err := json.Unmarshal(row.RuntimeDefinition, &got); err != nil {
		return append(unmet, fmt.Sprintf("%s with its object, the runtime definition is none: %v", subject, err))
	}
	expect := func(field, got, want string) {
		if got != want {
			unmet = append(unmet, fmt.Sprintf("%s with %s %q, the runtime definition has %q", subject, field, want, got))
		}
	}
	expect("kind", got.Kind, res.Kind)
	expect("name", got.Metadata.Name, res.Name)
	expect("namespace", got.Metadata.Namespace, res.Namespace)
	expect("uid", string(got.Metadata.UID), string(live.uid))
	expect("resource version", got.Metadata.ResourceVersion, live.resourceVersion)
	return unmet
}

// checkEvents expects one row for each Event about an object of a workload, and no other.
func checkEvents(workloads []deployed, rows []controlplane.WorkloadEvent, held truth) []string {
	var unmet []string
	byUID := map[string][]controlplane.WorkloadEvent{}
	for _, row := range rows {
		uid := value(row.RuntimeEventUID)
		byUID[uid] = append(byUID[uid], row)
	}
	for i := range held.events {
		ev := &held.events[i]
		at, belongs := held.placeOf(ev.InvolvedObject.UID, workloads)
		if !belongs {
			continue
		}
		found := byUID[string(ev.UID)]
		delete(byUID, string(ev.UID))
		if len(found) != 1 {
			unmet = append(unmet, fmt.Sprintf("%s: expected the agent to report %s once, the API has %d rows of it",
				at.workload.name, describe(ev), len(found)))
		}
		for _, row := range found {
			unmet = append(unmet, checkEvent(ev, at, row)...)
		}
	}
	for uid, found := range byUID {
		row := found[0]
		unmet = append(unmet, fmt.Sprintf("%s: expected the agent to report no Events but those about objects of workloads, the API has %s %q (%s)",
			nameOf(row, workloads), value(row.Reason), value(row.Message), uid))
	}
	slices.Sort(unmet)
	return unmet
}

// checkEvent compares an Event's row with the Event.
func checkEvent(ev *corev1.Event, at place, row controlplane.WorkloadEvent) []string {
	var unmet []string
	subject := fmt.Sprintf("%s: expected the agent to report %s", at.workload.name, describe(ev))
	expect := func(field string, got, want any) {
		if got != want {
			unmet = append(unmet, fmt.Sprintf("%s with %s %v, the API has %v", subject, field, want, got))
		}
	}
	workloadID, helmID := at.workload.instanceID, int64(0)
	if at.workload.helm() {
		workloadID, helmID = helmID, workloadID
	}
	message := ev.Message
	if !at.itself {
		message = fmt.Sprintf("%s %s: %s", ev.InvolvedObject.Kind, ev.InvolvedObject.Name, ev.Message)
	}
	expect("workload instance", value(row.WorkloadInstanceID), workloadID)
	expect("Helm workload instance", value(row.HelmWorkloadInstanceID), helmID)
	expect("resource instance", value(row.WorkloadResourceInstanceID), at.resourceID)
	expect("type", value(row.Type), ev.Type)
	expect("reason", value(row.Reason), ev.Reason)
	expect("message", value(row.Message), message)
	expect("time", value(row.Timestamp).UTC().Format(time.RFC3339Nano), happened(ev).UTC().Format(time.RFC3339Nano))
	if value(row.Timestamp).IsZero() {
		unmet = append(unmet, subject+" with a time, the API has the zero time")
	}
	return unmet
}

func describe(ev *corev1.Event) string {
	return fmt.Sprintf("Event %s of %s %s (%s)", ev.Reason, ev.InvolvedObject.Kind, ev.InvolvedObject.Name, ev.UID)
}

// nameOf returns the name of the workload that a row is attributed to.
func nameOf(row controlplane.WorkloadEvent, workloads []deployed) string {
	for _, w := range workloads {
		if w.helm() && value(row.HelmWorkloadInstanceID) == w.instanceID || !w.helm() && value(row.WorkloadInstanceID) == w.instanceID {
			return w.name
		}
	}
	return "no workload of the demo"
}
