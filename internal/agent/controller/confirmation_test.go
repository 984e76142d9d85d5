package controller

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/threeport/threeport-agent/api/v1alpha1"
)

func TestReconcile_UnchangedStatus_IsConfirmed(t *testing.T) {
	w := newWorld(t)
	w.reconciler.SetLease(v1alpha1.LeaseReference{Namespace: "agents", Name: "heartbeat"})
	wl := workload("confirmed", "a")
	w.create(wl)
	w.reconcile(wl.Name)
	first := w.stored(wl.Name).Status
	if !first.ConfirmedAt.Time.Equal(w.clock) || first.Lease == nil || first.Lease.Namespace != "agents" {
		t.Errorf("the status was confirmed at %s with the Lease %+v, want %s and the Lease of the agent", first.ConfirmedAt, first.Lease, w.clock)
	}
	for range 5 {
		w.clock = w.clock.Add(resyncInterval)
		w.reconcile(wl.Name)
	}
	if got := w.writes.Load(); got != 1 {
		t.Errorf("the unchanged status was written %d times in 2.5 minutes, want 1", got)
	}
	w.clock = w.clock.Add(confirmInterval)
	w.reconcile(wl.Name)
	again := w.stored(wl.Name).Status
	if got := w.writes.Load(); got != 2 || !again.ConfirmedAt.Time.Equal(w.clock) {
		t.Errorf("after 7.5 minutes the status was written %d times, and confirmed at %s, want 2 and %s", got, again.ConfirmedAt, w.clock)
	}
}

// The CRD of an earlier version has no fields for the confirmation, so the API server drops them.
func TestReconcile_EarlierCRD_WritesNoMoreOften(t *testing.T) {
	w := newWorld(t)
	wl := workload("earlier-crd", "a")
	w.create(wl)
	w.reconciler.SetLease(v1alpha1.LeaseReference{Namespace: "agents", Name: "heartbeat"})
	for range 5 {
		w.reconcile(wl.Name)
		stored := w.stored(wl.Name)
		stored.Status.ConfirmedAt, stored.Status.Lease = nil, nil
		w.must(shared.client.Status().Update(t.Context(), stored))
		w.clock = w.clock.Add(resyncInterval)
	}
	if got := w.writes.Load(); got != 1 {
		t.Errorf("the status was written %d times in 2.5 minutes, want 1", got)
	}
}

// An hour of 1,000 workloads without a change. All were written in the same second, as after a start.
func TestConfirmationWait_ThousandWorkloads_SpreadsWrites(t *testing.T) {
	const workloads = 1000
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	now := start
	r := &Reconciler{now: func() time.Time { return now }, states: newWorkloadStates(start)}
	all := make([]v1alpha1.ThreeportWorkload, workloads)
	for i := range all {
		all[i].UID = uuid.NewUUID()
		all[i].Status.ConfirmedAt = new(metav1.NewTime(start))
	}
	total, peak := 0, 0 // of writes; the peak is that of a second
	for now = start.Add(time.Second); now.Sub(start) <= time.Hour; now = now.Add(time.Second) {
		due := 0
		for i := range all {
			if r.confirmationWait(&all[i]) == 0 {
				all[i].Status.ConfirmedAt = new(metav1.NewTime(now))
				due++
			}
		}
		total, peak = total+due, max(peak, due)
	}
	t.Logf("%d writes in an hour, at most %d in a second", total, peak)
	if least, most := workloads*12, workloads*20; total < least || total > most {
		t.Errorf("%d writes in an hour, want %d to %d", total, least, most)
	}
	if most := workloads * 6 / 100; peak > most {
		t.Errorf("%d writes in a second, want at most %d", peak, most)
	}
}

func TestWorking_NothingReconciled_IsAnError(t *testing.T) {
	w := newWorld(t)
	w.clock = time.Now()
	if err := w.reconciler.Working(); err != nil {
		t.Errorf("without workloads: %v", err)
	}
	wl := workload("works", "a")
	w.create(wl)
	w.reconcile(wl.Name)
	w.clock = w.clock.Add(workingLimit)
	if err := w.reconciler.Working(); err != nil {
		t.Errorf("%s after a reconcile: %v", workingLimit, err)
	}
	w.clock = w.clock.Add(time.Second)
	if err := w.reconciler.Working(); err == nil {
		t.Error("the reconciler works, want an error after the last reconcile")
	}
	w.reconcile(wl.Name)
	if err := w.reconciler.Working(); err != nil {
		t.Errorf("after another reconcile: %v", err)
	}
}
