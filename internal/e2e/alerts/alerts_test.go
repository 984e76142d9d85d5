package alerts

import (
	"fmt"
	"strings"
	"testing"
)

func TestAlerts(t *testing.T) {
	w := newWorld(t)
	w.expectQuiet()
	w.expectDocumented()
	w.expectDashboards()

	// A change during the outage is pending until its end.
	w.api.Kill()
	w.Patch(w.object, `{"data": {"key": "changed"}}`)
	for _, alert := range []string{"ThreeportAgentNotDelivering", "ThreeportAPIAbsent"} {
		got := w.expectNotified(alert, "firing")
		if got.Labels["severity"] != "critical" || !strings.Contains(got.Annotations["runbook_url"], "/docs/runbook.md#") {
			t.Errorf("the notification of %s is %+v, want the severity critical and a link to the runbook", alert, got)
		}
		if strings.ContainsAny(got.Annotations["description"], "<{%") {
			t.Errorf("the description of %s is %q, which has an unknown label", alert, got.Annotations["description"])
		}
	}
	w.startAPI()
	for _, alert := range []string{"ThreeportAgentNotDelivering", "ThreeportAPIAbsent"} {
		w.expectNotified(alert, "resolved")
	}

	w.KillAgent(w.agent)
	for _, alert := range []string{"ThreeportAgentAbsent", "ThreeportFleetAgentOffline"} {
		w.expectNotified(alert, "firing")
	}
	w.startAgent()
	for _, alert := range []string{"ThreeportAgentAbsent", "ThreeportFleetAgentOffline"} {
		w.expectNotified(alert, "resolved")
	}
}

// expectQuiet waits until both programs are scraped and no alert fires.
func (w *monitoredWorld) expectQuiet() {
	w.Helper()
	w.Eventually("two scraped programs and no alert", func() error {
		if err := w.scrapeErrors(); err != nil {
			return err
		}
		firing, err := w.firing()
		if err == nil && len(firing) > 0 {
			err = fmt.Errorf("%s fire", strings.Join(firing, ", "))
		}
		return err
	})
}
