package reporter

import (
	"fmt"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

const readAll = `[{"apiGroups": ["*"], "resources": ["*"], "verbs": ["list", "watch"]}]`

// A deletion without permission to watch is reported once, when the permission is back, and before an object that was
// created under the same name.
func TestReporter_DeletionWithoutPermission_ReportedOnce(t *testing.T) {
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
	for i := range wl.Resources { // pending reports are not cancelled
		if op := w.sink.operations(wl.Resources[i].Ref)[0]; w.sink.isCancelled(op.Key()) {
			t.Errorf("the operation of %s was cancelled when its permission was revoked", wl.Resources[i].Ref)
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

func TestInformers_KindReinstalled(t *testing.T) {
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
	w.eventually("the watch of the kind that is not installed ends", func() string {
		if n := w.proxy.watches("/gadgets"); n > 0 {
			return fmt.Sprintf("%d are open", n)
		}
		return ""
	})
}

func TestReporter_RecreatedObject_DeletedBeforeAdded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shared.reader, quick())
	wl := w.track("wl", "v1 ConfigMap conf")
	w.expectState(wl, 0, target.Absent, "")
	w.expectStatus(wl, "Down")
	for range 3 {
		w.remove(w.create(configMap("conf")))
	}
	last := w.create(configMap("conf"))
	ref := wl.Resources[0].Ref
	w.eventually("the last operation is of the last incarnation", func() string {
		ops := w.sink.operations(ref)
		if len(ops) == 0 || ops[len(ops)-1].Object.UID != last.GetUID() || ops[len(ops)-1].Deleted {
			return "they are " + lives(ops)
		}
		return ""
	})
	// The status may be damped, depending on how many of the deletions were assessed.
	w.eventually("the resource is Healthy", func() string {
		status := w.statuses(wl)[0]
		return complain(status.Health != "Healthy", fmt.Sprintf("it is %s: %s", status.Health, status.Cause))
	})
}

// A missing permission is reviewed again with a backoff. The kind recovers when it is granted.
func TestInformers_ForbiddenKind_RecoversWithoutHotLoop(t *testing.T) {
	t.Parallel()
	reader, name := user(t, "[]")
	config := quick()
	config.RetryMin, config.RetryMax = 100*time.Millisecond, time.Second
	w := newWorld(t, reader, config)
	w.create(configMap("conf"))
	wl := w.track("wl", "v1 ConfigMap conf")
	w.expectState(wl, 0, target.Forbidden, "permission missing: list configmaps in namespace "+w.namespace)
	w.expectStatus(wl, "Unknown")
	w.eventually("the reporter is ready although every kind is forbidden", func() string {
		if !w.reporter.Ready() {
			return "it is not ready"
		}
		return ""
	})
	before, begin := len(w.proxy.sent("")), time.Now()
	w.during(3*time.Second, func() string {
		if s := w.statuses(wl)[0]; s.State != target.Forbidden {
			return fmt.Sprintf("the state changed to %s without a reason", s.State)
		}
		return ""
	})
	// Five kinds with two reviews per reconciliation: about 6 reconciliations with a growing wait, 30 with a constant one.
	got, took := len(w.proxy.sent(""))-before, time.Since(begin)
	if most := int(120 * took / (3 * time.Second)); got == 0 || got > most {
		t.Errorf("%d requests in %s, want some, and %d at most", got, took, most)
	}
	w.allow(name, readAll)
	w.expectState(wl, 0, target.Present, "")
	w.expectStatus(wl, "Healthy")
	w.expectLives(wl.Resources[0].Ref, "[1]")
}
