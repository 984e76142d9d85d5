package reporter

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// restarted is the status of a pod whose container runs after a restart.
func restarted(n int, reason string) string {
	return fmt.Sprintf(`{"status": {"phase": "Running", "containerStatuses": [{"name": "app", "image": "a", "imageID": "a", "ready": true,
		"containerID": "id-%[1]d", "restartCount": %[1]d, "state": {"running": {"startedAt": %[3]q}},
		"lastState": {"terminated": {"exitCode": 137, "reason": %[2]q, "finishedAt": %[3]q, "containerID": "id-%[4]d"}}}]}}`,
		n, reason, endedAt(n).Format(time.RFC3339), n-1)
}

// killedNow is the status of a pod whose container was OOM killed after its nth restart.
func killedNow(n int) string {
	return strings.Replace(restarted(n, "OOMKilled"), `"state": {"running": {"startedAt": "`+endedAt(n).Format(time.RFC3339)+`"}}`,
		`"state": {"terminated": {"exitCode": 137, "reason": "OOMKilled", "finishedAt": "`+endedAt(n+1).Format(time.RFC3339)+`"}}`, 1)
}

var firstEnd = time.Now().UTC().Truncate(time.Second).Add(-10 * time.Minute)

// endedAt is the time of a container's nth termination.
func endedAt(n int) time.Time { return firstEnd.Add(time.Duration(n) * time.Second) }

// synthetic returns the part after the first slash of the UIDs of the offered synthetic Events, in order.
func (r *recorder) synthetic() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, report := range r.offered {
		if ev, ok := report.(observe.Event); ok {
			if _, rest, ok := strings.Cut(string(ev.UID), "/"); ok {
				out = append(out, rest)
			}
		}
	}
	return out
}

func (w *world) expectSynthetic(want ...string) {
	w.Helper()
	w.eventually(fmt.Sprintf("the synthetic Events are %q", want), func() string {
		return complain(!slices.Equal(w.sink.synthetic(), want), fmt.Sprintf("they are %q", w.sink.synthetic()))
	})
}

func (w *world) expectForgotten(uid types.UID) {
	w.Helper()
	w.eventually("the Event "+string(uid)+" is forgotten", func() string {
		return complain(!w.sink.forgotten(observe.EventKey(uid)), "it is not")
	})
}

// Each container termination is offered under its own UID, independent of changes of the pod and of restarts of the agent.
// It is forgotten after the next termination, and with the pod.
func TestReporter_ContainerTerminations_OfferedOnce(t *testing.T) {
	t.Parallel()
	store := newMemoryStore()
	w := newIdleWorld(t, shared.reader, quick())
	w.again(store)
	d := w.create(deployment("web"))
	p := w.create(owned(pod("web-1"), d))
	w.run()
	wl := w.track("web", "apps/v1 Deployment web")
	uid := func(n int) types.UID { return observe.TerminationUID(p.GetUID(), "app", int32(n)) }

	w.patchStatus(p, restarted(1, "OOMKilled"))
	w.expectSynthetic("app/1")
	got := w.sink.events("OOMKilled")[0]
	want := observe.Event{
		Workload: wl.Instance, ResourceID: wl.Resources[0].ID, UID: uid(1), ResourceVersion: got.ResourceVersion,
		Involved: target.Ref{Kind: "Pod", Namespace: w.namespace, Name: "web-1"}, Type: "Warning", Reason: "OOMKilled",
		InvolvedUID: p.GetUID(), InvolvedVersion: "v1",
		Message: "Pod web-1: container app ended with exit code 137 (OOMKilled): it needed more memory than it may have",
		Time:    endedAt(1), MayHaveRow: true, Synthetic: true,
	}
	if got != want {
		t.Errorf("offered is\n%+v, want\n%+v", got, want)
	}
	w.patch(p, `{"metadata": {"annotations": {"some": "change"}}}`)
	w.patchStatus(p, restarted(2, "OOMKilled"))
	w.expectSynthetic("app/1", "app/2")
	w.expectForgotten(uid(1))
	w.patchStatus(p, killedNow(2))
	w.expectSynthetic("app/1", "app/2", "app/3")
	w.patchStatus(p, restarted(3, "OOMKilled"))
	w.expectForgotten(uid(2))
	w.patch(p, `{"metadata": {"annotations": {"some": "other"}}}`)
	version := w.getVersion(p)
	w.eventually("the last change is offered", func() string {
		ops := w.sink.operations(target.Ref{Kind: "Pod", Namespace: w.namespace, Name: "web-1"})
		return complain(ops[len(ops)-1].ResourceVersion != version, "it is not")
	})
	w.expectSynthetic("app/1", "app/2", "app/3")
	w.expectDesiredEvent(wl.Instance, uid(3), true)
	w.stop()

	// A new process offers both terminations in the pod's status: the earlier one in the same version as before.
	w.patchStatus(p, killedNow(3))
	before := w.sink.versions[observe.EventKey(uid(3))]
	w.again(store)
	w.targets.Track(wl)
	w.run()
	w.expectSynthetic("app/3", "app/4")
	w.stop()
	if again := w.sink.versions[observe.EventKey(uid(3))]; again != before {
		t.Errorf("the termination was offered in version %q, and then in %q", before, again)
	}

	w.remove(p)
	w.again(store)
	w.targets.Track(wl)
	w.run()
	w.eventually("the terminations of the deleted pod are forgotten", func() string {
		return complain(!w.sink.retainsNone(observe.SyntheticSubject(p.GetUID())), "they are kept")
	})
	w.expectSynthetic()
}

