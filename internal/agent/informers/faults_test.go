package informers

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

// expectNoDeletions fails the test if something was told to be deleted.
func (w *world) expectNoDeletions() {
	w.Helper()
	for _, ref := range w.sink.deletions() {
		w.Errorf("%s was told to be deleted, and exists", ref)
	}
}

// expectNews changes a ConfigMap and waits until that is told.
func (w *world) expectNews(name string) {
	w.Helper()
	ref := w.resource("v1 ConfigMap " + name).Ref
	before := len(w.sink.operations(ref))
	w.patch(w.parse(configMap(name)), fmt.Sprintf(`{"data": {"key": "news-%d"}}`, before))
	w.eventually("the change of "+name+" to be told", func() string {
		return complain(len(w.sink.operations(ref)) == before, "it is not")
	})
}

// An informer that has synced, and then gets nothing but errors, says so when its patience is over, and not before.
// What is known is reported on, other kinds go on, and it heals.
func TestErrorsAfterTheFirstSyncShow(t *testing.T) {
	for _, code := range []int{500, 503, 429} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			t.Parallel()
			w := newIdleWorld(t, shared.reader, quick())
			w.watcher.config.Patience = 2 * time.Second
			w.run()
			conf := w.create(configMap("conf"))
			w.create("{apiVersion: v1, kind: Secret, metadata: {name: other, namespace: NS}}")
			wl := w.track("wl", "v1 ConfigMap conf", "v1 Secret other")
			w.expectLives(wl.Resources[0].Ref, "[1]")
			w.expectLives(wl.Resources[1].Ref, "[1]")
			w.awaitSync()
			begin := time.Now()
			w.proxy.failWith(func(r *http.Request) int {
				if strings.HasSuffix(r.URL.Path, "/configmaps") {
					return code
				}
				return 0
			})
			w.proxy.CloseClientConnections()
			asked := len(w.proxy.sent("/configmaps"))
			w.during(time.Second, func() string {
				s := w.watcher.ResourceStatuses(wl.Name)[0]
				patient := time.Since(begin) < w.watcher.config.Patience
				return complain(patient && s.State != target.Present, fmt.Sprintf("it is %s: %s", s.State, s.Message))
			})
			w.expectState(wl, 0, target.Unavailable, "")
			if took := time.Since(begin); took < w.watcher.config.Patience {
				t.Errorf("it was Unavailable after %s, before its patience was over", took)
			}
			w.expectState(wl, 1, target.Present, "")
			w.expectStatus(wl, "Unknown")
			w.create(event("Meanwhile", conf))
			w.expectEvent("Meanwhile", wl.Resources[0])
			if in := w.inventory(wl.Instance); len(in.Operations) != 1 || len(in.Absent) != 0 {
				t.Errorf("the inventory is %s, expected the Secret only", describe(in))
			}
			n, took := len(w.proxy.sent("/configmaps"))-asked, time.Since(begin)
			if most := 10 + 4*int(took/time.Second); n > most { // one a second is what is asked for with 429
				t.Errorf("%d requests while they fail for %s, expected no more than %d", n, took, most)
			}
			w.proxy.failWith(nil)
			w.expectState(wl, 0, target.Present, "")
			w.expectNews("conf")
			w.expectNoDeletions()
		})
	}
}

// What a watch resumes from may be compacted by then: the informer lists again, and what happened in between is told.
func TestCompactedWatchListsAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shared.reader, quick())
	for _, name := range []string{"stays", "goes"} {
		w.create(configMap(name))
	}
	wl := w.track("wl", "v1 ConfigMap stays", "v1 ConfigMap goes", "v1 ConfigMap comes")
	w.expectLives(wl.Resources[0].Ref, "[1]")
	w.expectLives(wl.Resources[1].Ref, "[1]")
	w.awaitSync()
	defer w.proxy.freeze("/configmaps")()
	w.remove(w.parse(configMap("goes")))
	w.create(configMap("comes"))
	expired := 0
	w.proxy.failWith(func(r *http.Request) int {
		query := r.URL.Query()
		if strings.HasSuffix(r.URL.Path, "/configmaps") && query.Get("watch") != "" && query.Get("resourceVersion") != "" {
			if expired++; expired <= 3 {
				return http.StatusGone
			}
		}
		return 0
	})
	w.proxy.CloseClientConnections()
	w.expectLives(wl.Resources[1].Ref, "[1 1-deleted]")
	w.expectLives(wl.Resources[2].Ref, "[1]")
	w.expectNews("stays")
	w.proxy.failWith(nil)
	if expired == 0 {
		t.Error("no watch expired: the test shows nothing")
	}
	if n := len(w.sink.deletions()); n != 1 {
		t.Errorf("%d deletions were told, expected 1", n)
	}
}

// The first list after a watch that broke fails, some times. Nothing is lost, and nothing is told to be deleted.
func TestFirstRelistFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shared.reader, quick())
	w.create(configMap("conf"))
	wl := w.track("wl", "v1 ConfigMap conf")
	w.expectLives(wl.Resources[0].Ref, "[1]")
	w.awaitSync()
	failures := 0
	w.proxy.failWith(func(r *http.Request) int {
		if strings.HasSuffix(r.URL.Path, "/configmaps") {
			if failures++; failures == 1 {
				return http.StatusGone
			} else if failures < 5 {
				return http.StatusInternalServerError
			}
		}
		return 0
	})
	w.proxy.CloseClientConnections()
	w.expectNews("conf")
	w.expectState(wl, 0, target.Present, "")
	w.expectNoDeletions()
}

