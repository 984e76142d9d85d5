package reporter

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

// fetchLimit is the number of objects that DeletionsObserved reads one by one.
const fetchLimit = 5

func TestReporter_DeletionsObserved(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reason  string
		objects int
	}{
		{"objects asked for one by one", fetchLimit},
		{"objects asked for with one list", fetchLimit + 1},
	} {
		t.Run(c.reason, func(t *testing.T) {
			w := newWorld(t, shared.reader, quick())
			var resources []string
			for i := range c.objects {
				name := fmt.Sprintf("c%d", i)
				w.create(strings.Replace(configMap(name), "name:", "finalizers: [example.com/wait], name:", 1))
				resources = append(resources, "v1 ConfigMap "+name)
			}
			wl := w.track("wl", append(resources, "v1 ConfigMap absent", "example.org/v1 Kind none")...)
			last := c.objects - 1
			for i := range wl.Resources[:c.objects] {
				w.expectLives(wl.Resources[i].Ref, "[1]")
			}
			w.expectState(wl, c.objects, target.Absent, "")
			w.awaitSync()
			expect := func(want bool, why string) {
				t.Helper()
				got, err := w.reporter.DeletionsObserved(w.ctx, wl.Name)
				if got != want || err != nil {
					t.Errorf("DeletionsObserved returns %v, %v, want %v because %s", got, err, want, why)
				}
			}
			w.eventuallyDeletionsObserved(wl, "everything is there and known")
			asked := func() (n int) {
				for _, r := range w.proxy.sent("/configmaps") {
					if strings.Contains(r.accept, "PartialObjectMetadata") { // not an informer's
						n++
					}
				}
				return n
			}
			before := asked()
			expect(true, "everything is there and known")
			if got, most := asked()-before, fetchLimit; got > most || got == 0 {
				t.Errorf("%d requests for %d objects, want some, and %d at most", got, c.objects, most)
			}
			obj := w.parse(configMap(fmt.Sprintf("c%d", last)))
			w.must(resourceOf(obj).Delete(w.ctx, obj.GetName(), deleteNow))
			expect(false, "one is being deleted")
			w.patch(obj, `{"metadata": {"finalizers": null}}`)
			w.expectLives(wl.Resources[last].Ref, "[1 1-deleted]")
			w.eventuallyDeletionsObserved(wl, "the deletion was seen")
			w.proxy.failWith(func(r *http.Request) int {
				if strings.HasSuffix(r.URL.Path, "/configmaps") {
					return 500
				}
				return 0
			})
			if ok, err := w.reporter.DeletionsObserved(w.ctx, wl.Name); ok || err == nil {
				t.Errorf("DeletionsObserved returns %v, %v while the API server fails, want an error", ok, err)
			}
		})
	}
}

// eventuallyDeletionsObserved waits until DeletionsObserved is true. It is false while an informer restarts.
func (w *world) eventuallyDeletionsObserved(wl target.Workload, why string) {
	w.Helper()
	w.eventually("DeletionsObserved returns true because "+why, func() string {
		if ok, err := w.reporter.DeletionsObserved(w.ctx, wl.Name); !ok || err != nil {
			return fmt.Sprintf("%v, %v", ok, err)
		}
		return ""
	})
}

// DeletionsObserved does not wait for objects that the agent may not watch.
func TestReporter_DeletionsObserved_WithoutPermission(t *testing.T) {
	t.Parallel()
	reader, name := user(t, readAll)
	w := newWorld(t, reader, quick())
	w.create(configMap("conf"))
	wl := w.track("wl", "v1 ConfigMap conf")
	w.expectLives(wl.Resources[0].Ref, "[1]")
	w.revoke(name)
	w.expectState(wl, 0, target.Forbidden, "")
	w.eventuallyDeletionsObserved(wl, "nothing of it may be watched")
}
