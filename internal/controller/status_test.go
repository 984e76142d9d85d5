package controller

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/target"
)

func TestStatusIsWrittenOnChangeAndNotTooOften(t *testing.T) {
	w := newWorld(t)
	wl := workload("status", "a")
	w.create(wl)
	expect := func(writes int64, health, why string) {
		t.Helper()
		if got := w.writes.Load(); got != writes {
			t.Errorf("%d writes, expected %d: %s", got, writes, why)
		}
		if got := w.stored(wl.Name).Status.Health; got != health {
			t.Errorf("health is %s, expected %s: %s", got, health, why)
		}
	}
	w.reconcile(wl.Name)
	expect(1, "Healthy", "the first status is written at once")
	w.clock = w.clock.Add(time.Second)
	if got := w.reconcile(wl.Name).RequeueAfter; got != resyncInterval {
		t.Errorf("it is looked at again in %s, expected %s", got, resyncInterval)
	}
	expect(1, "Healthy", "nothing changed")
	w.watcher.health = "Unhealthy"
	if got := w.reconcile(wl.Name).RequeueAfter; got != statusInterval-time.Second {
		t.Errorf("it is looked at again in %s, expected the rest of %s", got, statusInterval)
	}
	expect(1, "Healthy", "the last write was a second ago")
	w.clock = w.clock.Add(statusInterval)
	w.reconcile(wl.Name)
	expect(2, "Unhealthy", "the last write was long ago")
	w.watcher.health, w.watcher.state = "Down", target.Absent
	w.reconcile(wl.Name)
	expect(3, "Down", "a resource's state changed, which is not delayed")
	w.delivery.set(Progress{Pending: 3, Since: w.clock.Add(-time.Second)})
	if got := w.reconcile(wl.Name).RequeueAfter; got != statusInterval {
		t.Errorf("it is looked at again in %s while reports are pending, expected %s", got, statusInterval)
	}
	expect(3, "Down", "a report that is just on its way is not worth a write")
	w.clock = w.clock.Add(time.Minute)
	w.reconcile(wl.Name)
	expect(4, "Down", "delivery is behind")
	if d := w.stored(wl.Name).Status.Delivery; d.Pending != 3 || d.PendingSince == nil {
		t.Errorf("delivery is %+v, expected 3 pending since then", d)
	}
}

func TestStatusTellsOfTheSpecThatItIsAbout(t *testing.T) {
	w := newWorld(t)
	wl := workload("generation", "a")
	w.create(wl)
	w.reconcile(wl.Name)
	stored := w.stored(wl.Name)
	stored.Spec.WorkloadResourceInstances = workload("other", "a", "b").Spec.WorkloadResourceInstances
	w.must(shared.client.Update(t.Context(), stored))
	w.reconcile(wl.Name)
	stored = w.stored(wl.Name)
	if got := stored.Status.ObservedGeneration; got != stored.Generation || len(stored.Status.Resources) != 2 {
		t.Errorf("the status is about generation %d with %d resources, expected %d with 2", got, len(stored.Status.Resources), stored.Generation)
	}
	for _, c := range stored.Status.Conditions {
		if c.ObservedGeneration != stored.Generation {
			t.Errorf("condition %s is about generation %d, expected %d", c.Type, c.ObservedGeneration, stored.Generation)
		}
	}
}