// The API server says for a moment that it does not serve a kind which it does.
func TestKindThatIsUnservedForAMoment(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shared.reader, quick())
	w.define("NS.example.com", "Blink")
	w.create("{apiVersion: NS.example.com/v1, kind: Blink, metadata: {name: b, namespace: NS}}")
	wl := w.track("wl", "NS.example.com/v1 Blink b")
	w.expectLives(wl.Resources[0].Ref, "[1]")
	w.awaitSync()
	asked, hold := false, make(chan struct{})
	w.proxy.failWith(func(r *http.Request) int {
		switch {
		case strings.HasSuffix(r.URL.Path, "/blinks") && !asked:
			return 404
		case r.URL.Path == "/apis/"+w.namespace+".example.com": // the last question of a pass
			asked = true
			w.proxy.hold, w.proxy.held = hold, r.URL.Path // nothing more is told until that has shown
			return 404
		case strings.HasPrefix(r.URL.Path, "/apis/"+w.namespace+".example.com") && !asked:
			return 404
		}
		return 0
	})
	w.proxy.CloseClientConnections()
	w.expectState(wl, 0, target.Unavailable, "not installed")
	close(hold)
	w.expectState(wl, 0, target.Present, "")
	w.expectNoDeletions()
}

// One version of a kind is not served any more: who listed it is told of another, and who lists that sees no difference.
func TestVersionThatIsNotServedAnyMore(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shared.reader, quick())
	const schema = `"schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}`
	versions := func(old bool) string {
		return fmt.Sprintf(`{"spec": {"versions": [{"name": "v2", "served": true, "storage": true, %s}, {"name": "v1", "served": %t, "storage": false, %s}]}}`, schema, old, schema)
	}
	definition := w.define("NS.example.com", "Twin")
	w.patch(definition, versions(true))
	w.awaitServed(w.parse("{apiVersion: NS.example.com/v2, kind: Twin, metadata: {name: none, namespace: NS}}"))
	twin := w.create("{apiVersion: NS.example.com/v2, kind: Twin, metadata: {name: t, namespace: NS}}")
	one, two := w.track("one", "NS.example.com/v1 Twin t"), w.track("two", "NS.example.com/v2 Twin t")
	w.expectState(one, 0, target.Present, "")
	w.expectState(two, 0, target.Present, "")
	w.awaitSync()
	w.patch(definition, versions(false))
	w.awaitNotServed("/apis/" + w.namespace + ".example.com/v1")
	w.expectState(one, 0, target.Present, "version v1 is not served; watched as v2")
	w.expectState(two, 0, target.Present, "")
	w.patch(twin, `{"spec": {"news": true}}`)
	for _, wl := range []target.Workload{one, two} {
		w.expectAsOffered(wl.Instance)
		w.eventually("version v2 to be told", func() string {
			in := w.inventory(wl.Instance)
			if len(in.Operations) != 1 { // the kind may be seen not to be served for a moment
				return "told is " + describe(in)
			}
			got := in.Operations[0].Body.GetObjectKind().GroupVersionKind().Version
			return complain(got != "v2", "told is version "+got)
		})
	}
	w.expectNoDeletions()
}

// The API server is killed, or ended, and comes back. Custom resources are the last that it serves again.
func TestAPIServerRestarts(t *testing.T) {
	for _, how := range []string{"killed", "ended"} {
		t.Run(how, func(t *testing.T) {
			w := newWorld(t, shared.reader, quick())
			w.define("NS.example.com", "Rest")
			w.create("{apiVersion: NS.example.com/v1, kind: Rest, metadata: {name: r, namespace: NS}}")
			conf := w.create(configMap("conf"))
			w.create(pod("web"))
			wl := w.track("wl", "v1 ConfigMap conf", "NS.example.com/v1 Rest r", "v1 Pod web", "v1 ConfigMap none")
			for i := range wl.Resources[:3] {
				w.expectLives(wl.Resources[i].Ref, "[1]")
			}
			w.awaitSync()
			if how == "killed" {
				w.must(shared.api.Kill())
			}
			w.must(shared.api.Restart())
			w.awaitServed(w.parse("{apiVersion: NS.example.com/v1, kind: Rest, metadata: {name: none, namespace: NS}}"))
			begin := time.Now()
			w.expectNews("conf")
			w.create(event("After", conf))
			w.expectEvent("After", wl.Resources[0])
			t.Logf("what happens is seen again %s after the API server is back", time.Since(begin).Round(100*time.Millisecond))
			for i := range wl.Resources[:3] {
				w.expectState(wl, i, target.Present, "")
			}
			w.expectState(wl, 3, target.Absent, "")
			w.awaitSync()
			w.expectAsOffered(wl.Instance)
			w.expectNoDeletions()
		})
	}
}
