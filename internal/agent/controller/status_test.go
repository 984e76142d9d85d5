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

func TestReconcile_WritesStatusWithinBudget(t *testing.T) {
	w := newWorld(t)
	wl := workload("status", "a")
	w.create(wl)
	expect := func(writes int64, health, why string) {
		t.Helper()
		if got := w.writes.Load(); got != writes {
			t.Errorf("%d writes, want %d: %s", got, writes, why)
		}
		if got := w.stored(wl.Name).Status.Health; got != health {
			t.Errorf("health is %s, want %s: %s", got, health, why)
		}
	}
	w.reconcile(wl.Name)
	expect(1, "Healthy", "the first status is written at once")
	w.clock = w.clock.Add(time.Second)
	if got := w.reconcile(wl.Name).RequeueAfter; got != resyncInterval {
		t.Errorf("the requeue is after %s, want %s", got, resyncInterval)
	}
	expect(1, "Healthy", "nothing changed")
	w.reporter.health = "Unhealthy"
	if got := w.reconcile(wl.Name).RequeueAfter; got != statusInterval-time.Second {
		t.Errorf("the requeue is after %s, want the rest of %s", got, statusInterval)
	}
	expect(1, "Healthy", "the last write was a second ago")
	w.clock = w.clock.Add(statusInterval)
	w.reconcile(wl.Name)
	expect(2, "Unhealthy", "the last write was long ago")
	w.reporter.health, w.reporter.state = "Down", target.Absent
	w.reconcile(wl.Name)
	expect(3, "Down", "a change of a resource's state is written at once")
	w.delivery.set(target.DeliveryProgress{Pending: 3, Since: w.clock.Add(-time.Second)})
	if got := w.reconcile(wl.Name).RequeueAfter; got != statusInterval {
		t.Errorf("the requeue is after %s while reports are pending, want %s", got, statusInterval)
	}
	expect(3, "Down", "a young pending report does not change the status")
	w.clock = w.clock.Add(time.Minute)
	w.reconcile(wl.Name)
	expect(4, "Down", "the pending reports are late")
	if d := w.stored(wl.Name).Status.Delivery; d.Pending != 3 || d.PendingSince == nil {
		t.Errorf("delivery is %+v, want 3 pending with their time", d)
	}
}

func TestReconcile_SpecChanges_SetsObservedGeneration(t *testing.T) {
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
		t.Errorf("the status has generation %d and %d resources, want %d and 2", got, len(stored.Status.Resources), stored.Generation)
	}
	for _, c := range stored.Status.Conditions {
		if c.ObservedGeneration != stored.Generation {
			t.Errorf("condition %s has generation %d, want %d", c.Type, c.ObservedGeneration, stored.Generation)
		}
	}
}

