package controller

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

// TestEvents_HealthAndDelivery_OneForEachChange changes the health and the delivery of a workload step by step.
func TestEvents_HealthAndDelivery_OneForEachChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var got []string
	capture := func(ctx context.Context, ev *eventsv1.Event) error {
		got = append(got, ev.Type+" "+ev.Reason+" "+ev.Note)
		err := shared.client.Create(ctx, ev)
		if err != nil {
			t.Errorf("the API server refuses the Event %s: %v", ev.Reason, err)
		}
		return err
	}
	w.reconciler.events.create = capture
	wl := workload("events-of-changes", "a")
	w.create(wl)
	refused := target.DeliveryProgress{Pending: 2, Refusal: target.UnknownInstance}
	long := strings.Repeat("ü", 5000)
	for i, step := range []struct {
		reason        string
		status, cause string
		progress      target.DeliveryProgress
		restart       bool
		want          []string
	}{
		{reason: "a new workload is Unknown", status: "Unknown", cause: "not seen"},
		{reason: "it works", status: "Healthy", want: []string{"Normal Healthy The workload is Healthy, it was Unknown"}},
		{reason: "reports are pending", status: "Healthy", progress: target.DeliveryProgress{Pending: 1}},
		{reason: "it crashes", status: "Down", cause: "it crashes", want: []string{"Warning Down The workload is Down, it was Healthy: Crash; it crashes"}},
		{reason: "another cause", status: "Down", cause: "it crashes twice"},
		{
			reason: "reports are refused", status: "Down", cause: "it crashes twice", progress: refused,
			want: []string{"Warning UnknownInstance 2 reports are not delivered yet"},
		},
		{reason: "a new process", status: "Down", cause: "it crashes thrice", progress: refused, restart: true},
		{reason: "they are pending again", status: "Down", cause: "it crashes thrice", progress: target.DeliveryProgress{Pending: 1}},
		{reason: "all are delivered", status: "Down", cause: "it crashes thrice", want: []string{"Normal Delivered all reports are delivered"}},
		{reason: "a long cause is cut", status: "Unhealthy", cause: long, want: []string{"Warning Unhealthy The workload is Unhealthy, it was Down: Crash; üü"}},
	} {
		if step.restart {
			w.restart()
			w.reconciler.events.create = capture
		}
		w.verdict(step.status, "", "")
		if step.cause != "" {
			w.verdict(step.status, "Crash", step.cause)
		}
		w.delivery.set(step.progress)
		w.clock = w.clock.Add(time.Minute)
		got = nil
		w.reconcile(wl.Name)
		if !slices.EqualFunc(got, step.want, strings.HasPrefix) {
			t.Errorf("step %d, %s: the Events are %q, want %q", i, step.reason, got, step.want)
		}
	}
}

// The longest name of an object does not fit into the name of an Event. The cut may be behind a dot.
func TestEvents_LongestName_AreWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	written := 0
	w.reconciler.events.create = func(ctx context.Context, ev *eventsv1.Event) error {
		err := shared.client.Create(ctx, ev)
		if err != nil {
			t.Errorf("the API server refuses the Event %s: %v", ev.Name, err)
		}
		written++
		return err
	}
	wl := workload(strings.Repeat("a", 199)+"."+strings.Repeat("b", 53), "a")
	w.create(wl)
	w.verdict("Down", "Crash", "it crashes")
	w.reconcile(wl.Name)
	if written != 1 {
		t.Errorf("%d Events were written, want 1", written)
	}
}
