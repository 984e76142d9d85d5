package reporter

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

// expectNoDeletions fails the test if a deletion was offered.
func (w *world) expectNoDeletions() {
	w.Helper()
	for _, ref := range w.sink.deletions() {
		w.Errorf("the deletion of %s is offered, but it exists", ref)
	}
}

// expectNews changes a ConfigMap and waits until the change is offered.
func (w *world) expectNews(name string) {
	w.Helper()
	ref := w.resource("v1 ConfigMap " + name).Ref
	before := len(w.sink.operations(ref))
	w.patch(w.parse(configMap(name)), fmt.Sprintf(`{"data": {"key": "news-%d"}}`, before))
	w.eventually("the change of "+name+" is offered", func() string {
		return complain(len(w.sink.operations(ref)) == before, "it is not")
	})
}

// A kind whose informer has synced and then receives errors only is Unavailable after the timeout, and not before.
// Its known objects are still reported, other kinds are not affected, and the kind recovers.
func TestInformers_ErrorsAfterSync_UnavailableAfterTimeout(t *testing.T) {
	for _, code := range []int{500, 503, 429} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			t.Parallel()
			config := quick()
			config.UnavailableAfter = 2 * time.Second
			w := newWorld(t, shared.reader, config)
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
				s := w.statuses(wl)[0]
				patient := time.Since(begin) < config.UnavailableAfter
				return complain(patient && s.State != target.Present, fmt.Sprintf("it is %s: %s", s.State, s.Message))
			})
			w.expectState(wl, 0, target.Unavailable, "")
			if took := time.Since(begin); took < config.UnavailableAfter {
				t.Errorf("it is Unavailable after %s, before the timeout", took)
			}
			w.expectState(wl, 1, target.Present, "")
			w.expectStatus(wl, "Unknown")
			w.create(event("Meanwhile", conf))
			w.expectEvent("Meanwhile", wl.Resources[0])
			if in := w.desiredState(wl.Instance); len(in.Operations) != 1 || len(in.Absent) != 0 {
				t.Errorf("the desired state is %s, want the Secret only", describe(in))
			}
			n, took := len(w.proxy.sent("/configmaps"))-asked, time.Since(begin)
			if most := 10 + 4*int(took/time.Second); n > most { // client-go retries once a second after a 429
				t.Errorf("%d requests while they fail for %s, want %d at most", n, took, most)
			}
			w.proxy.failWith(nil)
			w.expectState(wl, 0, target.Present, "")
			w.expectNews("conf")
			w.expectNoDeletions()
		})
	}
}

// A watch whose resource version is compacted is replaced by a list, and the changes in between are offered.
func TestInformers_CompactedWatch_ListsAgain(t *testing.T) {
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
		t.Error("no watch expired: the test proves nothing")
	}
	if n := len(w.sink.deletions()); n != 1 {
		t.Errorf("%d deletions are offered, want 1", n)
	}
}

// Failing lists after a broken watch lose no change, and cause no deletion.
func TestInformers_RelistFails_LosesNothing(t *testing.T) {
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

// A single discovery answer without a kind that the API server serves causes no deletion.
func TestInformers_KindNotServedOnce_NoDeletion(t *testing.T) {
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
		case r.URL.Path == "/apis/"+w.namespace+".example.com": // the last request of a reconciliation
			asked = true
			w.proxy.hold, w.proxy.held = hold, r.URL.Path // no further answer until the state is published
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

// A workload that lists a version that is no longer served gets another version, which affects no other workload.
func TestInformers_VersionNoLongerServed_UsesAnother(t *testing.T) {
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
		w.eventually("version v2 is in the desired state", func() string {
			in := w.desiredState(wl.Instance)
			if len(in.Operations) != 1 { // the kind may be unavailable for a moment
				return "it is " + describe(in)
			}
			got := in.Operations[0].Body.GetObjectKind().GroupVersionKind().Version
			return complain(got != "v2", "it is version "+got)
		})
	}
	w.expectNoDeletions()
}

// A kind that is replaced by one of the same name and another scope is watched in the new scope, also if no request failed in between.
func TestInformers_KindWithOtherScope_IsWatchedAnew(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shared.reader, quick())
	definition := w.define("NS.example.com", "Scope")
	w.create("{apiVersion: NS.example.com/v1, kind: Scope, metadata: {name: s, namespace: NS}}")
	wl := w.track("wl", "NS.example.com/v1 Scope s")
	w.expectLives(wl.Resources[0].Ref, "[1]")
	w.awaitSync()
	replaced := make(chan struct{})
	w.proxy.holdWhile(replaced, "/scopes")
	w.remove(definition)
	clustered := strings.Replace(crd("NS.example.com", "Scope"), "scope: Namespaced", "scope: Cluster", 1)
	w.create(clustered)
	const manifest = "{apiVersion: NS.example.com/v1, kind: Scope, metadata: {name: s}}"
	w.awaitServed(w.parse(manifest))
	w.create(manifest)
	close(replaced)
	ref := wl.Resources[0].Ref
	ref.Namespace = ""
	w.expectLives(ref, "[1]")
	w.expectState(wl, 0, target.Present, "")
	w.expectLives(wl.Resources[0].Ref, "[1 1-deleted]")
}

// The informers recover from a restart of the API server, which serves custom resources last.
func TestInformers_APIServerRestart_Recovers(t *testing.T) {
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
			t.Logf("changes are seen again %s after the API server is back", time.Since(begin).Round(100*time.Millisecond))
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
