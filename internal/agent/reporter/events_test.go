package reporter

import (
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// Expired Events are forgotten, also if they expired while Events were not watched. Others are not.
func TestReporter_ExpiredEvents_AreForgotten(t *testing.T) {
	reader, name := user(t, readAll)
	w := newWorld(t, reader, quick())
	conf := w.create(configMap("conf"))
	wl := w.track("wl", "v1 ConfigMap conf")
	events := map[string]observe.Key{}
	for _, reason := range []string{"Watched", "Unwatched", "Stays"} {
		events[reason] = observe.EventKey(w.create(event(reason, conf)).GetUID())
		w.expectEvent(reason, wl.Resources[0])
	}
	expire := func(reason string) {
		t.Helper()
		w.remove(w.parse(event(reason, conf)))
	}
	forgotten := func(reason string) {
		t.Helper()
		w.eventually("the Event "+reason+" is forgotten", func() string {
			w.reporter.prune(time.Now())
			if !w.sink.forgotten(events[reason]) {
				return "it is not"
			}
			return ""
		})
	}
	expire("Watched")
	forgotten("Watched")
	w.revoke(name)
	w.expectState(wl, 0, target.Forbidden, "")
	expire("Unwatched")
	w.allow(name, readAll)
	forgotten("Unwatched")
	if w.sink.forgotten(events["Stays"]) {
		t.Error("an existing Event is forgotten, and would make a second row")
	}
}
