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
	w.watcher.set(func(f *fakeWatcher) { f.health, f.healthReason, f.healthMessage = status, reason, message })
}

func (w *world) announced() []target.HealthTransition {
	w.watcher.mu.Lock()
	defer w.watcher.mu.Unlock()
	return slices.CompactFunc(slices.Clone(w.watcher.announced), func(a, b target.HealthTransition) bool { return a == b })
}

// restart makes another process of the reconciler.
func (w *world) restart() {
	w.reconciler = New(w.counting(shared.client), w.targets, w.delivery)
	w.reconciler.Watch(w.watcher)
	w.reconciler.now = func() time.Time { return w.clock }
}

func TestConditionHealthy(t *testing.T) {
	long := strings.Repeat("x<\x00", 5000)
	for _, c := range []struct {
		reason                    string
		status, why, says         string
		condition, word, contains string
	}{
		{"it runs", "Healthy", "", "", "True", "Healthy", "as it is declared"},
		{"it has run", "Healthy", "Completed", "", "True", "Completed", "as it is declared"},
		{"on its way", "Reconciling", "Rollout", "2 of 3 are up", "False", "Rollout", "2 of 3 are up"},
		{"in part", "Unhealthy", "CrashLoopBackOff", "Pod x", "False", "CrashLoopBackOff", "Pod x"},
		{"not at all", "Down", "Absent", "it does not exist", "False", "Absent", "does not exist"},
		{"no signal", "Unknown", "NoSignal", "nothing tells", "Unknown", "NoSignal", "nothing tells"},
		{"not judged", "", "", "", "Unknown", "NotJudged", "not every listed resource"},
		{"no reason", "Down", "", "it is gone", "False", "Down", "it is gone"},
		{"no message", "Down", "all is lost", "", "False", "allIsLost", "all is lost"},
		{"a status of another make", "very sick", "", "", "False", "verySick", ""},
		{"a custom resource's words", "Unhealthy", "404: не найдено!" + long, long, "False", "x", "x<"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			w := newWorld(t)
			wl := workload("healthy", "a")
			w.create(wl)
			w.verdict(c.status, c.why, c.says)
			w.reconcile(wl.Name) // the API server takes it
			stored := w.stored(wl.Name)
			got := meta.FindStatusCondition(stored.Status.Conditions, v1alpha1.ConditionHealthy)
			if got == nil || string(got.Status) != c.condition || !strings.HasPrefix(got.Reason, c.word) ||
				!strings.Contains(got.Message, c.contains) || got.ObservedGeneration != stored.Generation {
				t.Fatalf("the condition is %+v, expected %s %s %q", got, c.condition, c.word, c.contains)
			}
			if s := stored.Status; s.Health != c.status || len(s.Reason) > mostWord || len(s.Message) > mostMessage+3 ||
				s.Health != "Healthy" && s.Health != "" && s.Message == "" && c.contains != "" {
				t.Errorf("the status says %q %q %q", s.Health, s.Reason, s.Message)
			}
		})
	}
}

