package controller

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/agent/target"
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

func TestConditionDurable(t *testing.T) {
	for _, c := range []struct {
		reason string
		kept   bool
		err    error
		want   string
		says   string
	}{
		{"the state is on disk", true, nil, "True Kept", "outlives"},
		{"the disk is full", true, errors.New("no space left"), "False StateFailing", "no space left"},
		{"there is no folder", false, nil, "False NoStateDir", "--state-dir"},
	} {
		got := durable(7, c.kept, c.err)
		if string(got.Status)+" "+got.Reason != c.want || !strings.Contains(got.Message, c.says) || got.ObservedGeneration != 7 {
			t.Errorf("%s: the condition is %+v, expected %s", c.reason, got, c.want)
		}
	}
	w := newWorld(t)
	wl := workload("durable", "a")
	w.create(wl)
	w.delivery.lost = errors.New("no space left")
	w.delivery.set(Progress{Dropped: 5})
	w.reconcile(wl.Name)
	status := w.stored(wl.Name).Status
	if c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionDurable); c == nil || c.Reason != "StateFailing" {
		t.Errorf("the condition is %+v", c)
	}
	if c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionDelivered); status.Delivery.Dropped != 5 || !strings.Contains(c.Message, "5 Events") {
		t.Errorf("%d were dropped, and the condition is %+v", status.Delivery.Dropped, c)
	}
}

func TestRejectedReportsAreSentAgainOnDemand(t *testing.T) {
	w := newWorld(t)
	wl := workload("retry", "a")
	w.create(wl)
	expect := func(retried int, shown, why string) {
		t.Helper()
		w.reconcile(wl.Name)
		if got := len(w.delivery.retried); got != retried {
			t.Errorf("sent again %d times, expected %d: %s", got, retried, why)
		}
		if got := w.stored(wl.Name).Status.Delivery.Retried; got != shown {
			t.Errorf("shown is %q, expected %q: %s", got, shown, why)
		}
	}
	annotate := func(value string) {
		t.Helper()
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.AnnotationRetryRejected, value)
		w.must(shared.client.Patch(t.Context(), wl, client.RawPatch(types.MergePatchType, []byte(patch))))
	}
	expect(0, "", "there is no annotation")
	annotate("1")
	expect(1, "1", "it is new")
	expect(1, "1", "it is the same")
	annotate("2")
	expect(2, "2", "it changed, which is not delayed")
	long := strings.Repeat("x", 5000)
	annotate(long)
	w.reconcile(wl.Name)
	if got := w.stored(wl.Name).Status.Delivery.Retried; len(got) == 0 || len(got) > 600 {
		t.Errorf("shown are %d bytes", len(got))
	}
	expect(3, w.stored(wl.Name).Status.Delivery.Retried, "a long value is one change")
}