func TestReconcile_Conditions(t *testing.T) {
	for _, c := range []struct {
		reason             string
		state              target.State
		baseKindErrors     []string
		progress           target.DeliveryProgress
		labelled           string // the namespace of an object with the label
		watching, delivery string // status and reason
		message            string
	}{
		{
			reason:   "everything is present and delivered",
			state:    target.Present,
			progress: target.DeliveryProgress{},
			watching: "True Watching",
			delivery: "True Delivered",
			message:  "1 resource is watched",
		},
		{
			reason:   "an absent object is watched",
			state:    target.Absent,
			progress: target.DeliveryProgress{},
			watching: "True Watching",
			delivery: "True Delivered",
		},
		{
			reason:   "a forbidden resource is not watched",
			state:    target.Forbidden,
			progress: target.DeliveryProgress{},
			watching: "False NotAllWatched",
			delivery: "True Delivered",
			message:  "ConfigMap default/a is Forbidden",
		},
		{
			reason:   "a pending resource is not watched yet",
			state:    target.Pending,
			progress: target.DeliveryProgress{},
			watching: "False NotAllWatched",
			delivery: "True Delivered",
			message:  "is Pending",
		},
		{
			reason:   "a resource is unwatched while its kind is not installed",
			state:    target.KindNotInstalled,
			progress: target.DeliveryProgress{},
			watching: "False NotAllWatched",
			delivery: "True Delivered",
			message:  "is KindNotInstalled",
		},
		{
			reason:   "a resource of an unavailable kind is not watched",
			state:    target.Unavailable,
			progress: target.DeliveryProgress{},
			watching: "False NotAllWatched",
			delivery: "True Delivered",
			message:  "is Unavailable",
		},
		{
			reason:         "Pods are not watched",
			state:          target.Present,
			baseKindErrors: []string{"Pod: permission missing"},
			progress:       target.DeliveryProgress{},
			watching:       "False NotAllWatched",
			delivery:       "True Delivered",
			message:        "Pod: permission missing",
		},
		{
			reason:   "late reports are pending",
			state:    target.Present,
			progress: target.DeliveryProgress{Pending: 2, LastError: "no route"},
			watching: "True Watching",
			delivery: "False Pending",
			message:  "2 reports are not delivered yet: no route",
		},
		{
			reason:   "the control plane has not assigned the instance to the cluster",
			state:    target.Present,
			progress: target.DeliveryProgress{Pending: 2, LastError: "assign it", Refusal: target.NotAssigned},
			watching: "True Watching",
			delivery: "False NotAssigned",
			message:  "2 reports are not delivered yet: assign it",
		},
		{
			reason:   "reports were rejected",
			state:    target.Present,
			progress: target.DeliveryProgress{Rejected: 1, Rejections: []target.Rejection{{Report: "r", Reason: "no", Time: time.Now()}}},
			watching: "True Watching",
			delivery: "False Rejected",
			message:  "1 report was rejected",
		},
		{
			reason:   "the control plane removed the instance",
			state:    target.Present,
			progress: target.DeliveryProgress{Removed: []int64{0, 5}},
			watching: "True Watching",
			delivery: "False InstanceRemoved",
			message:  "the control plane removed WorkloadInstance ",
		},
		{
			reason:   "the control plane removed a resource that is no longer listed",
			state:    target.Present,
			progress: target.DeliveryProgress{Removed: []int64{5}},
			watching: "True Watching",
			delivery: "True Delivered",
		},
		{
			reason:   "the label of another namespace does not count",
			state:    target.Present,
			labelled: "evil",
			watching: "True Watching",
			delivery: "True Delivered",
			message: "1 object has the label of the workload in a namespace where it does not count; the annotation " +
				"control-plane.threeport.io/namespaces adds namespaces: Pod evil/labelled",
		},
	} {
		t.Run(c.reason, func(t *testing.T) {
			w := newWorld(t)
			wl := workload("conditions", "a")
			w.create(wl)
			w.reporter.state, w.reporter.baseKindErrors = c.state, c.baseKindErrors
			w.delivery.set(c.progress)
			if c.labelled != "" {
				w.targets.Upsert(target.Object{
					Identity:  target.Identity{Ref: target.Ref{Kind: "Pod", Namespace: c.labelled, Name: "labelled"}, UID: "uid"},
					Instances: []target.Instance{instanceOf(wl)},
				})
			}
			w.reconcile(wl.Name)
			status := w.stored(wl.Name).Status
			var messages []string
			for typ, want := range map[string]string{v1alpha1.ConditionWatching: c.watching, v1alpha1.ConditionDelivered: c.delivery} {
				got := meta.FindStatusCondition(status.Conditions, typ)
				if got == nil || string(got.Status)+" "+got.Reason != want {
					t.Errorf("condition %s is %v, want %s", typ, got, want)
					continue
				}
				messages = append(messages, got.Message)
			}
			if all := strings.Join(messages, "\n"); !strings.Contains(all, c.message) {
				t.Errorf("the messages are %q, want %q among them", all, c.message)
			}
		})
	}
}

func TestDurableCondition(t *testing.T) {
	for _, c := range []struct {
		reason  string
		durable bool
		err     error
		want    string
		message string
	}{
		{reason: "the state is on disk", durable: true, want: "True Kept", message: "survive a restart"},
		{
			reason:  "the disk is full",
			durable: true,
			err:     errors.New("no space left"),
			want:    "False StateFailing",
			message: "no space left",
		},
		{reason: "there is no state directory", want: "False NoStateDir", message: "lost on restart; set --state-dir"},
	} {
		got := durableCondition(7, c.durable, c.err)
		if string(got.Status)+" "+got.Reason != c.want || !strings.Contains(got.Message, c.message) || got.ObservedGeneration != 7 {
			t.Errorf("%s: the condition is %+v, want %s", c.reason, got, c.want)
		}
	}
	w := newWorld(t)
	wl := workload("durable", "a")
	w.create(wl)
	w.delivery.durableErr = errors.New("no space left")
	w.delivery.set(target.DeliveryProgress{Dropped: 5})
	w.reconcile(wl.Name)
	status := w.stored(wl.Name).Status
	if c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionDurable); c == nil || c.Reason != "StateFailing" {
		t.Errorf("the condition is %+v, want StateFailing", c)
	}
	if c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionDelivered); status.Delivery.Dropped != 5 || !strings.Contains(c.Message, "5 Events were dropped") {
		t.Errorf("%d Events were dropped and the condition is %+v; want 5 in both", status.Delivery.Dropped, c)
	}
}

