package controller

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

func (w *world) verdict(status, reason, message string) {
	w.reporter.set(func(f *fakeReporter) { f.health, f.healthReason, f.healthMessage = status, reason, message })
}

func (w *world) transitions() []target.HealthTransition {
	w.reporter.mu.Lock()
	defer w.reporter.mu.Unlock()
	return slices.CompactFunc(slices.Clone(w.reporter.transitions), func(a, b target.HealthTransition) bool { return a == b })
}

// restart replaces the reconciler by a new one, as a new process would.
func (w *world) restart() {
	w.reconciler = New(w.counting(shared.client), lister{shared.client}, w.lists, w.targets, w.delivery, w.delivery)
	w.reconciler.SetReporter(w.reporter)
	w.reconciler.now = func() time.Time { return w.clock }
}

func TestHealthyCondition(t *testing.T) {
	long := strings.Repeat("x<\x00", 5000)
	for _, c := range []struct {
		reason                    string
		verdict                   verdict
		condition, word, contains string
	}{
		{
			reason:    "Healthy",
			verdict:   verdict{status: "Healthy"},
			condition: "True",
			word:      "Healthy",
			contains:  "every listed resource is Healthy",
		},
		{
			reason:    "completed",
			verdict:   verdict{status: "Healthy", reason: "Completed"},
			condition: "True",
			word:      "Completed",
			contains:  "every listed resource is Healthy",
		},
		{
			reason:    "Reconciling",
			verdict:   verdict{status: "Reconciling", reason: "Rollout", message: "2 of 3 are up"},
			condition: "False",
			word:      "Rollout",
			contains:  "2 of 3 are up",
		},
		{
			reason:    "Unhealthy",
			verdict:   verdict{status: "Unhealthy", reason: "CrashLoopBackOff", message: "Pod x"},
			condition: "False",
			word:      "CrashLoopBackOff",
			contains:  "Pod x",
		},
		{
			reason:    "Down",
			verdict:   verdict{status: "Down", reason: "Absent", message: "it does not exist"},
			condition: "False",
			word:      "Absent",
			contains:  "does not exist",
		},
		{
			reason:    "Unknown",
			verdict:   verdict{status: "Unknown", reason: "NoSignal", message: "there is no signal"},
			condition: "Unknown",
			word:      "NoSignal",
			contains:  "there is no signal",
		},
		{
			reason:    "not assessed",
			verdict:   verdict{},
			condition: "Unknown",
			word:      "NotJudged",
			contains:  "not every listed resource",
		},
		{
			reason:    "no reason",
			verdict:   verdict{status: "Down", message: "it is gone"},
			condition: "False",
			word:      "Down",
			contains:  "it is gone",
		},
		{
			reason:    "no message",
			verdict:   verdict{status: "Down", reason: "all is lost"},
			condition: "False",
			word:      "allIsLost",
			contains:  "all is lost",
		},
		{reason: "an unknown status", verdict: verdict{status: "very sick"}, condition: "False", word: "verySick"},
		{
			reason:    "arbitrary texts",
			verdict:   verdict{status: "Unhealthy", reason: "404: не найдено!" + long, message: long},
			condition: "False",
			word:      "x",
			contains:  "x<",
		},
	} {
		t.Run(c.reason, func(t *testing.T) {
			w := newWorld(t)
			wl := workload("healthy", "a")
			w.create(wl)
			w.verdict(c.verdict.status, c.verdict.reason, c.verdict.message)
			w.reconcile(wl.Name) // The API server must accept the status.
			stored := w.stored(wl.Name)
			got := meta.FindStatusCondition(stored.Status.Conditions, v1alpha1.ConditionHealthy)
			if got == nil || string(got.Status) != c.condition || !strings.HasPrefix(got.Reason, c.word) ||
				!strings.Contains(got.Message, c.contains) || got.ObservedGeneration != stored.Generation {
				t.Fatalf("the condition is %+v, want %s %s %q", got, c.condition, c.word, c.contains)
			}
			if s := stored.Status; s.Health != c.verdict.status || len(s.Reason) > maxReasonBytes || len(s.Message) > maxMessageBytes+3 ||
				s.Health != "Healthy" && s.Health != "" && s.Message == "" && c.contains != "" {
				t.Errorf("health, reason and message are %q, %q, %q", s.Health, s.Reason, s.Message)
			}
		})
	}
}

