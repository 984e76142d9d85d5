package informers

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

func TestCaughtUp(t *testing.T) {
	for _, c := range []struct {
		reason  string
		objects int
	}{
		{"objects asked for one by one", oneByOne},
		{"objects asked for with one list", oneByOne + 1},
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
				got, err := w.watcher.DeletionsObserved(w.ctx, wl.Name)
				if got != want || err != nil {
					t.Errorf("CaughtUp says %v, %v, expected %v because %s", got, err, want, why)
				}
			}
			w.eventuallyCaughtUp(wl, "everything is there and known")
			asked := func() (n int) {
				for _, r := range w.proxy.sent("/configmaps") {
					if strings.Contains(r.accept, "PartialObjectMetadata") { // and not of an informer
						n++
					}
				}
				return n
			}
			before := asked()
			expect(true, "everything is there and known")
			if got, most := asked()-before, oneByOne; got > most || got == 0 {
				t.Errorf("%d requests to know about %d objects, expected some, and no more than %d", got, c.objects, most)
			}
			obj := w.parse(configMap(fmt.Sprintf("c%d", last)))
			w.must(resourceOf(obj).Delete(w.ctx, obj.GetName(), deleteNow))
			expect(false, "one is on its way out")
			w.patch(obj, `{"metadata": {"finalizers": null}}`)
			w.expectLives(wl.Resources[last].Ref, "[1 1-deleted]")
			w.eventuallyCaughtUp(wl, "the deletion was seen")
			w.proxy.failWith(func(r *http.Request) int {
				if strings.HasSuffix(r.URL.Path, "/configmaps") {
					return 500
				}
				return 0
			})
			if ok, err := w.watcher.DeletionsObserved(w.ctx, wl.Name); ok || err == nil {
				t.Errorf("CaughtUp says %v, %v while the API server fails, expected an error", ok, err)
			}
		})
	}
}

// eventuallyCaughtUp waits until CaughtUp is true. It is false for a moment whenever an informer begins anew.
func (w *world) eventuallyCaughtUp(wl target.Workload, why string) {
	w.Helper()
	w.eventually("CaughtUp to be true because "+why, func() string {
		if ok, err := w.watcher.DeletionsObserved(w.ctx, wl.Name); !ok || err != nil {
			return fmt.Sprintf("%v, %v", ok, err)
		}
		return ""
	})
}

// Of what may not be watched no last report can come, and nobody has to wait for one.
func TestCaughtUpWithoutPermission(t *testing.T) {
	t.Parallel()
	reader, name := user(t, readAll)
	w := newWorld(t, reader, quick())
	w.create(configMap("conf"))
	wl := w.track("wl", "v1 ConfigMap conf")
	w.expectLives(wl.Resources[0].Ref, "[1]")
	w.revoke(name)
	w.expectState(wl, 0, target.Forbidden, "")
	w.eventuallyCaughtUp(wl, "nothing of it may be watched")
}