// Terminations are offered while their pod belongs to a workload, and cancelled afterwards.
func TestReporter_ContainerTerminations_OfUnattributedPods(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shared.reader, quick())
	p := w.create(pod("single"))
	w.patchStatus(p, restarted(1, "Error"))
	keeper := w.track("keeper", "v1 Pod none")
	w.expectState(keeper, 0, target.Absent, "")
	w.awaitSync()
	w.expectSynthetic()
	wl := w.track("web", "v1 Pod single")
	w.expectSynthetic("app/1")
	if ev := w.sink.events("ContainerRestarted")[0]; ev.ResourceID != wl.Resources[0].ID {
		t.Errorf("it was offered for %d, want %d", ev.ResourceID, wl.Resources[0].ID)
	}
	w.expectDesiredEvent(wl.Instance, observe.TerminationUID(p.GetUID(), "app", 1), true)
	w.targets.Forget(wl.Name)
	key := observe.EventKey(observe.TerminationUID(p.GetUID(), "app", 1))
	w.eventually("it is cancelled", func() string { return complain(!w.sink.isCancelled(key), "it is not") })
	w.eventually("it is forgotten", func() string { return complain(!w.sink.forgotten(key), "it is kept") })
}

// Synthetic Events that are older than the API server's retention of Events are not part of the desired state.
func TestReporter_DesiredState_LeavesOutOldSyntheticEvents(t *testing.T) {
	t.Parallel()
	config := quick()
	config.now = func() time.Time { return time.Now().Add(2 * time.Hour) }
	w := newWorld(t, shared.reader, config)
	p := w.create(pod("single"))
	w.patchStatus(p, restarted(1, "Error"))
	wl := w.track("web", "v1 Pod single")
	w.expectSynthetic("app/1")
	change := target.HealthTransition{UID: "cr", To: "Down", At: time.Now()}
	w.reporter.RecordTransition(wl.Name, change)
	w.expectDesiredEvent(wl.Instance, observe.TransitionUID(change), false)
	w.expectDesiredEvent(wl.Instance, observe.TerminationUID(p.GetUID(), "app", 1), false)
}

func TestReporter_RecordTransition(t *testing.T) {
	t.Parallel()
	store := newMemoryStore()
	w := newIdleWorld(t, shared.reader, quick())
	w.again(store)
	w.run()
	at := time.Now().UTC().Truncate(time.Second)
	down := target.HealthTransition{UID: "cr", From: "Healthy", To: "Down", Reason: "Crash", Message: "it crashes", At: at}
	well := target.HealthTransition{UID: "cr", From: "Down", To: "Healthy", At: at.Add(time.Minute)}
	w.reporter.RecordTransition("nobody", down)
	wl := w.track("web", "v1 ConfigMap conf")
	for _, c := range []target.HealthTransition{{}, {UID: "cr", At: at}, {UID: "cr", To: "Down"}, {To: "Down", At: at}} {
		w.reporter.RecordTransition(wl.Name, c) // incomplete
	}
	for range 3 {
		w.reporter.RecordTransition(wl.Name, down)
	}
	stamp := func(c target.HealthTransition) string { return c.At.Format(time.RFC3339) + "/" + c.To }
	w.expectSynthetic(stamp(down))
	ev := w.sink.events("WorkloadDown")[0]
	if want := "Workload " + wl.Name + " is Down, it was Healthy: it crashes"; ev.Message != want || ev.Type != "Warning" || ev.Workload != wl.Instance {
		t.Errorf("offered is %+v, want the message %q", ev, want)
	}
	w.expectDesiredEvent(wl.Instance, ev.UID, true)
	w.stop()

	w.again(store)
	w.targets.Track(wl)
	w.reporter.RecordTransition(wl.Name, well)
	w.expectSynthetic(stamp(well))
	w.eventually("the earlier transition is forgotten", func() string {
		kept := w.sink.lastRetained(observe.SubjectOf(w.sink.events("WorkloadHealthy")[0]))
		return complain(!slices.Equal(kept, []observe.Key{observe.EventKey(observe.TransitionUID(well))}), fmt.Sprintf("kept are %q", kept))
	})
	again := target.HealthTransition{UID: "cr2", To: "Healthy", At: at.Add(2 * time.Minute)}
	w.reporter.RecordTransition(wl.Name, again) // the ThreeportWorkload was deleted and created
	w.expectForgotten(observe.TransitionUID(well))
	w.run()
	w.eventually("the workload is assessed", func() string {
		return complain(w.reporter.sizes()["damped workloads"] == 0, "it is not")
	})
	w.targets.Forget(wl.Name)
	w.expectForgotten(observe.TransitionUID(again))
	w.stop()
}

func (w *world) expectDesiredEvent(instance target.Instance, uid types.UID, want bool) {
	w.Helper()
	w.eventually(fmt.Sprintf("the Event %s is in the desired state: %t", uid, want), func() string {
		state, complete, err := w.reporter.DesiredState(w.ctx, instance, time.Time{})
		if err != nil || !complete {
			return fmt.Sprintf("it is not complete: %v", err)
		}
		n := 0
		for _, ev := range state.Events {
			if ev.UID == uid {
				n++
			}
		}
		return complain(n > 1 || (n == 1) != want, fmt.Sprintf("it is in it %d times", n))
	})
}
