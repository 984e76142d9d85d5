package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/threeport/threeport-agent/internal/e2e/upstream"
	"github.com/threeport/threeport-agent/internal/e2e/world"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// syntheticRows returns the rows of synthetic Events, whose UIDs contain slashes.
func (w *agentWorld) syntheticRows(reason string) []threeport.WorkloadEvent {
	w.Helper()
	return slices.DeleteFunc(w.allEvents(), func(row threeport.WorkloadEvent) bool {
		return !strings.Contains(*row.RuntimeEventUID, "/") || !strings.HasPrefix(*row.Reason, reason)
	})
}

// awaitSyntheticRows waits for a number of these rows.
func (w *agentWorld) awaitSyntheticRows(reason string, n int) (rows []threeport.WorkloadEvent) {
	w.Helper()
	w.Eventually(fmt.Sprintf("%d rows of %s", n, reason), func() error {
		if rows = w.syntheticRows(reason); len(rows) != n {
			return fmt.Errorf("the control plane has %d", len(rows))
		}
		return nil
	})
	return rows
}

// clusterRows returns the rows of the cluster's Events.
func (w *agentWorld) clusterRows() []threeport.WorkloadEvent {
	w.Helper()
	return slices.DeleteFunc(w.allEvents(), func(row threeport.WorkloadEvent) bool { return strings.Contains(*row.RuntimeEventUID, "/") })
}

// patchStatus patches the status of an object, and waits until the oracle has observed the change.
func (w *agentWorld) patchStatus(obj *unstructured.Unstructured, patch string) {
	w.Helper()
	w.AwaitOracle(w.Patch(obj, patch, "status"))
}

// awaitStatusRow waits for the row of the transition in a ThreeportWorkload's status, and returns it.
func (w *agentWorld) awaitStatusRow(d upstream.Deployed, health string) threeport.WorkloadEvent {
	w.Helper()
	var found threeport.WorkloadEvent
	w.Eventually(fmt.Sprintf("the row of the transition of %s to %s", d.Name, health), func() error {
		cr, err := w.ThreeportWorkload(d)
		if err != nil || cr.Status.Health != health || cr.Status.HealthSince == nil {
			return errors.Join(err, fmt.Errorf("the health is %q since %v", cr.Status.Health, cr.Status.HealthSince))
		}
		uid := fmt.Sprintf("%s/%s/%s", cr.UID, cr.Status.HealthSince.UTC().Format(time.RFC3339), health)
		rows := w.syntheticRows("Workload" + health)
		at := slices.IndexFunc(rows, func(row threeport.WorkloadEvent) bool { return *row.RuntimeEventUID == uid })
		if at < 0 {
			return fmt.Errorf("none of the %d rows is %s", len(rows), uid)
		}
		found = rows[at]
		return nil
	})
	return found
}

// killAndLoseState kills the agent and deletes its state.
func (w *agentWorld) killAndLoseState(state string) {
	w.Helper()
	w.agent.Kill()
	w.Must(os.Remove(filepath.Join(state, "state.db")))
}

// Each termination and transition has one row, even if the agent is killed and its state is lost.
func TestSyntheticEvents_ContainerTerminations(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	w := newWorld(t, "--state-dir="+state)
	d := w.Deploy("single", pod("single"))
	w.ExpectStatus(d, "Healthy")
	healthy := w.awaitStatusRow(d, "Healthy")
	if *healthy.Type != "Normal" || *healthy.WorkloadInstanceID != d.InstanceID {
		t.Errorf("the row of the first transition is %s for instance %d, want Normal for %d", *healthy.Type, *healthy.WorkloadInstanceID, d.InstanceID)
	}
	p := w.Get(d.Objects[0])
	at := time.Now().UTC().Truncate(time.Second)
	status := func(restarts int, reason string) string {
		return fmt.Sprintf(`{"status":{"containerStatuses":[{"name":"app","image":"example/app:1","imageID":"a","ready":true,"started":true,
			"restartCount":%[1]d,"containerID":"c%[1]d","state":{"running":{"startedAt":%[2]q}},
			"lastState":{"terminated":{"exitCode":137,"reason":%[3]q,"containerID":"c%[4]d","finishedAt":%[2]q}}}]}}`,
			restarts, at.Add(time.Duration(restarts)*time.Second).Format(time.RFC3339), reason, restarts-1)
	}
	w.patchStatus(p, status(1, "OOMKilled"))
	rows := w.awaitSyntheticRows("OOMKilled", 1)
	w.AwaitAgreement(world.Expected(d)...)
	if uid := fmt.Sprintf("%s/app/1", p.GetUID()); *rows[0].RuntimeEventUID != uid || *rows[0].Type != "Warning" ||
		!rows[0].Timestamp.Equal(at.Add(time.Second)) || *rows[0].WorkloadResourceInstanceID != d.Resources[0].ThreeportID {
		t.Errorf("the row is %s %s at %s for resource %d, want %s Warning at %s for %d", *rows[0].RuntimeEventUID, *rows[0].Type, rows[0].Timestamp,
			*rows[0].WorkloadResourceInstanceID, uid, at.Add(time.Second), d.Resources[0].ThreeportID)
	}
	// The agent is killed, with and without loss of its state, and changes happen while it is down.
	for restarts := 2; restarts <= 5; restarts++ {
		if restarts%2 == 0 {
			w.agent.Kill()
		} else {
			w.killAndLoseState(state)
		}
		w.patchStatus(p, status(restarts, "Error"))
		w.restart(state)
		w.AwaitAgreement(world.Expected(d)...)
	}
	w.awaitSyntheticRows("ContainerRestarted", 4)
	w.awaitSyntheticRows("OOMKilled", 1)
	w.expectEachOnce()
}