// A user who may write the status can set times that never pass.
func TestWithoutFutureTimes_ReplacesThemByNow(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 600_000_000, time.UTC)
	want, past := &metav1.Time{Time: now.Truncate(time.Second)}, &metav1.Time{Time: now.Add(time.Minute)}
	future := &metav1.Time{Time: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)}
	forged := v1alpha1.ThreeportWorkloadStatus{
		HealthSince: future, NotHealthySince: future, CauseSince: past, Resources: []v1alpha1.ResourceStatus{{HealthSince: future}, {}},
	}
	got := withoutFutureTimes(forged, now)
	for _, at := range []*metav1.Time{got.HealthSince, got.NotHealthySince, got.Resources[0].HealthSince} {
		if !at.Equal(want) {
			t.Errorf("a time in the future is %s, want %s", at, want)
		}
	}
	if got.CauseSince != past || forged.Resources[0].HealthSince != future {
		t.Error("another time was changed, or the status of the cache")
	}
	var after v1alpha1.ThreeportWorkloadStatus
	setHealth(&after, got, verdict{status: statusHealthy}, now)
	if after.HealthSince.After(now.Add(time.Minute)) {
		t.Errorf("the next change is at %s, want about now", after.HealthSince)
	}
}

func TestTransitionTime(t *testing.T) {
	at := func(second int) *metav1.Time {
		return &metav1.Time{Time: time.Date(2026, 1, 2, 3, 4, second, 0, time.UTC)}
	}
	resources := []v1alpha1.ResourceStatus{
		{Health: "Healthy"},
		{Health: "Unhealthy", HealthSince: at(10)},
		{Health: "Down", HealthSince: at(30)},
		{Health: "Down", HealthSince: at(20)},
	}
	for _, c := range []struct {
		reason, before string
		since          int // of the health before
		health         string
		want           int // the second; 50 is now
	}{
		{reason: "the first resource that is Down", before: "Healthy", since: 5, health: "Down", want: 20},
		{reason: "a rollout that fails", before: "Reconciling", since: 5, health: "Down", want: 20},
		{reason: "the first status", health: "Unhealthy", want: 10},
		{reason: "another resource was worse until now", before: "Down", since: 5, health: "Unhealthy", want: 50},
		{reason: "the start is before the health before", before: "Healthy", since: 25, health: "Down", want: 50},
		{reason: "it is Healthy again", before: "Reconciling", since: 5, health: "Healthy", want: 50},
		{reason: "no listed resource has it", before: "Healthy", since: 5, health: "Unknown", want: 50},
	} {
		current := v1alpha1.ThreeportWorkloadStatus{Health: c.before}
		if c.since != 0 {
			current.HealthSince = at(c.since)
		}
		if got := transitionTime(resources, current, c.health, at(50).Time); !got.Equal(at(c.want).Time) {
			t.Errorf("%s: the transition is at %v, want second %d", c.reason, got, c.want)
		}
	}
}

