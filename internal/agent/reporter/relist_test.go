package reporter

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// deletions returns the objects whose deletion was offered.
func (r *recorder) deletions() map[types.UID]target.Ref {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[types.UID]target.Ref{}
	for _, report := range r.offered {
		if op, ok := report.(observe.Operation); ok && op.Deleted {
			out[op.Object.UID] = op.Object.Ref
		}
	}
	return out
}

// Restarts of informers, failing, cut or partial lists and watches cause no deletion of an existing object, and lose no
// change.
func TestInformers_RestartsAndFailures_NoFalseDeletion(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	w := newWorld(t, shared.reader, quick())
	w.define("NS.example.com", "Gizmo")
	kinds := map[string]string{
		"v1 ConfigMap":            configMap("NAME"),
		"v1 Secret":               "{apiVersion: v1, kind: Secret, metadata: {name: NAME, namespace: NS}}",
		"v1 Pod":                  pod("NAME"),
		"apps/v1 ReplicaSet":      replicaSet("NAME"),
		"NS.example.com/v1 Gizmo": "{apiVersion: NS.example.com/v1, kind: Gizmo, metadata: {name: NAME, namespace: NS}}",
	}
	const each = 4
	exists := map[types.UID]string{}
	gone := map[types.UID]string{}
	var resources []string
	for kind, manifest := range kinds {
		for n := range each {
			name := fmt.Sprintf("stays-%d", n)
			exists[w.create(strings.ReplaceAll(manifest, "NAME", name)).GetUID()] = kind + " " + name
			resources = append(resources, kind+" "+name)
		}
		resources = append(resources, kind+" churns")
	}
	wl := w.track("wl", resources...)
	for i := range wl.Resources {
		if wl.Resources[i].Name != "churns" {
			w.expectLives(wl.Resources[i].Ref, "[1]")
		}
	}
	w.awaitSync()

	random := rand.New(rand.NewPCG(seed, 1)) // called under the proxy's mutex
	concerned := func(r *http.Request) bool {
		return slices.ContainsFunc([]string{"/configmaps", "/secrets", "/pods", "/replicasets", "/gizmos"}, func(resource string) bool {
			return strings.HasSuffix(r.URL.Path, resource) && !strings.Contains(r.URL.RawQuery, "fieldSelector")
		})
	}
	w.proxy.mu.Lock()
	w.proxy.ask = func(r *http.Request) { r.URL.RawQuery = strings.Replace(r.URL.RawQuery, "limit=500", "limit=2", 1) }
	w.proxy.spoil = func(r *http.Response) {
		if concerned(r.Request) && random.IntN(3) == 0 {
			cut(r, random.Int64N(3000))
		}
	}
	w.proxy.answer = func(r *http.Request) int {
		codes := []int{403, 404, 405, 410, 429, 500, 503, 504}
		switch {
		case concerned(r) && strings.Contains(r.URL.RawQuery, "sendInitialEvents") && random.IntN(2) == 0,
			concerned(r) && random.IntN(4) == 0:
			return codes[random.IntN(len(codes))]
		case strings.HasPrefix(r.URL.Path, "/api") && random.IntN(20) == 0: // discovery and reviews
			return 500
		}
		return 0
	}
	w.proxy.mu.Unlock()
	begin, restarts := time.Now(), 0
	offeredDeletions := func() (n int) {
		for uid := range w.sink.deletions() {
			if gone[uid] != "" {
				n++
			}
		}
		return n
	}
	// On a busy machine it may take long until an operation is offered despite the failures.
	for took := time.Duration(0); took < 5*time.Second || (offeredDeletions() == 0 || restarts == 0) && took < waitLimit; took = time.Since(begin) {
		for kind, manifest := range kinds {
			churns := w.create(strings.ReplaceAll(manifest, "NAME", "churns"))
			w.patch(w.parse(strings.ReplaceAll(manifest, "NAME", fmt.Sprintf("stays-%d", rand.IntN(each)))),
				fmt.Sprintf(`{"metadata": {"annotations": {"round": "%d"}}}`, restarts))
			restarts += w.reporter.informers.Restart(func(schema.GroupVersionResource) bool { return rand.IntN(8) == 0 })
			if rand.IntN(10) == 0 {
				w.proxy.CloseClientConnections()
			}
			w.remove(churns)
			gone[churns.GetUID()] = kind
		}
	}
	for uid, ref := range w.sink.deletions() {
		if what := exists[uid]; what != "" {
			t.Errorf("the deletion of %s is offered, but it exists", ref)
		}
	}
	w.proxy.mu.Lock()
	w.proxy.ask, w.proxy.spoil, w.proxy.answer = nil, nil, nil
	w.proxy.mu.Unlock()
	offeredMeanwhile := offeredDeletions()
	t.Logf("%d informers were restarted; %d of %d deletions were offered meanwhile", restarts, offeredMeanwhile, len(gone))
	for i, r := range wl.Resources {
		if r.Name == "churns" {
			w.expectState(wl, i, target.Absent, "")
		} else {
			w.expectState(wl, i, target.Present, "")
		}
	}
	w.expectAsOffered(wl.Instance)
	if offeredMeanwhile == 0 || restarts == 0 {
		t.Error("nothing was restarted, or no deletion was offered: the test proves nothing")
	}
}
