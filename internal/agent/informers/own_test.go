package informers

import (
	"fmt"
	"maps"
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

// killedNow is the status of a pod whose container was killed for its memory just after its nth restart.
func killedNow(n int) string {
	return strings.Replace(restarted(n, "OOMKilled"), `"state": {"running": {"startedAt": "`+endedAt(n).Format(time.RFC3339)+`"}}`,
		`"state": {"terminated": {"exitCode": 137, "reason": "OOMKilled", "finishedAt": "`+endedAt(n+1).Format(time.RFC3339)+`"}}`, 1)
}

var firstEnd = time.Now().UTC().Truncate(time.Second).Add(-10 * time.Minute)

// endedAt is when a container ended for the nth time.
func endedAt(n int) time.Time { return firstEnd.Add(time.Duration(n) * time.Second) }

// own returns what follows the first slash in the UIDs of the Events of the watcher's own that were offered, in their order.
func (r *recorder) own() []string {
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

func (w *world) expectOwn(want ...string) {
	w.Helper()
	w.eventually(fmt.Sprintf("the Events %q of the watcher's own", want), func() string {
		return complain(!slices.Equal(w.sink.own(), want), fmt.Sprintf("they are %q", w.sink.own()))
	})
}

func (w *world) expectForgotten(uid types.UID) {
	w.Helper()
	w.eventually("the Event "+string(uid)+" to be forgotten", func() string {
		return complain(!w.sink.forgotten(observe.EventKey(uid)), "it is not")
	})
}

// Each end of a container is offered under a UID of its own, however often the pod changes and the watcher starts, and is
// forgotten when the next one takes its place, and with the pod.
func TestEndsOfContainers(t *testing.T) {
	t.Parallel()
	store := newRecords()
	w := newIdleWorld(t, shared.reader, quick())
	w.again(store)
	d := w.create(deployment("web"))
	p := w.create(owned(pod("web-1"), d))
	w.run()
	wl := w.track("web", "apps/v1 Deployment web")
	uid := func(n int) types.UID { return observe.TerminationUID(p.GetUID(), "app", int32(n)) }

	w.patchStatus(p, restarted(1, "OOMKilled"))
	w.expectOwn("app/1")
	got := w.sink.events("OOMKilled")[0]
	want := observe.Event{
		Workload: wl.Instance, ResourceID: wl.Resources[0].ID, UID: uid(1), ResourceVersion: got.ResourceVersion,
		Involved: target.Ref{Kind: "Pod", Namespace: w.namespace, Name: "web-1"}, Type: "Warning", Reason: "OOMKilled",
		InvolvedUID: p.GetUID(), InvolvedVersion: "v1",
		Message: "Pod web-1: container app ended with exit code 137 (OOMKilled): it needed more memory than it may have",
		Time:    endedAt(1), Preexisting: true,
	}
	if got != want {
		t.Errorf("offered is\n%+v, want\n%+v", got, want)
	}
	w.patch(p, `{"metadata": {"annotations": {"some": "change"}}}`)
	w.patchStatus(p, restarted(2, "OOMKilled"))
	w.expectOwn("app/1", "app/2")
	w.expectForgotten(uid(1))
	w.patchStatus(p, killedNow(2))
	w.expectOwn("app/1", "app/2", "app/3")
	w.expectForgotten(uid(2))
	w.patchStatus(p, restarted(3, "OOMKilled"))
	w.patch(p, `{"metadata": {"annotations": {"some": "other"}}}`)
	version := w.getVersion(p)
	w.eventually("the last change to be seen", func() string {
		ops := w.sink.operations(target.Ref{Kind: "Pod", Namespace: w.namespace, Name: "web-1"})
		return complain(ops[len(ops)-1].ResourceVersion != version, "it is not")
	})
	w.expectOwn("app/1", "app/2", "app/3")
	if kept := slices.Collect(maps.Keys(store.Load(endTable))); !slices.Equal(kept, []string{string(uid(3))}) {
		t.Errorf("kept are %q, want the latest end", kept)
	}
	w.expectInInventory(wl.Instance, uid(3), true)
	w.stop()

	// A watcher that begins with a pod of which two ends show offers both, with its memory or without it: the earlier in
	// the version that it had, which is no news for whoever remembers it.
	w.patchStatus(p, killedNow(3))
	before := w.sink.versions[observe.EventKey(uid(3))]
	for _, memory := range []*records{newRecords(), store} {
		w.again(memory)
		w.targets.Track(wl)
		w.run()
		w.expectOwn("app/3", "app/4")
		w.expectForgotten(uid(3))
		w.stop()
		if again := w.sink.versions[observe.EventKey(uid(3))]; again != before {
			t.Errorf("the end was offered in version %q, and then in %q", before, again)
		}
	}
	// It remembers that the earlier one is done.
	w.again(store)
	w.targets.Track(wl)
	w.run()
	w.expectOwn("app/4")
	w.stop()

	w.remove(p)
	w.again(store)
	w.targets.Track(wl)
	w.run()
	w.expectForgotten(uid(4))
	w.expectOwn()
	w.eventually("nothing to be kept of the pod's ends", func() string {
		return complain(len(store.Load(endTable)) > 0, fmt.Sprint(store.Load(endTable)))
	})
}

// What a pod tells of its containers is not offered before the pod is claimed, and withdrawn when it is not any more.
func TestEndsOfUnclaimedPods(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shared.reader, quick())
	p := w.create(pod("single"))
	w.patchStatus(p, restarted(1, "Error"))
	keeper := w.track("keeper", "v1 Pod none")
	w.expectState(keeper, 0, target.Absent, "")
	w.awaitSync()
	w.expectOwn()
	wl := w.track("web", "v1 Pod single")
	w.expectOwn("app/1")
	if ev := w.sink.events("ContainerRestarted")[0]; ev.ResourceID != wl.Resources[0].ID {
		t.Errorf("it was offered for %d, want %d", ev.ResourceID, wl.Resources[0].ID)
	}
	w.expectInInventory(wl.Instance, observe.TerminationUID(p.GetUID(), "app", 1), true)
	w.targets.Forget(wl.Name)
	key := observe.EventKey(observe.TerminationUID(p.GetUID(), "app", 1))
	w.eventually("it to be withdrawn", func() string { return complain(!w.sink.withdrawn(key), "it is not") })
	w.eventually("it to be forgotten", func() string {
		w.watcher.tidyMemory()
		return complain(!w.sink.forgotten(key), "it is not")
	})
}

// What ended longer ago than the API server keeps Events is as little looked for as they are.
func TestOldEndsAreNotInTheInventory(t *testing.T) {
	t.Parallel()
	w := newIdleWorld(t, shared.reader, quick())
	w.watcher.now = func() time.Time { return time.Now().Add(2 * time.Hour) }
	w.run()
	p := w.create(pod("single"))
	w.patchStatus(p, restarted(1, "Error"))
	wl := w.track("web", "v1 Pod single")
	w.expectOwn("app/1")
	change := target.HealthTransition{UID: "cr", To: "Down", At: time.Now()}
	w.watcher.RecordTransition(wl.Name, change)
	w.expectInInventory(wl.Instance, observe.TransitionUID(change), false)
	w.expectInInventory(wl.Instance, observe.TerminationUID(p.GetUID(), "app", 1), false)
}

func TestAnnounce(t *testing.T) {
	t.Parallel()
	store := newRecords()
	w := newIdleWorld(t, shared.reader, quick())
	w.again(store)
	w.run()
	at := time.Now().UTC().Truncate(time.Second)
	down := target.HealthTransition{UID: "cr", From: "Healthy", To: "Down", Reason: "Crash", Message: "it crashes", At: at}
	well := target.HealthTransition{UID: "cr", From: "Down", To: "Healthy", At: at.Add(time.Minute)}
	w.watcher.RecordTransition("nobody", down)
	wl := w.track("web", "v1 ConfigMap conf")
	for _, c := range []target.HealthTransition{{}, {UID: "cr", At: at}, {UID: "cr", To: "Down"}, {To: "Down", At: at}} {
		w.watcher.RecordTransition(wl.Name, c) // what is not whole
	}
	for range 3 {
		w.watcher.RecordTransition(wl.Name, down)
	}
	stamp := func(c target.HealthTransition) string { return c.At.Format(time.RFC3339) + "/" + c.To }
	w.expectOwn(stamp(down))
	ev := w.sink.events("WorkloadDown")[0]
	if want := "Workload " + wl.Name + " is Down, it was Healthy: it crashes"; ev.Message != want || ev.Type != "Warning" || ev.Workload != wl.Instance {
		t.Errorf("offered is %+v, want the message %q", ev, want)
	}
	w.expectInInventory(wl.Instance, ev.UID, true)
	w.stop()

	w.again(store)
	w.targets.Track(wl)
	w.watcher.RecordTransition(wl.Name, well)
	w.expectOwn(stamp(well))
	w.expectForgotten(observe.TransitionUID(down))
	if kept := string(store.Load(changeTable)[wl.Name]); kept != string(observe.TransitionUID(well)) {
		t.Errorf("kept is %q, want the latest change", kept)
	}
	w.run()
	w.eventually("the workload to be tracked", func() string {
		w.watcher.mu.Lock()
		defer w.watcher.mu.Unlock()
		return complain(len(w.watcher.tracked) == 0, "it is not")
	})
	w.targets.Forget(wl.Name)
	w.expectForgotten(observe.TransitionUID(well))
	w.stop()

	// A workload that was deleted while nothing watched.
	store.Put(changeTable, "gone", []byte("cr/gone"))
	w.again(store)
	w.watcher.tidyMemory()
	if w.sink.forgotten(observe.EventKey("cr/gone")) {
		t.Error("a change is forgotten before any workload is declared")
	}
	w.targets.Track(wl)
	w.watcher.tidyMemory()
	w.expectForgotten("cr/gone")
	if left := store.Load(changeTable); len(left) > 0 {
		t.Errorf("kept are %v", left)
	}
	w.watcher.shutDown()
}

func (w *world) expectInInventory(instance target.Instance, uid types.UID, want bool) {
	w.Helper()
	w.eventually(fmt.Sprintf("the Event %s to be in the inventory: %t", uid, want), func() string {
		inventory, complete, err := w.watcher.DesiredState(w.ctx, instance)
		if err != nil || !complete {
			return fmt.Sprintf("it is not complete: %v", err)
		}
		n := 0
		for _, ev := range inventory.Events {
			if ev.UID == uid {
				n++
			}
		}
		return complain(n > 1 || (n == 1) != want, fmt.Sprintf("it is there %d times", n))
	})
}