func TestResourceStatuses(t *testing.T) {
	resource := target.Resource{Ref: target.Ref{Group: "apps", Kind: "Deployment", Namespace: "ns", Name: "web"}, Version: "v1", ID: 7}
	key := target.Resource{Ref: resource.Ref, ID: 7}
	for _, c := range []struct {
		reason      string
		sight       target.ResourceStatus
		now, before map[target.Resource]Operation
		want        v1alpha1.ResourceStatus
	}{
		{"well", target.ResourceStatus{State: target.Present, Health: "Healthy"}, nil, nil, v1alpha1.ResourceStatus{State: "Present", Health: "Healthy"}},
		{
			"with pods and a cause",
			target.ResourceStatus{State: target.Present, Health: "Down", Reason: "Crash", Cause: "why", Pods: target.Count{Total: 3, Healthy: 1}},
			nil, nil,
			v1alpha1.ResourceStatus{State: "Present", Health: "Down", Reason: "Crash", Message: "why", Pods: &v1alpha1.Count{Total: 3, Healthy: 1}},
		},
		{
			"watched in another version, with a cause",
			target.ResourceStatus{State: target.Present, Health: "Down", Message: "watched as v2", Cause: "why"},
			nil, nil,
			v1alpha1.ResourceStatus{State: "Present", Health: "Down", Message: "watched as v2; why"},
		},
		{
			"the cause is the state",
			target.ResourceStatus{State: target.Forbidden, Health: "Unknown", Message: "list is missing", Cause: "list is missing"},
			nil, nil,
			v1alpha1.ResourceStatus{State: "Forbidden", Health: "Unknown", Message: "list is missing"},
		},
		{
			"accepted",
			target.ResourceStatus{State: target.Present},
			map[target.Resource]Operation{key: {"ADDED", "5"}},
			map[target.Resource]Operation{{Ref: resource.Ref}: {"MODIFIED", "4"}},
			v1alpha1.ResourceStatus{State: "Present", LastOperation: "ADDED", ReportedResourceVersion: "5"},
		},
		{
			"accepted in an earlier process",
			target.ResourceStatus{State: target.Absent},
			nil,
			map[target.Resource]Operation{{Ref: resource.Ref}: {"DELETED", ""}},
			v1alpha1.ResourceStatus{State: "Absent", LastOperation: "DELETED"},
		},
		{
			"another row's",
			target.ResourceStatus{State: target.Present},
			map[target.Resource]Operation{{Ref: resource.Ref, ID: 8}: {"ADDED", "5"}},
			nil,
			v1alpha1.ResourceStatus{State: "Present"},
		},
	} {
		t.Run(c.reason, func(t *testing.T) {
			c.sight.Resource = resource
			c.want.Group, c.want.Version, c.want.Kind, c.want.Namespace, c.want.Name = "apps", "v1", "Deployment", "ns", "web"
			got := resourceStatuses([]target.ResourceStatus{c.sight}, c.now, c.before)
			if len(got) != 1 || weigh(v1alpha1.ThreeportWorkloadStatus{Resources: got}, v1alpha1.ThreeportWorkloadStatus{Resources: []v1alpha1.ResourceStatus{c.want}}) != none {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

// What the control plane has accepted stands in the status, also where this process was not told.
func TestReportedVersionsOutliveAProcess(t *testing.T) {
	w := newWorld(t)
	wl := workload("reported", "a", "b")
	w.create(wl)
	w.delivery.set(Progress{Operations: operationsOf(wl)})
	w.reconcile(wl.Name)
	w.delivery.set(Progress{})
	w.restart()
	w.reconcile(wl.Name)
	w.clock = w.clock.Add(time.Hour)
	w.reconcile(wl.Name)
	for _, r := range w.stored(wl.Name).Status.Resources {
		if r.LastOperation != "MODIFIED" || r.ReportedResourceVersion != "1234567890" {
			t.Errorf("after a restart the status says %+v", r)
		}
	}
	stored := w.stored(wl.Name)
	stored.Spec.WorkloadInstanceID++ // another row has accepted nothing yet
	w.must(shared.client.Update(t.Context(), stored))
	w.reconcile(wl.Name)
	for _, r := range w.stored(wl.Name).Status.Resources {
		if r.LastOperation != "" || r.ReportedResourceVersion != "" {
			t.Errorf("of another instance the status says %+v", r)
		}
	}
}

func TestDelayOfDelivery(t *testing.T) {
	for delay, want := range map[time.Duration]int64{
		0: 0, 5 * time.Second: 0, 6 * time.Second: 5, 29 * time.Second: 10, 30 * time.Second: 30, 119 * time.Second: 60,
		10 * time.Minute: 600, 59 * time.Minute: 1800, time.Hour: 3600, 9*time.Hour + 59*time.Minute: 9 * 3600,
	} {
		w := newWorld(t)
		d := w.reconciler.deliveryStatus(Progress{Pending: 2, Since: w.clock.Add(-delay)})
		if d.DelaySeconds != want || (d.Pending == 2) != (want > 0) || (d.PendingSince != nil) != (want > 0) {
			t.Errorf("behind by %s, delivery is %+v; expected a delay of %d s", delay, d, want)
		}
	}
}

// A rejection has a time that is stored in seconds: it must not look like a change each time.
func TestARejectionIsWrittenOnce(t *testing.T) {
	w := newWorld(t)
	wl := workload("rejection", "a")
	w.create(wl)
	w.delivery.set(Progress{Rejected: 1, Rejections: []v1alpha1.Rejection{{Report: "r", Reason: "no", Time: metav1.Now()}}})
	for range 5 {
		w.reconcile(wl.Name)
		w.clock = w.clock.Add(time.Minute)
	}
	if got := w.writes.Load(); got != 1 {
		t.Errorf("it was written %d times", got)
	}
}