func TestReconcile_RetryAnnotation_SendsRejectedAgain(t *testing.T) {
	w := newWorld(t)
	wl := workload("retry", "a")
	w.create(wl)
	expect := func(retried int, shown, why string) {
		t.Helper()
		w.reconcile(wl.Name)
		if got := len(w.delivery.retried); got != retried {
			t.Errorf("RetryRejected was called %d times, want %d: %s", got, retried, why)
		}
		if got := w.stored(wl.Name).Status.Delivery.Retried; got != shown {
			t.Errorf("retried is %q, want %q: %s", got, shown, why)
		}
	}
	annotate := func(value string) {
		t.Helper()
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.AnnotationRetryRejected, value)
		w.must(shared.client.Patch(t.Context(), wl, client.RawPatch(types.MergePatchType, []byte(patch))))
	}
	expect(0, "", "there is no annotation")
	annotate("1")
	expect(1, "1", "the annotation is new")
	expect(1, "1", "the annotation is unchanged")
	annotate("2")
	expect(2, "2", "a changed annotation takes effect at once")
	long := strings.Repeat("x", 5000)
	annotate(long)
	w.reconcile(wl.Name)
	if got := w.stored(wl.Name).Status.Delivery.Retried; len(got) == 0 || len(got) > 600 {
		t.Errorf("retried has %d bytes, want 1 to 600", len(got))
	}
	expect(3, w.stored(wl.Name).Status.Delivery.Retried, "a truncated value is one change")
}

func TestReconcile_ReportAgainAnnotation_ReportsOnceForEachValue(t *testing.T) {
	w := newWorld(t)
	wl := workload("again", "a")
	wl.Annotations = map[string]string{v1alpha1.AnnotationReportAgain: "0"}
	w.create(wl)
	for _, step := range []struct {
		annotation, why string
		want            int
	}{
		{"0", "an earlier process has seen the value, or nothing was reported before", 0},
		{"1", "the value is new", 1},
		{"1", "the value is unchanged", 1},
		{"2", "the value is new again", 2},
		{"", "the annotation is empty", 2},
	} {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.AnnotationReportAgain, step.annotation)
		w.must(shared.client.Patch(t.Context(), wl, client.RawPatch(types.MergePatchType, []byte(patch))))
		w.reconcile(wl.Name)
		if got := len(w.reporter.reportedAgain); got != step.want {
			t.Errorf("the workload was reported again %d times, want %d: %s", got, step.want, step.why)
		}
	}
}

// The write of a status may have to wait, or fail. The annotation takes effect once meanwhile.
func TestTakeRetryRequest_StatusNotWritten_IsTrueOnce(t *testing.T) {
	r := New(nil, nil, nil, nil, nil, nil)
	wl := workload("retry", "a")
	for i, want := range []struct {
		annotation, written string
		isNew               bool
	}{{"1", "", true}, {"1", "", false}, {"1", "1", false}, {"2", "1", true}, {"2", "1", false}, {"2", "2", false}, {"", "2", false}, {"2", "", true}} {
		wl.Annotations = map[string]string{v1alpha1.AnnotationRetryRejected: want.annotation}
		wl.Status.Delivery.Retried = want.written
		if got := r.takeRetryRequest(wl); got != want.isNew {
			t.Errorf("step %d, annotation %q, written %q: %t, want %t", i, want.annotation, want.written, got, want.isNew)
		}
	}
}