func TestTheStatusIsTheLogOfChanges(t *testing.T) {
	at := func(second int) *metav1.Time {
		return &metav1.Time{Time: time.Date(2026, 1, 2, 3, 4, second, 0, time.UTC)}
	}
	healthy := v1alpha1.ThreeportWorkloadStatus{Health: "Healthy", HealthSince: at(5), HealthChange: &v1alpha1.HealthChange{From: "Down", To: "Healthy"}}
	for _, c := range []struct {
		reason string
		stands v1alpha1.ThreeportWorkloadStatus
		says   verdict
		now    int // second
		want   v1alpha1.ThreeportWorkloadStatus
	}{
		{"new and not judged", v1alpha1.ThreeportWorkloadStatus{}, verdict{}, 9, v1alpha1.ThreeportWorkloadStatus{}},
		{
			"the first verdict",
			v1alpha1.ThreeportWorkloadStatus{},
			verdict{"Down", "Absent", "gone"},
			9,
			v1alpha1.ThreeportWorkloadStatus{
				Health: "Down", Reason: "Absent", Message: "gone", HealthSince: at(9),
				HealthChange: &v1alpha1.HealthChange{To: "Down", Reason: "Absent", Message: "gone"},
			},
		},
		{"the same", healthy, verdict{"Healthy", "", ""}, 9, healthy},
		{"not judged for a while", healthy, verdict{}, 9, healthy},
		{
			"a change", healthy,
			verdict{"Down", "Absent", "gone"},
			9,
			v1alpha1.ThreeportWorkloadStatus{
				Health: "Down", Reason: "Absent", Message: "gone", HealthSince: at(9),
				HealthChange: &v1alpha1.HealthChange{From: "Healthy", To: "Down", Reason: "Absent", Message: "gone"},
			},
		},
		{
			"the same for another reason",
			v1alpha1.ThreeportWorkloadStatus{Health: "Down", Reason: "Absent", HealthSince: at(5), HealthChange: &v1alpha1.HealthChange{To: "Down", Reason: "Absent"}},
			verdict{"Down", "Crash", "again"},
			9,
			v1alpha1.ThreeportWorkloadStatus{Health: "Down", Reason: "Crash", Message: "again", HealthSince: at(5), HealthChange: &v1alpha1.HealthChange{To: "Down", Reason: "Absent"}},
		},
		{
			"a change in the same second", healthy,
			verdict{"Down", "", ""},
			5,
			v1alpha1.ThreeportWorkloadStatus{Health: "Down", HealthSince: at(6), HealthChange: &v1alpha1.HealthChange{From: "Healthy", To: "Down"}},
		},
		{
			"a change, by a clock that is behind", healthy,
			verdict{"Down", "", ""},
			1,
			v1alpha1.ThreeportWorkloadStatus{Health: "Down", HealthSince: at(6), HealthChange: &v1alpha1.HealthChange{From: "Healthy", To: "Down"}},
		},
		{
			"written by an agent without this log",
			v1alpha1.ThreeportWorkloadStatus{Health: "Healthy"},
			verdict{"Healthy", "", ""},
			9,
			v1alpha1.ThreeportWorkloadStatus{Health: "Healthy"},
		},
	} {
		t.Run(c.reason, func(t *testing.T) {
			var got v1alpha1.ThreeportWorkloadStatus
			logHealth(&got, c.stands, c.says, at(c.now).Add(300*time.Millisecond))
			if weigh(got, c.want) != none {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

func TestEachChangeIsAnnouncedOnceItIsWritten(t *testing.T) {
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
		got := w.announced()
		if !slices.EqualFunc(got, want, func(a, b target.HealthTransition) bool { return a.At.Equal(b.At) && sameButTime(a, b) }) {
			t.Fatalf("%s: announced are\n%+v, expected\n%+v", why, got, want)
		}
	}
	w.verdict("", "", "")
	expect("it is not judged", "", "", "")
	w.clock = w.clock.Add(statusInterval)
	w.verdict("Unknown", "", "no signal")
	expect("that it is Unknown at first is no news", "", "", "")
	w.clock = w.clock.Add(time.Second)
	w.verdict("Down", "", "one")
	expect("it is not written yet", "", "", "")
	w.clock = w.clock.Add(statusInterval)
	expect("now it is", "Unknown", "Down", "one")
	w.verdict("Down", "", "two")
	w.clock = w.clock.Add(statusInterval)
	expect("another cause is no change of health", "", "", "")
	if got := w.stored(wl.Name).Status.Message; got != "two" {
		t.Errorf("the message is %q", got)
	}
	w.verdict("", "", "")
	w.clock = w.clock.Add(time.Minute)
	expect("that it is not judged is none either", "", "", "")
	w.verdict("Healthy", "", "")
	w.clock = w.clock.Add(time.Minute)
	expect("it got well", "Down", "Healthy", "")
}

func sameButTime(a, b target.HealthTransition) bool {
	a.At, b.At = time.Time{}, time.Time{}
	return a == b
}

func TestAChangeIsAnnouncedAfterACrash(t *testing.T) {
	w := newWorld(t)
	wl := workload("crash", "a")
	w.create(wl)
	w.reconcile(wl.Name)
	first := w.announced()
	w.watcher.set(func(f *fakeWatcher) { f.announced = nil })
	w.restart()
	w.reconcile(wl.Name)
	if got := w.announced(); len(first) != 1 || len(got) != 1 || !sameButTime(got[0], first[0]) || !got[0].At.Equal(first[0].At) {
		t.Errorf("announced is %+v, expected %+v again, which tells of nothing but that it is Healthy", got, first)
	}
	w.verdict("Down", "Absent", "gone")
	w.clock = w.clock.Add(statusInterval)
	w.reconcile(wl.Name)
	before := w.announced()
	if len(before) != 2 || before[1].To != "Down" {
		t.Fatalf("announced are %+v", before)
	}
	w.watcher.set(func(f *fakeWatcher) { f.announced = nil })
	w.restart()
	w.verdict("", "", "") // nothing is seen yet
	w.reconcile(wl.Name)
	if got := w.announced(); len(got) != 1 || !sameButTime(got[0], before[1]) || !got[0].At.Equal(before[1].At) {
		t.Errorf("announced is %+v, expected %+v again", got, before[1])
	}
}

// A status that was read before another was written must not become a second log.
func TestAStaleStatusIsNotWritten(t *testing.T) {
	w := newWorld(t)
	wl := workload("stale", "a")
	w.create(wl)
	w.reconcile(wl.Name)
	stale := w.stored(wl.Name)
	w.verdict("Down", "Absent", "gone")
	w.clock = w.clock.Add(statusInterval)
	w.reconcile(wl.Name)
	stored, announced := w.stored(wl.Name), w.announced()

	w.clock = w.clock.Add(time.Minute)
	w.reconciler.client = behindCache{w.counting(shared.client), stale}
	result, err := w.reconciler.Reconcile(t.Context(), requestOf(wl))
	if err != nil || result.RequeueAfter != changeDelay {
		t.Errorf("the result is %+v, %v; expected to come again in %s", result, err, changeDelay)
	}
	if got := w.stored(wl.Name); got.ResourceVersion != stored.ResourceVersion {
		t.Errorf("written was %+v over %+v", got.Status, stored.Status)
	}
	if got := w.announced(); len(got) != len(announced) {
		t.Errorf("announced are %+v, expected %+v", got, announced)
	}
	// One that differs in nothing is not written, and its older change is no news to who announced the newer one.
	w.verdict("Healthy", "", "")
	if _, err := w.reconciler.Reconcile(t.Context(), requestOf(wl)); err != nil {
		t.Error(err)
	}
	if got := w.announced(); len(got) != len(announced) {
		t.Errorf("announced are %+v, expected %+v", got, announced)
	}
}

// behindCache reads one state of a workload for ever.
type behindCache struct {
	client.Client
	stale *v1alpha1.ThreeportWorkload
}

func (c behindCache) Get(_ context.Context, _ types.NamespacedName, obj client.Object, _ ...client.GetOption) error {
	c.stale.DeepCopyInto(obj.(*v1alpha1.ThreeportWorkload))
	return nil
}

func requestOf(wl *v1alpha1.ThreeportWorkload) ctrl.Request {
	return ctrl.Request{NamespacedName: types.NamespacedName{Name: wl.Name}}
}

// What an earlier process wrote is better than that nothing is seen yet.
func TestAfterAStartTheStatusStandsForAWhile(t *testing.T) {
	w := newWorld(t)
	wl := workload("start", "a")
	w.create(wl)
	w.reconcile(wl.Name)
	writes := w.writes.Load()
	expect := func(why string, more int64, condition metav1.ConditionStatus) {
		t.Helper()
		w.reconcile(wl.Name)
		if got := w.writes.Load() - writes; got != more {
			t.Errorf("%s: %d writes, expected %d", why, got, more)
		}
		s := w.stored(wl.Name).Status
		if c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionHealthy); c.Status != condition || s.Health != "Healthy" {
			t.Errorf("%s: health is %s, and the condition %+v", why, s.Health, c)
		}
	}
	w.clock = w.clock.Add(time.Hour)
	w.restart()
	w.verdict("", "", "")
	w.watcher.set(func(f *fakeWatcher) { f.state = target.Pending })
	expect("nothing is seen yet", 0, "True")
	w.clock = w.clock.Add(startGrace - time.Second)
	expect("nothing is seen for long", 0, "True")
	w.clock = w.clock.Add(time.Second)
	expect("nothing is seen for too long", 1, "Unknown")
	w.verdict("Healthy", "", "")
	w.watcher.set(func(f *fakeWatcher) { f.state = target.Present })
	expect("all is seen", 2, "True")

	w.clock = w.clock.Add(time.Hour)
	w.restart()
	w.verdict("Down", "Absent", "the pods are still to be seen")
	expect("what is seen first may not be all", 2, "True")
	w.verdict("Healthy", "", "")
	w.clock = w.clock.Add(statusInterval)
	expect("it was not", 2, "True")
	if got := w.stored(wl.Name).Status.HealthChange.From; got != "" {
		t.Errorf("a change from %s is told, expected none", got)
	}
}
