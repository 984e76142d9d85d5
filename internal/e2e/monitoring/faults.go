package monitoring

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Fault is a fault of the running programs. Its alerts fire while it lasts, and are resolved after Mend.
type Fault struct {
	Name   string
	Inject func()
	Alerts []string
	// Visible expects the signs of the fault besides its alerts: in metrics, statuses and probes.
	Visible func()
	Mend    func()
	// Healed expects that these signs are gone.
	Healed func()
}

// ExpectAlerts injects faults at the same time. It waits until all their alerts fire, mends the faults, and waits until all alerts are
// resolved.
func (m *Monitoring) ExpectAlerts(faults ...Fault) {
	m.world.Helper()
	m.ExpectQuiet()
	begin := time.Now()
	for _, f := range faults {
		f.Inject()
	}
	for _, f := range faults {
		f.Visible()
	}
	m.expectNotified(faults, "firing", begin)
	begin = time.Now()
	for _, f := range faults {
		f.Mend()
	}
	for _, f := range faults {
		f.Healed()
	}
	m.expectNotified(faults, "resolved", begin)
}

// expectNotified waits until the last notifications of all alerts of faults have a status at the same time: firing or resolved. A
// notification before since is about an earlier fault.
func (m *Monitoring) expectNotified(faults []Fault, status string, since time.Time) {
	m.world.Helper()
	m.world.Eventually("notifications with the status "+status, func() error {
		for _, f := range faults {
			for _, alert := range f.Alerts {
				if got := m.received.of(alert); got.Status != status || got.at.Before(since) {
					firing, err := m.Firing()
					return errors.Join(err, fmt.Errorf("the last one of %s is %+v; in Prometheus fire %s", alert, got, strings.Join(firing, ", ")))
				}
			}
		}
		return nil
	})
	for _, f := range faults {
		for _, alert := range f.Alerts {
			got := m.received.of(alert)
			m.world.Logf("%s: %s is %s after %s", f.Name, alert, status, got.at.Sub(since).Round(time.Second))
			m.expectLink(alert, got)
		}
	}
}

// ExpectQuiet waits until all programs are scraped and no alert fires.
func (m *Monitoring) ExpectQuiet() {
	m.world.Helper()
	m.world.Eventually("scraped programs and no alert", func() error {
		if err := m.scrapeErrors(); err != nil {
			return err
		}
		firing, err := m.Firing()
		if err == nil && len(firing) > 0 {
			err = fmt.Errorf("%s fire", strings.Join(firing, ", "))
		}
		return err
	})
}

// ExpectMetric waits until Prometheus has series of an expression.
func (m *Monitoring) ExpectMetric(expr string) {
	m.world.Helper()
	m.world.Eventually("series of "+expr, func() error {
		found, err := m.Query(expr)
		if err == nil && len(found) == 0 {
			err = errors.New("there are none")
		}
		return err
	})
}

// expectLink expects that a notification leads to a section of the runbook that names the alert.
func (m *Monitoring) expectLink(alert string, got notification) {
	m.world.Helper()
	if severity := got.Labels["severity"]; severity != "critical" && severity != "warning" {
		m.world.Errorf("the severity of %s is %q, want critical or warning", alert, severity)
	}
	if strings.ContainsAny(got.Annotations["description"], "<{") {
		m.world.Errorf("the description of %s is %q, which has an unknown label", alert, got.Annotations["description"])
	}
	_, anchor, _ := strings.Cut(got.Annotations["runbook_url"], "/docs/runbook.md#")
	if section := m.runbook(anchor); !strings.Contains(section, "`"+alert+"`") {
		m.world.Errorf("the notification of %s has the link %q, want a section of the runbook that names the alert", alert, got.Annotations["runbook_url"])
	}
}

// runbook returns the section of docs/runbook.md with an anchor; empty if there is none.
func (m *Monitoring) runbook(anchor string) string {
	m.world.Helper()
	text, err := os.ReadFile(filepath.Join(m.Root, "docs", "runbook.md"))
	m.world.Must(err)
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