func TestSetHealthSince(t *testing.T) {
	now := time.Date(2026, 1, 31, 12, 0, 0, 5, time.UTC)
	earlier, current := &metav1.Time{Time: now.Add(-time.Hour).Truncate(time.Second)}, &metav1.Time{Time: now.Truncate(time.Second)}
	resource := func(health string, since *metav1.Time) []v1alpha1.ResourceStatus {
		return []v1alpha1.ResourceStatus{{Kind: "Pod", Namespace: "ns", Name: "a", Health: health, HealthSince: since}}
	}
	recorded := &metav1.Time{Time: now.Add(-time.Minute).Truncate(time.Second)}
	started := &metav1.Time{Time: now.Add(-3 * time.Second).Truncate(time.Second)}
	for _, c := range []struct {
		reason   string
		health   string
		recorded *metav1.Time // by the cluster
		before   []v1alpha1.ResourceStatus
		want     *metav1.Time
	}{
		{"the first status", "Down", nil, nil, current},
		{"the health is unchanged", "Down", recorded, resource("Down", earlier), earlier},
		{"the health changed", "Down", nil, resource("Unhealthy", earlier), current},
		{"the cluster records the change", "Down", recorded, resource("Unhealthy", earlier), recorded},
		{"the cluster records an earlier time", "Down", &metav1.Time{Time: now.Add(-2 * time.Hour)}, resource("Unhealthy", earlier), earlier},
		{"the cluster's clock is ahead", "Down", &metav1.Time{Time: now.Add(time.Minute)}, nil, current},

		{"another health after the start", "Down", recorded, resource("Unknown", started), recorded},
		{"an earlier record", "Down", recorded, resource("Down", started), recorded},
		{"no record", "Down", nil, resource("Down", started), started},
		{"it was Healthy", "Down", recorded, resource("Healthy", nil), recorded},
		{"an earlier agent wrote no time", "Down", nil, resource("Down", nil), current},
		{"it is Healthy", "Healthy", recorded, resource("Down", earlier), nil},
		{"it is not assessed", "", nil, resource("Down", earlier), nil},
	} {
		got := resource(c.health, c.recorded)
		setHealthSince(got, c.before, started.Time, now)
		if !got[0].HealthSince.Equal(c.want) {
			t.Errorf("%s: healthSince is %v, want %v", c.reason, got[0].HealthSince, c.want)
		}
	}
}

