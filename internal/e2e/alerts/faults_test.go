package alerts

import (
	"errors"

	"github.com/threeport/threeport-agent/internal/e2e/monitoring"
	"github.com/threeport/threeport-agent/internal/e2e/world"
)

// expectAlerts expects the alerts of faults; see [monitoring.Monitoring.ExpectAlerts]. The agent must heal without a restart.
func (w *monitoredWorld) expectAlerts(faults ...monitoring.Fault) {
	w.Helper()
	agent := w.agent
	w.ExpectAlerts(faults...)
	w.expectRuns(agent)
}

// expectRuns expects that an agent has not ended, unless the test replaced it.
func (w *monitoredWorld) expectRuns(agent *world.Agent) {
	w.Helper()
	select {
	case <-agent.Done():
		if agent == w.agent {
			w.Fatal("the agent ended")
		}
	default:
	}
}

// expectProbe waits until the readiness probe of the agent has a wanted page.
func (w *monitoredWorld) expectProbe(want string, matches func(page string) bool) {
	w.Helper()
	w.Eventually("the readiness probe to say: "+want, func() error {
		page, _, err := world.Fetch(w.Ctx, w.agent.ProbesURL+"/readyz?verbose")
		if err == nil && !matches(page) {
			err = errors.New("it says " + page)
		}
		return err
	})
}