func TestConditions(t *testing.T) {
	for _, c := range []struct {
		reason             string
		state              target.State
		troubles           []string
		progress           Progress
		watching, delivery string // status and reason
		message            string
	}{
		{"all is well", target.Present, nil, Progress{}, "True Watching", "True Delivered", "1 resources are watched"},
		{"an absent object is watched", target.Absent, nil, Progress{}, "True Watching", "True Delivered", ""},
		{"a forbidden one is not", target.Forbidden, nil, Progress{}, "False NotAllWatched", "True Delivered", "ConfigMap default/a is Forbidden"},
		{"one that is awaited is not yet", target.Pending, nil, Progress{}, "False NotAllWatched", "True Delivered", "is Pending"},
		{"one of a kind that is not installed is not", target.KindNotInstalled, nil, Progress{}, "False NotAllWatched", "True Delivered", "is KindNotInstalled"},
		{"one of a kind without answers is not", target.Unavailable, nil, Progress{}, "False NotAllWatched", "True Delivered", "is Unavailable"},
		{"Pods are not watched", target.Present, []string{"Pod: permission missing"}, Progress{}, "False NotAllWatched", "True Delivered", "Pod: permission missing"},
		{"reports are pending for long", target.Present, nil, Progress{Pending: 2, LastError: "no route"}, "True Watching", "False Pending", "2 reports are not accepted yet: no route"},
		{"reports were rejected", target.Present, nil, Progress{Rejected: 1, Rejections: []v1alpha1.Rejection{{Report: "r", Reason: "no", Time: metav1.Now()}}}, "True Watching", "False Rejected", "1 reports were refused"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			w := newWorld(t)
			wl := workload("conditions", "a")
			w.create(wl)
			w.watcher.state, w.watcher.troubles = c.state, c.troubles
			w.delivery.set(c.progress)
			w.reconcile(wl.Name)
			status := w.stored(wl.Name).Status
			var messages []string
			for typ, want := range map[string]string{v1alpha1.ConditionWatching: c.watching, v1alpha1.ConditionDelivered: c.delivery} {
				got := meta.FindStatusCondition(status.Conditions, typ)
				if got == nil || string(got.Status)+" "+got.Reason != want {
					t.Errorf("condition %s is %v, expected %s", typ, got, want)
					continue
				}
				messages = append(messages, got.Message)
			}
			if all := strings.Join(messages, "\n"); !strings.Contains(all, c.message) {
				t.Errorf("the conditions say %q, expected %q", all, c.message)
			}
		})
	}
}

// What others put into errors, reasons and messages must not make a status that the API server refuses.
func TestStatusOfManyResourcesFits(t *testing.T) {
	w := newWorld(t)
	var names []string
	for n := range 2000 {
		names = append(names, fmt.Sprintf("a-config-map-with-quite-a-long-name-%d", n))
	}
	wl := workload("large", names...)
	w.create(wl)
	long := strings.Repeat("ü€😀\xff", 100_000)
	w.watcher.state, w.watcher.message, w.watcher.reason = target.Forbidden, long, long
	w.watcher.healthReason, w.watcher.healthMessage = "Forbidden", long
	w.watcher.troubles = []string{long, long}
	rejection := v1alpha1.Rejection{Report: "operation of a ConfigMap", Reason: long, Time: metav1.Now()}
	w.delivery.set(Progress{Pending: 1, LastError: long, Rejected: 2, Rejections: []v1alpha1.Rejection{rejection, rejection}})
	w.reconcile(wl.Name)
	stored := w.stored(wl.Name)
	if len(stored.Status.Resources) != 2000 {
		t.Fatalf("the status has %d resources, expected 2000", len(stored.Status.Resources))
	}
	text, err := json.Marshal(stored)
	w.must(err)
	if len(text) > 1_500_000 || !utf8.Valid(text) {
		t.Errorf("the workload has %d bytes, valid UTF-8: %v; expected less than 1.5 MB, valid", len(text), utf8.Valid(text))
	}
}

func TestShorten(t *testing.T) {
	for _, c := range []struct {
		reason, in string
		resources  int
		most       int
	}{
		{"a short message stays", "short", 1, 5},
		{"one resource has room", strings.Repeat("x", 1000), 1, 512 + len("…")},
		{"of many each has little", strings.Repeat("x", 1000), 2000, 100 + len("…")},
		{"of very many each has something", strings.Repeat("x", 1000), 100_000, 40 + len("…")},
		{"none", strings.Repeat("x", 1000), 0, 512 + len("…")},
		{"a cut within a character", strings.Repeat("€", 1000), 1, 512 + len("…")},
		{"what is not UTF-8", "a\xffb", 1, 10},
		{"what is not UTF-8 and long", strings.Repeat("\xff", 1000), 1, 512 + len("…")},
	} {
		t.Run(c.reason, func(t *testing.T) {
			got := shorten(c.in, c.resources)
			if len(got) > c.most || !utf8.ValidString(got) {
				t.Errorf("it became %d bytes, valid UTF-8: %v; expected at most %d, valid", len(got), utf8.ValidString(got), c.most)
			}
			if utf8.ValidString(c.in) && !strings.HasPrefix(c.in, strings.TrimSuffix(got, "…")) {
				t.Errorf("it became %q, expected its beginning", got)
			}
		})
	}
}
