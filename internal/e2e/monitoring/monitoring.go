package monitoring

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/threeport/threeport-agent/internal/e2e/process"
	"github.com/threeport/threeport-agent/internal/e2e/world"
)

// Minute is how long a minute of the rules takes, unless a test sets another value. The interval of scrapes and evaluations is a quarter of
// it, as with 15 seconds in an installation.
const Minute = 4 * time.Second

// Options describe a Prometheus and an Alertmanager.
type Options struct {
	Programs
	// Root is the path of the module's root.
	Root string
	// Minute is the duration of a minute of the rules.
	Minute time.Duration
	// Rules are the texts of the files of rules, by their names. They have the durations of an installation.
	Rules map[string]string
	// Scrapes is the list scrape_configs of Prometheus in YAML. It has a number of targets.
	Scrapes string
	Targets int
}

// Monitoring is a running Prometheus with an Alertmanager.
type Monitoring struct {
	Options
	world    *world.World
	url      string // of Prometheus
	received *notifications
}

const prometheusConfig = `
global: {scrape_interval: %[1]dms, evaluation_interval: %[1]dms, scrape_native_histograms: true, always_scrape_classic_histograms: true}
rule_files: [%[2]s/*.rules.yaml]
alerting:
  alertmanagers: [{static_configs: [{targets: [%[3]q]}]}]
scrape_configs:
%[4]s
`

const alertmanagerConfig = `
route: {receiver: test, group_by: [alertname], group_wait: 0s, group_interval: 1s, repeat_interval: 1h}
receivers: [{name: test, webhook_configs: [{url: %q, send_resolved: true}]}]
`

// Start starts Alertmanager, with a webhook of the test, and Prometheus. Both end with the test.
func Start(w *world.World, o Options) *Monitoring {
	w.Helper()
	m := &Monitoring{Options: o, world: w, received: &notifications{}}
	dir := w.TempDir()
	for name, text := range o.Rules {
		m.write(filepath.Join(dir, name), shorten(text, o.Minute))
	}
	webhook := httptest.NewServer(m.received)
	w.Cleanup(webhook.Close)

	address := w.FreeAddress()
	m.write(filepath.Join(dir, "alertmanager.yaml"), fmt.Sprintf(alertmanagerConfig, webhook.URL))
	m.run(o.Alertmanager, address, "--config.file="+filepath.Join(dir, "alertmanager.yaml"), "--storage.path="+filepath.Join(dir, "alerts"),
		"--cluster.listen-address=", "--web.listen-address="+address)
	own := w.FreeAddress()
	m.write(filepath.Join(dir, "prometheus.yaml"), fmt.Sprintf(prometheusConfig, o.Minute.Milliseconds()/4, dir, address, o.Scrapes))
	m.run(o.Prometheus, own, "--config.file="+filepath.Join(dir, "prometheus.yaml"), "--storage.tsdb.path="+filepath.Join(dir, "series"),
		"--web.listen-address="+own)
	m.url = "http://" + own
	return m
}

func (m *Monitoring) write(path, text string) {
	m.world.Helper()
	m.world.Must(os.WriteFile(path, []byte(text), 0o600))
}

// run starts a program of the Prometheus project until the end of the test, and waits until it is ready.
func (m *Monitoring) run(binary, address string, args ...string) {
	w := m.world
	w.Helper()
	p, err := process.Start(binary, nil, args)
	w.Must(err)
	w.Cleanup(func() {
		p.Kill()
		if w.Failed() {
			w.Logf("the end of the log of %s:\n%s", filepath.Base(binary), world.End(p.Output(), 4<<10))
		}
	})
	w.Eventually(filepath.Base(binary)+" to be ready", func() error {
		select {
		case <-p.Done():
			w.Fatalf("%s ended:\n%s", filepath.Base(binary), world.End(p.Output(), 4<<10))
		default:
		}
		page, status, err := world.Fetch(w.Ctx, "http://"+address+"/-/ready")
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("HTTP %d: %s", status, page)
		}
		return err
	})
}

// Call gets a path of Prometheus's API.
func Call[T any](m *Monitoring, path string, query url.Values) (data T, err error) {
	page, status, err := world.Fetch(m.world.Ctx, m.url+"/api/v1/"+path+"?"+query.Encode())
	if err != nil {
		return data, err
	}
	if status != http.StatusOK {
		return data, fmt.Errorf("%s %v: HTTP %d: %.300s", path, query, status, page)
	}
	var answer struct{ Data T }
	if err := json.Unmarshal([]byte(page), &answer); err != nil {
		return data, fmt.Errorf("%s %v: %w: %.300s", path, query, err, page)
	}
	return answer.Data, nil
}

// Sample is a series of the result of a query.
type Sample struct {
	Metric map[string]string
}

// Query returns the series of an expression now.
func (m *Monitoring) Query(expr string) ([]Sample, error) {
	answer, err := Call[struct{ Result []Sample }](m, "query", url.Values{"query": {expr}})
	return answer.Result, err
}

// Firing returns the names of the alerts that fire in Prometheus.
func (m *Monitoring) Firing() ([]string, error) {
	answer, err := Call[struct {
		Alerts []struct {
			State  string
			Labels map[string]string
		}
	}](m, "alerts", nil)
	var names []string
	for _, alert := range answer.Alerts {
		if alert.State == "firing" {
			names = append(names, alert.Labels["alertname"])
		}
	}
	return names, err
}

// scrapeErrors returns the errors of the last scrapes.
func (m *Monitoring) scrapeErrors() error {
	answer, err := Call[struct {
		ActiveTargets []struct{ ScrapeURL, Health, LastError string }
	}](m, "targets", nil)
	if len(answer.ActiveTargets) != m.Targets {
		return errors.Join(err, fmt.Errorf("the targets of Prometheus are %d, want %d", len(answer.ActiveTargets), m.Targets))
	}
	for _, target := range answer.ActiveTargets {
		if target.Health != "up" {
			err = errors.Join(err, fmt.Errorf("the target %s is %s: %s", target.ScrapeURL, target.Health, target.LastError))
		}
	}
	return err
}
