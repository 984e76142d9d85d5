package informers

import (
	"fmt"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

const readAll = `[{"apiGroups": ["*"], "resources": ["*"], "verbs": ["list", "watch"]}]`

// What is deleted while a permission is missing is reported once, when it is back, and before what was created
// in its place.
func TestDeletionWhileNothingWatched(t *testing.T) {
	t.Parallel()
	reader, name := user(t, readAll)
	w := newWorld(t, reader, quick())
	for _, c := range []string{"deleted", "again", "stays"} {
		w.create(configMap(c))
	}
	wl := w.track("wl", "v1 ConfigMap deleted", "v1 ConfigMap again", "v1 ConfigMap stays")
	for i := range wl.Resources {
		w.expectLives(wl.Resources[i].Ref, "[1]")
	}
	w.revoke(name)
	w.expectState(wl, 0, target.Forbidden, "permission missing: list configmaps")
	for i := range wl.Resources { // what was to be sent is so still
		if op := w.sink.operations(wl.Resources[i].Ref)[0]; w.sink.withdrawn(op.Key()) {
			t.Errorf("what was offered of %s was withdrawn when its permission was revoked", wl.Resources[i].Ref)
		}
	}
	w.remove(w.parse(configMap("deleted")))
	w.remove(w.parse(configMap("again")))
	w.create(configMap("again"))
	w.allow(name, readAll)
	w.expectState(wl, 0, target.Absent, "")
	w.expectState(wl, 1, target.Present, "")
	w.expectLives(wl.Resources[0].Ref, "[1 1-deleted]")
	w.expectLives(wl.Resources[1].Ref, "[1 1-deleted 2]")
	w.expectLives(wl.Resources[2].Ref, "[1]")
	w.expectStatus(wl, "Down")
}

func TestKindThatIsReinstalled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shared.reader, quick())
	const manifest = "{apiVersion: NS.example.com/v1, kind: Gadget, metadata: {name: g, namespace: NS}}"
	wl := w.track("wl", "NS.example.com/v1 Gadget g", "v1 ConfigMap conf")
	w.create(configMap("conf"))
	w.expectState(wl, 0, target.KindNotInstalled, "Gadget."+w.namespace+".example.com is not installed")
	w.expectState(wl, 1, target.Present, "")
	want := ""
	for n := 1; n <= 2; n++ {
		definition := w.define("NS.example.com", "Gadget")
		w.create(manifest)
		want += fmt.Sprintf("%d", n)
		w.expectLives(wl.Resources[0].Ref, "["+want+"]")
		w.expectState(wl, 0, target.Present, "")
		w.remove(definition)
		want += fmt.Sprintf(" %d-deleted", n)
		w.expectLives(wl.Resources[0].Ref, "["+want+"]")
		w.expectState(wl, 0, target.KindNotInstalled, "")
		want += " "
	}
	w.eventually("the watch of the kind that is not installed to end", func() string {
		if n := w.proxy.watches("/gadgets"); n > 0 {
			return fmt.Sprintf("%d are open", n)
		}
		return ""
	})
}

func TestRecreationUnderTheSameName(t *testing.T) {
	w := newWorld(t, shared.reader, quick())
	wl := w.track("wl", "v1 ConfigMap conf")
	w.expectState(wl, 0, target.Absent, "")
	w.expectStatus(wl, "Down")
	for range 3 {
		w.remove(w.create(configMap("conf")))
	}
	last := w.create(configMap("conf"))
	ref := wl.Resources[0].Ref
	w.eventually("the last incarnation to be the last operation", func() string {
		ops := w.sink.operations(ref)
		if len(ops) == 0 || ops[len(ops)-1].Object.UID != last.GetUID() || ops[len(ops)-1].Deleted {
			return "they are " + lives(ops)
		}
		return ""
	})
	// The status may be that of a workload that flaps: it depends on how many of the deletions were judged.
	w.eventually("the resource to be Healthy", func() string {
		sight := w.watcher.ResourceStatuses(wl.Name)[0]
		return complain(sight.Health != "Healthy", fmt.Sprintf("it is %s: %s", sight.Health, sight.Cause))
	})
}

// A missing permission is asked about again and again, but not often; when it is granted, the kind heals.
func TestForbiddenKindHealsWithoutAHotLoop(t *testing.T) {
	t.Parallel()
	reader, name := user(t, "[]")
	config := quick()
	config.RetryMin, config.RetryMax = 100*time.Millisecond, time.Second
	w := newWorld(t, reader, config)
	w.create(configMap("conf"))
	wl := w.track("wl", "v1 ConfigMap conf")
	w.expectState(wl, 0, target.Forbidden, "permission missing: list configmaps in namespace "+w.namespace)
	w.expectStatus(wl, "Unknown")
	w.eventually("readiness: that every kind is forbidden is a state and not a delay", func() string {
		if !w.watcher.Ready() {
			return "it is not ready"
		}
		return ""
	})
	before, begin := len(w.proxy.sent("")), time.Now()
	w.during(3*time.Second, func() string {
		if s := w.watcher.ResourceStatuses(wl.Name)[0]; s.State != target.Forbidden {
			return fmt.Sprintf("the state changed to %s although nothing did", s.State)
		}
		return ""
	})
	// Five kinds, two reviews at a pass, at most 3s/100ms passes if the wait did not grow, about 6 if it does.
	got, took := len(w.proxy.sent(""))-before, time.Since(begin)
	if most := int(120 * took / (3 * time.Second)); got == 0 || got > most {
		t.Errorf("%d requests in %s, expected some, and no more than %d", got, took, most)
	}
	w.allow(name, readAll)
	w.expectState(wl, 0, target.Present, "")
	w.expectStatus(wl, "Healthy")
	w.expectLives(wl.Resources[0].Ref, "[1]")
}