func TestResourceStatuses(t *testing.T) {
	resource := target.Resource{Ref: target.Ref{Group: "apps", Kind: "Deployment", Namespace: "ns", Name: "web"}, Version: "v1", ID: 7}
	key := target.Resource{Ref: resource.Ref, ID: 7}
	for _, c := range []struct {
		reason   string
		observed target.ResourceStatus
		accepted map[target.Resource]target.LastOperation
		stored   map[target.Ref]v1alpha1.ResourceStatus
		want     v1alpha1.ResourceStatus
	}{
		{
			reason:   "Healthy",
			observed: target.ResourceStatus{State: target.Present, Health: "Healthy"},
			want:     v1alpha1.ResourceStatus{State: "Present", Health: "Healthy"},
		},
		{
			reason:   "with pods and a cause",
			observed: target.ResourceStatus{State: target.Present, Health: "Down", Reason: "Crash", Cause: "why", Pods: target.Count{Total: 3, Healthy: 1}},
			want:     v1alpha1.ResourceStatus{State: "Present", Health: "Down", Reason: "Crash", Message: "why", Pods: &v1alpha1.Count{Total: 3, Healthy: 1}},
		},
		{
			reason:   "watched in another version, with a cause",
			observed: target.ResourceStatus{State: target.Present, Health: "Down", Message: "watched as v2", Cause: "why"},
			want:     v1alpha1.ResourceStatus{State: "Present", Health: "Down", Message: "watched as v2; why"},
		},
		{
			reason:   "cause and message are equal",
			observed: target.ResourceStatus{State: target.Forbidden, Health: "Unknown", Message: "list is missing", Cause: "list is missing"},
			want:     v1alpha1.ResourceStatus{State: "Forbidden", Health: "Unknown", Message: "list is missing"},
		},
		{
			reason:   "accepted",
			observed: target.ResourceStatus{State: target.Present},
			accepted: map[target.Resource]target.LastOperation{key: {ResourceVersion: "5"}},
			stored:   map[target.Ref]v1alpha1.ResourceStatus{resource.Ref: {LastOperation: "MODIFIED", ReportedResourceVersion: "4"}},
			want:     v1alpha1.ResourceStatus{State: "Present", LastOperation: "ADDED", ReportedResourceVersion: "5"},
		},
		{
			reason:   "accepted again",
			observed: target.ResourceStatus{State: target.Present},
			accepted: map[target.Resource]target.LastOperation{key: {ResourceVersion: "5", Modified: true}},
			want:     v1alpha1.ResourceStatus{State: "Present", LastOperation: "MODIFIED", ReportedResourceVersion: "5"},
		},
		{
			reason:   "a deletion accepted",
			observed: target.ResourceStatus{State: target.Absent},
			accepted: map[target.Resource]target.LastOperation{key: {Deleted: true}},
			stored:   map[target.Ref]v1alpha1.ResourceStatus{resource.Ref: {LastOperation: "MODIFIED", ReportedResourceVersion: "4"}},
			want:     v1alpha1.ResourceStatus{State: "Absent", LastOperation: "DELETED"},
		},
		{
			reason:   "accepted in an earlier process",
			observed: target.ResourceStatus{State: target.Absent},
			stored:   map[target.Ref]v1alpha1.ResourceStatus{resource.Ref: {LastOperation: "DELETED"}},
			want:     v1alpha1.ResourceStatus{State: "Absent", LastOperation: "DELETED"},
		},
		{
			reason:   "accepted for another row",
			observed: target.ResourceStatus{State: target.Present},
			accepted: map[target.Resource]target.LastOperation{{Ref: resource.Ref, ID: 8}: {ResourceVersion: "5"}},
			want:     v1alpha1.ResourceStatus{State: "Present"},
		},
	} {
		t.Run(c.reason, func(t *testing.T) {
			c.observed.Resource = resource
			c.want.Group, c.want.Version, c.want.Kind, c.want.Namespace, c.want.Name = "apps", "v1", "Deployment", "ns", "web"
			got := resourceStatuses([]target.ResourceStatus{c.observed}, c.accepted, c.stored)
			if len(got) != 1 || urgencyOf(v1alpha1.ThreeportWorkloadStatus{Resources: got}, v1alpha1.ThreeportWorkloadStatus{Resources: []v1alpha1.ResourceStatus{c.want}}) != unchanged {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

// The stored status keeps the accepted operations of earlier processes.
func TestReconcile_Restart_KeepsReportedVersions(t *testing.T) {
	w := newWorld(t)
	wl := workload("reported", "a", "b")
	w.create(wl)
	w.delivery.set(target.DeliveryProgress{Operations: operationsOf(wl)})
	w.reconcile(wl.Name)
	w.delivery.set(target.DeliveryProgress{})
	w.restart()
	w.reconcile(wl.Name)
	w.clock = w.clock.Add(time.Hour)
	w.reconcile(wl.Name)
	for _, r := range w.stored(wl.Name).Status.Resources {
		if r.LastOperation != "MODIFIED" || r.ReportedResourceVersion != "1234567890" {
			t.Errorf("after a restart the status is %+v", r)
		}
	}
	stored := w.stored(wl.Name)
	stored.Spec.WorkloadInstanceID++ // The new instance has accepted nothing yet.
	w.must(shared.client.Update(t.Context(), stored))
	w.reconcile(wl.Name)
	for _, r := range w.stored(wl.Name).Status.Resources {
		if r.LastOperation != "" || r.ReportedResourceVersion != "" {
			t.Errorf("after a change of the instance the status is %+v", r)
		}
	}
}

func TestDeliveryStatus_DelaySteps(t *testing.T) {
	for delay, want := range map[time.Duration]int64{
		0: 0, 5 * time.Second: 0, 6 * time.Second: 5, 29 * time.Second: 10, 30 * time.Second: 30, 119 * time.Second: 60,
		10 * time.Minute: 600, 59 * time.Minute: 1800, time.Hour: 3600, 9*time.Hour + 59*time.Minute: 9 * 3600,
	} {
		w := newWorld(t)
		d := w.reconciler.deliveryStatus(target.DeliveryProgress{Pending: 2, Since: w.clock.Add(-delay)})
		if d.DelaySeconds != want || (d.Pending == 2) != (want > 0) || (d.PendingSince != nil) != (want > 0) {
			t.Errorf("with a delay of %s delivery is %+v, want a delay of %d s", delay, d, want)
		}
	}
}

// The time of a rejection loses its fractions of a second when it is stored. That must not count as a change.
func TestReconcile_Rejection_WritesOnce(t *testing.T) {
	w := newWorld(t)
	wl := workload("rejection", "a")
	w.create(wl)
	w.delivery.set(target.DeliveryProgress{Rejected: 1, Rejections: []target.Rejection{{Report: "r", Reason: "no", Time: time.Now()}}})
	for range 5 {
		w.reconcile(wl.Name)
		w.clock = w.clock.Add(resyncInterval)
	}
	if got := w.writes.Load(); got != 1 {
		t.Errorf("the status was written %d times, want 1", got)
	}
}