func TestSetHealth(t *testing.T) {
	at := func(second int) *metav1.Time {
		return &metav1.Time{Time: time.Date(2026, 1, 2, 3, 4, second, 0, time.UTC)}
	}
	healthy := v1alpha1.ThreeportWorkloadStatus{Health: "Healthy", HealthSince: at(5), HealthChange: &v1alpha1.HealthChange{From: "Down", To: "Healthy"}}
	for _, c := range []struct {
		reason  string
		current v1alpha1.ThreeportWorkloadStatus
		verdict verdict
		second  int // of the clock
		want    v1alpha1.ThreeportWorkloadStatus
	}{
		{
			reason:  "a new workload, not assessed",
			current: v1alpha1.ThreeportWorkloadStatus{},
			verdict: verdict{},
			second:  9,
			want:    v1alpha1.ThreeportWorkloadStatus{},
		},
		{
			reason:  "the first verdict",
			current: v1alpha1.ThreeportWorkloadStatus{},
			verdict: verdict{status: "Down", reason: "Absent", message: "gone"},
			second:  9,
			want: v1alpha1.ThreeportWorkloadStatus{
				Health: "Down", Reason: "Absent", Message: "gone", HealthSince: at(9), NotHealthySince: at(9),
				HealthChange: &v1alpha1.HealthChange{To: "Down", Reason: "Absent", Message: "gone"},
			},
		},
		{reason: "the same health", current: healthy, verdict: verdict{status: "Healthy"}, second: 9, want: healthy},
		{reason: "no longer assessed", current: healthy, verdict: verdict{}, second: 9, want: healthy},
		{
			reason:  "a transition",
			current: healthy,
			verdict: verdict{status: "Down", reason: "Absent", message: "gone"},
			second:  9,
			want: v1alpha1.ThreeportWorkloadStatus{
				Health: "Down", Reason: "Absent", Message: "gone", HealthSince: at(9), NotHealthySince: at(9),
				HealthChange: &v1alpha1.HealthChange{From: "Healthy", To: "Down", Reason: "Absent", Message: "gone"},
			},
		},
		{
			reason: "it had its health before the first status",
			current: v1alpha1.ThreeportWorkloadStatus{
				Health: "Unknown", HealthSince: at(9), NotHealthySince: at(9), HealthChange: &v1alpha1.HealthChange{To: "Unknown"},
			},
			verdict: verdict{status: "Down", reason: "Crash", message: "again"},
			second:  5,
			want: v1alpha1.ThreeportWorkloadStatus{
				Health: "Down", Reason: "Crash", Message: "again", HealthSince: at(5), NotHealthySince: at(5),
				HealthChange: &v1alpha1.HealthChange{From: "Unknown", To: "Down", Reason: "Crash", Message: "again"},
			},
		},
		{
			reason:  "the same health with another reason",
			current: v1alpha1.ThreeportWorkloadStatus{Health: "Down", Reason: "Absent", HealthSince: at(5), HealthChange: &v1alpha1.HealthChange{To: "Down", Reason: "Absent"}},
			verdict: verdict{status: "Down", reason: "Crash", message: "again"},
			second:  9,
			want:    v1alpha1.ThreeportWorkloadStatus{Health: "Down", Reason: "Crash", Message: "again", HealthSince: at(5), HealthChange: &v1alpha1.HealthChange{To: "Down", Reason: "Absent"}},
		},
		{
			reason:  "a second transition within one second",
			current: healthy,
			verdict: verdict{status: "Down"},
			second:  5,
			want:    v1alpha1.ThreeportWorkloadStatus{Health: "Down", HealthSince: at(6), NotHealthySince: at(6), HealthChange: &v1alpha1.HealthChange{From: "Healthy", To: "Down"}},
		},
		{
			reason:  "a transition with a clock that is behind",
			current: healthy,
			verdict: verdict{status: "Down"},
			second:  1,
			want:    v1alpha1.ThreeportWorkloadStatus{Health: "Down", HealthSince: at(6), NotHealthySince: at(6), HealthChange: &v1alpha1.HealthChange{From: "Healthy", To: "Down"}},
		},
		{
			reason: "a transition while it is not Healthy",
			current: v1alpha1.ThreeportWorkloadStatus{
				Health: "Reconciling", HealthSince: at(5), NotHealthySince: at(5), HealthChange: &v1alpha1.HealthChange{From: "Healthy", To: "Reconciling"},
			},
			verdict: verdict{status: "Down"},
			second:  9,
			want: v1alpha1.ThreeportWorkloadStatus{
				Health: "Down", HealthSince: at(9), NotHealthySince: at(5), HealthChange: &v1alpha1.HealthChange{From: "Reconciling", To: "Down"},
			},
		},
		{
			reason: "a transition of a workload that was never Healthy",
			current: v1alpha1.ThreeportWorkloadStatus{
				Health: "Down", HealthSince: at(5), NotHealthySince: at(2), HealthChange: &v1alpha1.HealthChange{From: "Unhealthy", To: "Down"},
			},
			verdict: verdict{status: "Unhealthy"},
			second:  9,
			want: v1alpha1.ThreeportWorkloadStatus{
				Health: "Unhealthy", HealthSince: at(9), NotHealthySince: at(2), HealthChange: &v1alpha1.HealthChange{From: "Down", To: "Unhealthy"},
			},
		},
		{
			reason:  "such a transition, and an earlier agent wrote the status",
			current: v1alpha1.ThreeportWorkloadStatus{Health: "Down", HealthSince: at(5), HealthChange: &v1alpha1.HealthChange{To: "Down"}},
			verdict: verdict{status: "Unhealthy"},
			second:  9,
			want: v1alpha1.ThreeportWorkloadStatus{
				Health: "Unhealthy", HealthSince: at(9), NotHealthySince: at(5), HealthChange: &v1alpha1.HealthChange{From: "Down", To: "Unhealthy"},
			},
		},
		{
			reason: "a transition to Healthy",
			current: v1alpha1.ThreeportWorkloadStatus{
				Health: "Down", HealthSince: at(7), NotHealthySince: at(5), HealthChange: &v1alpha1.HealthChange{From: "Reconciling", To: "Down"},
			},
			verdict: verdict{status: "Healthy"},
			second:  9,
			want:    v1alpha1.ThreeportWorkloadStatus{Health: "Healthy", HealthSince: at(9), HealthChange: &v1alpha1.HealthChange{From: "Down", To: "Healthy"}},
		},
		{
			reason:  "the current status has no transition",
			current: v1alpha1.ThreeportWorkloadStatus{Health: "Healthy"},
			verdict: verdict{status: "Healthy"},
			second:  9,
			want:    v1alpha1.ThreeportWorkloadStatus{Health: "Healthy"},
		},
	} {
		t.Run(c.reason, func(t *testing.T) {
			var got v1alpha1.ThreeportWorkloadStatus
			setHealth(&got, c.current, c.verdict, at(c.second).Add(300*time.Millisecond))
			if urgencyOf(got, c.want) != unchanged {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

func TestCauseSince(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)
	at := func(second int) *metav1.Time {
		return &metav1.Time{Time: start.Add(time.Duration(second) * time.Second)}
	}
	status := func(health, reason string, healthSince, causeSince *metav1.Time) v1alpha1.ThreeportWorkloadStatus {
		return v1alpha1.ThreeportWorkloadStatus{Health: health, Reason: reason, HealthSince: healthSince, CauseSince: causeSince}
	}
	down := status("Down", "ImagePullBackOff", at(10), at(20))
	for _, tt := range []struct {
		name            string
		status, current v1alpha1.ThreeportWorkloadStatus
		want            *metav1.Time
	}{
		{"the same reason", status("Down", "ImagePullBackOff", at(10), nil), down, at(20)},
		{"the same reason of another health", status("Unhealthy", "ImagePullBackOff", at(60), nil), down, at(20)},
		{"another reason", status("Down", "Absent", at(10), nil), down, at(60)},
		{"another reason, seconds after the health", status("Down", "Absent", at(55), nil), down, at(55)},
		{"another reason and health", status("Unhealthy", "Absent", at(30), nil), down, at(30)},
		{"a crash loop", status("Unhealthy", "Restarting", at(60), nil), status("Down", "CrashLoopBackOff", at(10), at(12)), at(12)},
		{"the same reason, and an earlier agent wrote it", status("Down", "Absent", at(10), nil), status("Down", "Absent", at(10), nil), nil},
		{"Healthy", status("Healthy", "", at(60), nil), down, nil},
		{"the first status", status("Down", "Absent", at(60), nil), v1alpha1.ThreeportWorkloadStatus{}, at(60)},
	} {
		if got := causeSince(tt.status, tt.current, at(60).Add(300*time.Millisecond)); !got.Equal(tt.want) {
			t.Errorf("%s: the cause holds since %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestReconcile_AnotherReason_HasStartOfItsOwn(t *testing.T) {
	w := newWorld(t)
	wl := workload("cause", "a")
	w.create(wl)
	write := func(reason string) v1alpha1.ThreeportWorkloadStatus {
		t.Helper()
		w.clock = w.clock.Add(time.Minute)
		w.verdict("Down", reason, "a message")
		w.reconcile(wl.Name)
		return w.stored(wl.Name).Status
	}
	w.verdict("", "", "")
	w.reconcile(wl.Name)
	first := write("ImagePullBackOff")
	if !first.CauseSince.Equal(first.HealthSince) || first.CauseSince == nil {
		t.Errorf("the cause holds since %v, want the start of the health: %v", first.CauseSince, first.HealthSince)
	}
	if again := write("ImagePullBackOff"); !again.CauseSince.Equal(first.CauseSince) {
		t.Errorf("the same cause holds since %v, want %v", again.CauseSince, first.CauseSince)
	}
	if other := write("Absent"); !other.CauseSince.Equal(&metav1.Time{Time: w.clock.Truncate(time.Second)}) || !other.HealthSince.Equal(first.HealthSince) {
		t.Errorf("another cause holds since %v, and the health since %v, want %v and %v", other.CauseSince, other.HealthSince, w.clock, first.HealthSince)
	}
	w.reconcile(wl.Name)
	recorded := w.transitions()
	if got := recorded[len(recorded)-1].Cause; got.Reason != "Absent" || !got.Since.Equal(w.clock.Truncate(time.Second)) {
		t.Errorf("the reporter has the cause %+v, want Absent since %v", got, w.clock)
	}
}

func TestReconcile_TransitionReportedAfterWrite(t *testing.T) {
	w := newWorld(t)
	wl := workload("announce", "a")
	w.create(wl)
	var want []target.HealthTransition
	expect := func(why string, from, to, message string) {
		t.Helper()
		w.reconcile(wl.Name)
		if to != "" {
			at := w.stored(wl.Name).Status.HealthSince
			want = append(want, target.HealthTransition{UID: wl.UID, From: from, To: to, Message: message, At: at.Time})
		}
		got := w.transitions()
		if !slices.EqualFunc(got, want, func(a, b target.HealthTransition) bool { return a.At.Equal(b.At) && sameButTime(a, b) }) {
			t.Fatalf("%s: the transitions are\n%+v, want\n%+v", why, got, want)
		}
	}
	w.verdict("", "", "")
	expect("the workload is not assessed", "", "", "")
	w.clock = w.clock.Add(statusInterval)
	w.verdict("Unknown", "", "no signal")
	expect("a first transition to Unknown is not reported", "", "", "")
	w.clock = w.clock.Add(time.Second)
	w.verdict("Down", "", "one")
	expect("the transition is not written yet", "", "", "")
	w.clock = w.clock.Add(statusInterval)
	expect("the transition is written", "Unknown", "Down", "one")
	w.verdict("Down", "", "two")
	w.clock = w.clock.Add(statusInterval)
	expect("another cause is no transition", "", "", "")
	if got := w.stored(wl.Name).Status.Message; got != "two" {
		t.Errorf("the message is %q, want two", got)
	}
	w.verdict("", "", "")
	w.clock = w.clock.Add(time.Minute)
	expect("a missing verdict is no transition", "", "", "")
	w.verdict("Healthy", "", "")
	w.clock = w.clock.Add(time.Minute)
	expect("the workload recovered", "Down", "Healthy", "")
}

func sameButTime(a, b target.HealthTransition) bool {
	a.At, b.At = time.Time{}, time.Time{}
	return a == b
}

func TestReconcile_Restart_ReportsTransitionAgain(t *testing.T) {
	w := newWorld(t)
	wl := workload("crash", "a")
	w.create(wl)
	w.reconcile(wl.Name)
	first := w.transitions()
	w.reporter.set(func(f *fakeReporter) { f.transitions = nil })
	w.restart()
	w.reconcile(wl.Name)
	if got := w.transitions(); len(first) != 1 || len(got) != 1 || !sameButTime(got[0], first[0]) || !got[0].At.Equal(first[0].At) {
		t.Errorf("the transitions are %+v, want only %+v again", got, first)
	}
	w.verdict("Down", "Absent", "gone")
	w.clock = w.clock.Add(statusInterval)
	w.reconcile(wl.Name)
	before := w.transitions()
	if len(before) != 2 || before[1].To != "Down" {
		t.Fatalf("the transitions are %+v, want two, the second to Down", before)
	}
	w.reporter.set(func(f *fakeReporter) { f.transitions = nil })
	w.restart()
	w.verdict("", "", "") // nothing is observed yet
	w.reconcile(wl.Name)
	if got := w.transitions(); len(got) != 1 || !sameButTime(got[0], before[1]) || !got[0].At.Equal(before[1].At) {
		t.Errorf("the transitions are %+v, want only %+v again", got, before[1])
	}
}

// A stale object must not overwrite the log of transitions.
func TestReconcile_StaleCache_DoesNotWrite(t *testing.T) {
	w := newWorld(t)
	wl := workload("stale", "a")
	w.create(wl)
	w.reconcile(wl.Name)
	stale := w.stored(wl.Name)
	w.verdict("Down", "Absent", "gone")
	w.clock = w.clock.Add(statusInterval)
	w.reconcile(wl.Name)
	stored, transitions := w.stored(wl.Name), w.transitions()

	w.clock = w.clock.Add(time.Minute)
	w.reconciler.client = staleCache{w.counting(shared.client), stale}
	result, err := w.reconciler.Reconcile(t.Context(), requestOf(wl))
	if err != nil || result.RequeueAfter != changeDelay {
		t.Errorf("the result is %+v, %v; want a requeue after %s", result, err, changeDelay)
	}
	if got := w.stored(wl.Name); got.ResourceVersion != stored.ResourceVersion {
		t.Errorf("%+v replaced %+v", got.Status, stored.Status)
	}
	if got := w.transitions(); len(got) != len(transitions) {
		t.Errorf("the transitions are %+v, want %+v", got, transitions)
	}
	// Nor is the older transition in the stale object reported after the newer one.
	w.verdict("Healthy", "", "")
	if _, err := w.reconciler.Reconcile(t.Context(), requestOf(wl)); err != nil {
		t.Error(err)
	}
	if got := w.transitions(); len(got) != len(transitions) {
		t.Errorf("the transitions are %+v, want %+v", got, transitions)
	}
}

// staleCache always returns the same version of a workload.
type staleCache struct {
	client.Client
	stale *v1alpha1.ThreeportWorkload
}

func (c staleCache) Get(_ context.Context, _ types.NamespacedName, obj client.Object, _ ...client.GetOption) error {
	c.stale.DeepCopyInto(obj.(*v1alpha1.ThreeportWorkload))
	return nil
}

func requestOf(wl *v1alpha1.ThreeportWorkload) ctrl.Request {
	return ctrl.Request{NamespacedName: types.NamespacedName{Name: wl.Name}}
}

// After a start the stored status is kept until the reporter has observed every resource, or startGrace is over.
func TestReconcile_Restart_KeepsStatusForStartGrace(t *testing.T) {
	w := newWorld(t)
	wl := workload("start", "a")
	w.create(wl)
	w.reconcile(wl.Name)
	writes := w.writes.Load()
	expect := func(why string, more int64, condition metav1.ConditionStatus) {
		t.Helper()
		w.reconcile(wl.Name)
		if got := w.writes.Load() - writes; got != more {
			t.Errorf("%s: %d writes, want %d", why, got, more)
		}
		s := w.stored(wl.Name).Status
		if c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionHealthy); c.Status != condition || s.Health != "Healthy" {
			t.Errorf("%s: health is %s, the condition is %+v; want Healthy and %s", why, s.Health, c, condition)
		}
	}
	w.clock = w.clock.Add(time.Hour)
	w.restart()
	w.verdict("", "", "")
	w.reporter.set(func(f *fakeReporter) { f.state = target.Pending })
	expect("nothing is observed yet", 0, "True")
	w.clock = w.clock.Add(startGrace - time.Second)
	expect("nothing is observed within startGrace", 0, "True")
	w.clock = w.clock.Add(time.Second)
	expect("nothing is observed after startGrace", 1, "Unknown")
	w.verdict("Healthy", "", "")
	w.reporter.set(func(f *fakeReporter) { f.state = target.Present })
	expect("everything is observed", 2, "True")

	w.clock = w.clock.Add(time.Hour)
	w.restart()
	w.verdict("Down", "Absent", "the pods are not observed yet")
	expect("the first verdict may be incomplete", 2, "True")
	w.verdict("Healthy", "", "")
	w.clock = w.clock.Add(statusInterval)
	expect("the second verdict is the stored one", 2, "True")
	if got := w.stored(wl.Name).Status.HealthChange.From; got != "" {
		t.Errorf("the status has a transition from %s, want none", got)
	}
}
