package reporter

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// Expired Events are forgotten, also if they expired while Events were not watched. Others are not.
func TestReporter_ExpiredEvents_AreForgotten(t *testing.T) {
	t.Parallel()
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

// The cache has the begin of a long message. The report has all of it, also if the Event exists before its workload.
func TestReporter_LongEvents_AreReportedWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shared.reader, quick())
	conf := w.create(configMap("conf"))
	long := func(reason string) string {
		return strings.Replace(event(reason, conf), "it happened", strings.Repeat(reason+" happened. ", 200), 1)
	}
	w.create(long("Earlier"))
	wl := w.track("wl", "v1 ConfigMap conf")
	w.expectEvent("Earlier", wl.Resources[0])
	w.create(long("Later"))
	for _, reason := range []string{"Earlier", "Later"} {
		w.expectEvent(reason, wl.Resources[0])
		want := strings.TrimSpace(strings.Repeat(reason+" happened. ", 200))
		if got := w.sink.events(reason)[0].Message; got != want {
			t.Errorf("the message of %s has %d bytes, want %d", reason, len(got), len(want))
		}
	}
}

// An Event about an object of another namespace, or with the UID of another object, is neither reported nor the cause of a
// verdict. Its creator chooses the UID, and the API server compares no namespaces if the Event has an eventTime.
func TestReporter_EventsOfOtherNamespaces_AreIgnored(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shared.reader, quick())
	conf, p := w.create(configMap("conf")), w.create(pod("web"))
	wl := w.track("wl", "v1 ConfigMap conf", "v1 Pod web")
	w.expectStatus(wl, "Reconciling")
	elsewhere := w.namespace + "-evil"
	w.create("{apiVersion: v1, kind: Namespace, metadata: {name: " + elsewhere + "}}")

	forged := map[string]string{
		"ForgedFromOutside": fmt.Sprintf("{apiVersion: v1, kind: Pod, namespace: %s, name: web, uid: %q}", w.namespace, p.GetUID()),
		"ForgedByUID":       fmt.Sprintf("{apiVersion: v1, kind: Pod, namespace: %s, name: web, uid: %q}", elsewhere, p.GetUID()),
		"ForgedByName":      fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, namespace: %s, name: conf}", w.namespace),
		"ForgedUnknown":     fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, namespace: %s, name: conf, uid: none}", w.namespace),
	}
	keys := map[string]observe.Key{}
	for reason, regarding := range forged {
		keys[reason] = observe.EventKey(w.create(fmt.Sprintf(`
apiVersion: events.k8s.io/v1
kind: Event
metadata: {name: %s, namespace: %s}
eventTime: "2036-01-02T03:04:05.000001Z"
reportingController: example.com/attacker
reportingInstance: attacker-0
action: Forging
type: Warning
reason: %s
note: words of another user
regarding: %s
`, strings.ToLower(reason), elsewhere, reason, regarding)).GetUID())
	}
	w.create(event("Honest", conf))
	w.expectEvent("Honest", wl.Resources[0])
	w.patchStatus(p, `{"status": {"phase": "Failed", "reason": "Evicted"}}`)
	w.expectStatus(wl, "Down")
	for reason, key := range keys {
		w.eventually("the Event "+reason+" was considered", func() string { return complain(!w.sink.isCancelled(key), "it was not") })
		if len(w.sink.events(reason)) > 0 {
			t.Errorf("the Event %s is reported", reason)
		}
	}
	if _, _, message := w.reporter.Health(wl.Name); strings.Contains(message, "words of another user") {
		t.Errorf("the verdict quotes a forged Event: %s", message)
	}
}
