package alerts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/threeport/threeport-agent/internal/e2e/world"
)

// fault is a fault of the running programs. Its alerts fire while it lasts, and are resolved after mend.
type fault struct {
	name   string
	inject func()
	alerts []string
	// visible expects the signs of the fault besides its alerts: in metrics, statuses and probes.
	visible func()
	mend    func()
	// healed expects that these signs are gone.
	healed func()
}

// expectAlerts injects faults at the same time. It waits until all their alerts fire, mends the faults, and waits until all alerts are
// resolved. The agent must heal without a restart.
func (w *monitoredWorld) expectAlerts(faults ...fault) {
	w.Helper()
	w.expectQuiet()
	agent := w.agent
	begin := time.Now()
	for _, f := range faults {
		f.inject()
	}
	for _, f := range faults {
		f.visible()
	}
	w.expectNotified(faults, "firing", begin)
	begin = time.Now()
	for _, f := range faults {
		f.mend()
	}
	for _, f := range faults {
		f.healed()
	}
	w.expectNotified(faults, "resolved", begin)
	w.expectRuns(agent)
}

// expectNotified waits until the last notifications of all alerts of faults have a status at the same time: firing or resolved.
func (w *monitoredWorld) expectNotified(faults []fault, status string, since time.Time) {
	w.Helper()
	w.Eventually("notifications with the status "+status, func() error {
		for _, f := range faults {
			for _, alert := range f.alerts {
				if got := w.received.of(alert); got.Status != status {
					firing, err := w.firing()
					return errors.Join(err, fmt.Errorf("the last one of %s is %+v; in Prometheus fire %s", alert, got, strings.Join(firing, ", ")))
				}
			}
		}
		return nil
	})
	for _, f := range faults {
		for _, alert := range f.alerts {
			got := w.received.of(alert)
			w.Logf("%s: %s is %s after %s", f.name, alert, status, got.at.Sub(since).Round(time.Second))
			w.expectLink(alert, got)
		}
	}
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

// expectQuiet waits until all programs are scraped and no alert fires.
func (w *monitoredWorld) expectQuiet() {
	w.Helper()
	w.Eventually("scraped programs and no alert", func() error {
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

// expectLink expects that a notification leads to a section of the runbook that names the alert.
func (w *monitoredWorld) expectLink(alert string, got notification) {
	w.Helper()
	if severity := got.Labels["severity"]; severity != "critical" && severity != "warning" {
		w.Errorf("the severity of %s is %q, want critical or warning", alert, severity)
	}
	if strings.ContainsAny(got.Annotations["description"], "<{") {
		w.Errorf("the description of %s is %q, which has an unknown label", alert, got.Annotations["description"])
	}
	_, anchor, _ := strings.Cut(got.Annotations["runbook_url"], "/docs/runbook.md#")
	if section := w.runbook(anchor); !strings.Contains(section, "`"+alert+"`") {
		w.Errorf("the notification of %s has the link %q, want a section of the runbook that names the alert", alert, got.Annotations["runbook_url"])
	}
}

// runbook returns the section of docs/runbook.md with an anchor; empty if there is none.
func (w *monitoredWorld) runbook(anchor string) string {
	w.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", "runbook.md"))
	w.Must(err)
	sections := strings.Split(string(text), "\n## ")
	found := slices.IndexFunc(sections, func(section string) bool {
		heading, _, _ := strings.Cut(section, "\n")
		return strings.ReplaceAll(strings.ToLower(heading), " ", "-") == anchor
	})
	if found < 0 {
		return ""
	}
	return sections[found]
}

// expectMetric waits until Prometheus has series of an expression.
func (w *monitoredWorld) expectMetric(expr string) {
	w.Helper()
	w.Eventually("series of "+expr, func() error {
		found, err := w.query(expr)
		if err == nil && len(found) == 0 {
			err = errors.New("there are none")
		}
		return err
	})
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