// expectEachOnce expects one row for every Event, synthetic or not.
func (w *agentWorld) expectEachOnce() {
	w.Helper()
	rows := map[string]int{}
	for _, row := range w.allEvents() {
		rows[*row.RuntimeEventUID]++
		if n := rows[*row.RuntimeEventUID]; n > 1 {
			w.Errorf("%d rows have the UID %s (%s)", n, *row.RuntimeEventUID, *row.Reason)
		}
	}
}

// Each termination of a crash loop and each transition has one row, while the agent is killed repeatedly.
func TestSyntheticEvents_CrashLoop_OneRow(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	w := newWorld(t, "--state-dir="+state)
	d := w.Deploy("web", failingDeployment("web", 2, "oom"))
	for turn := range 4 {
		w.Eventually(fmt.Sprintf("%d rows of OOMKilled", 2*(turn+1)), func() error {
			if n := len(w.syntheticRows("OOMKilled")); n < 2*(turn+1) {
				return fmt.Errorf("the control plane has %d", n)
			}
			return nil
		})
		if turn%2 == 0 {
			w.killAndLoseState(state)
		} else {
			w.agent.Kill()
		}
		w.restart(state)
	}
	w.ExpectStatus(d, "Down")
	row := w.awaitStatusRow(d, "Down")
	if *row.Type != "Warning" || !strings.Contains(*row.Message, " → ReplicaSet web-") {
		t.Errorf("the row of the transition is %s: %q, want a Warning with the owner path to the pods", *row.Type, *row.Message)
	}
	w.patch(d.Objects[0], `{"spec":{"replicas":0}}`)
	w.ExpectStatus(d, "Healthy")
	w.awaitStatusRow(d, "Healthy")
	w.AwaitAgreement(world.Expected(d)...)
	w.expectEachOnce()
}

// The resync restores the rows of synthetic Events like those of the cluster's Events.
func TestSyntheticEvents_DeletedRows_AreRestored(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "--resync-interval=5s")
	d := w.Deploy("single", pod("single"))
	w.ExpectStatus(d, "Healthy")
	gone := w.awaitStatusRow(d, "Healthy")
	w.patchStatus(w.Get(d.Objects[0]), fmt.Sprintf(`{"status":{"containerStatuses":[{"name":"app","image":"a","imageID":"a","ready":true,
		"restartCount":1,"state":{"running":{}},"lastState":{"terminated":{"exitCode":1,"reason":"Error","finishedAt":%q}}}]}}`,
		time.Now().UTC().Format(time.RFC3339)))
	rows := w.awaitSyntheticRows("ContainerRestarted", 1)
	w.AwaitAgreement(world.Expected(d)...)
	w.requestByOther(http.MethodDelete, fmt.Sprintf("/v0/workload-events/%d", *rows[0].ID), "")
	w.requestByOther(http.MethodPatch, fmt.Sprintf("/v0/workload-events/%d", *gone.ID), `{"Message":"by hand"}`)
	w.Eventually("the resync to restore the rows", func() error {
		again := w.syntheticRows("ContainerRestarted")
		transition := w.awaitStatusRow(d, "Healthy")
		if len(again) != 1 || *again[0].Message != *rows[0].Message || *transition.Message != *gone.Message {
			return fmt.Errorf("the restart has %d rows, and the message of the transition is %q", len(again), *transition.Message)
		}
		return nil
	})
	w.AwaitAgreement(world.Expected(d)...)
}

// notHealthySince in the status is the time of the Event about the transition from Healthy.
func TestSyntheticEvents_NotHealthySince_IsTimeOfRow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.Deploy("web", deployment("web", 2))
	w.ExpectStatus(d, "Healthy")
	w.awaitStatusRow(d, "Healthy")
	w.patch(d.Objects[0], `{"spec":{"template":{"metadata":{"annotations":{"kwok.threeport.io/behaviour":"crash-loop"}}}}}`)
	w.Eventually("the row of the transition from Healthy", func() error {
		cr, err := w.ThreeportWorkload(d)
		if err != nil {
			return err
		}
		began := cr.Status.NotHealthySince
		if began == nil || cr.Status.HealthSince.Before(began) {
			return fmt.Errorf("the health is %s since %v, not Healthy since %v", cr.Status.Health, cr.Status.HealthSince, began)
		}
		for _, row := range w.syntheticRows("Workload") {
			if row.Timestamp.Equal(began.Time) && strings.Contains(*row.Message, ", it was Healthy") {
				return nil
			}
		}
		return fmt.Errorf("no row has the time %s", began)
	})
	w.patch(d.Objects[0], `{"spec":{"replicas":0}}`)
	w.ExpectStatus(d, "Healthy")
	w.Eventually("the end in the status", func() error {
		cr, err := w.ThreeportWorkload(d)
		if err == nil && (cr.Status.Health != "Healthy" || cr.Status.NotHealthySince != nil) {
			err = fmt.Errorf("the health is %s, not Healthy since %v", cr.Status.Health, cr.Status.NotHealthySince)
		}
		return err
	})
}
