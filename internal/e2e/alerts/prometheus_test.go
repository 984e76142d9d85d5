package alerts

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/threeport/threeport-agent/internal/e2e/process"
	"github.com/threeport/threeport-agent/internal/e2e/world"
)

// minute is how long a minute of the rules takes, unless a test sets another value. Scrapes and evaluations have the interval of a quarter
// of it, as with 15 seconds in an installation. Only shorten changes durations, and no other part of the rules.
const minute = 4 * time.Second

// duration matches the duration of an alert and the window of a range.
var duration = regexp.MustCompile(`(for: |\[)(\d+)([mh])\b`)

// shorten returns rules with shorter durations and windows.
func shorten(rules string, minute time.Duration) string {
	return duration.ReplaceAllStringFunc(rules, func(found string) string {
		parts := duration.FindStringSubmatch(found)
		n, _ := strconv.Atoi(parts[2])
		if parts[3] == "h" {
			n *= 60
		}
		return fmt.Sprintf("%s%dms", parts[1], (time.Duration(n) * minute).Milliseconds())
	})
}

const prometheusConfig = `
global: {scrape_interval: %[1]dms, evaluation_interval: %[1]dms, scrape_native_histograms: true, always_scrape_classic_histograms: true}
rule_files: [%[2]s/*.rules.yaml]
alerting:
  alertmanagers: [{static_configs: [{targets: [%[3]q]}]}]
scrape_configs:
- job_name: threeport-agent
  static_configs: [{targets: [%[4]s]}]
- job_name: threeport-controlplane
  scheme: https
  tls_config: {ca_file: %[6]s/ca.crt, cert_file: %[6]s/client.crt, key_file: %[6]s/client.key}
  static_configs: [{targets: [%[5]q]}]
`

const alertmanagerConfig = `
route: {receiver: test, group_by: [alertname], group_wait: 0s, group_interval: 1s, repeat_interval: 1h}
receivers: [{name: test, webhook_configs: [{url: %q, send_resolved: true}]}]
`

// startMonitoring starts Alertmanager, with a webhook of the test, and Prometheus. Both have the rules of config/monitoring.
func (w *monitoredWorld) startMonitoring() {
	w.Helper()
	dir := w.TempDir()
	files, err := filepath.Glob(filepath.Join(root, "config", "monitoring", "*.rules.yaml"))
	w.Must(err)
	if len(files) != 2 {
		w.Fatalf("the files of rules are %v, want 2", files)
	}
	for _, file := range files {
		rules, err := os.ReadFile(file)
		w.Must(err)
		w.write(filepath.Join(dir, filepath.Base(file)), shorten(string(rules), w.minute))
	}
	w.received = &notifications{}
	webhook := httptest.NewServer(w.received)
	w.Cleanup(webhook.Close)

	address := w.FreeAddress()
	w.write(filepath.Join(dir, "alertmanager.yaml"), fmt.Sprintf(alertmanagerConfig, webhook.URL))
	w.run(shared.alertmanager, address, "--config.file="+filepath.Join(dir, "alertmanager.yaml"), "--storage.path="+filepath.Join(dir, "alerts"),
		"--cluster.listen-address=", "--web.listen-address="+address)
	own := w.FreeAddress()
	w.write(filepath.Join(dir, "prometheus.yaml"),
		fmt.Sprintf(prometheusConfig, w.minute.Milliseconds()/4, dir, address, strings.Join(w.scraped, ", "), w.apiAddress, w.credentials))
	w.run(shared.prometheus, own, "--config.file="+filepath.Join(dir, "prometheus.yaml"), "--storage.tsdb.path="+filepath.Join(dir, "series"),
		"--web.listen-address="+own)
	w.prometheus = "http://" + own
}

func (w *monitoredWorld) write(path, text string) {
	w.Helper()
	w.Must(os.WriteFile(path, []byte(text), 0o600))
}

// run starts a program of the Prometheus project until the end of the test, and waits until it is ready.
func (w *monitoredWorld) run(binary, address string, args ...string) {
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

// call gets a path of Prometheus's API.
func call[T any](w *monitoredWorld, path string, query url.Values) (data T, err error) {
	page, status, err := world.Fetch(w.Ctx, w.prometheus+"/api/v1/"+path+"?"+query.Encode())
	if err != nil {
		return data, err
	}
	var answer struct {
		Error string
		Data  T
	}
	if err := json.Unmarshal([]byte(page), &answer); err != nil || status != http.StatusOK {
		return data, fmt.Errorf("%s %v: HTTP %d %.300s: %w", path, query, status, page, err)
	}
	return answer.Data, nil
}

// sample is a series of the result of a query.
type sample struct {
	Metric map[string]string
}

// query returns the series of an expression now.
func (w *monitoredWorld) query(expr string) ([]sample, error) {
	answer, err := call[struct{ Result []sample }](w, "query", url.Values{"query": {expr}})
	return answer.Result, err
}

// firing returns the names of the alerts that fire in Prometheus.
func (w *monitoredWorld) firing() ([]string, error) {
	answer, err := call[struct {
		Alerts []struct {
			State  string
			Labels map[string]string
		}
	}](w, "alerts", nil)
	var names []string
	for _, alert := range answer.Alerts {
		if alert.State == "firing" {
			names = append(names, alert.Labels["alertname"])
		}
	}
	return names, err
}

// scrapeErrors returns the errors of the last scrapes.
func (w *monitoredWorld) scrapeErrors() error {
	answer, err := call[struct {
		ActiveTargets []struct{ ScrapeURL, Health, LastError string }
	}](w, "targets", nil)
	if len(answer.ActiveTargets) != len(w.scraped)+1 {
		return errors.Join(err, fmt.Errorf("Prometheus has %d targets", len(answer.ActiveTargets)))
	}
	for _, target := range answer.ActiveTargets {
		if target.Health != "up" {
			err = errors.Join(err, fmt.Errorf("the target %s is %s: %s", target.ScrapeURL, target.Health, target.LastError))
		}
	}
	return err
}

// notification is an alert as Alertmanager sends it.
type notification struct {
	Status              string
	Labels, Annotations map[string]string

	at time.Time // of its arrival
}

// notifications receives those of Alertmanager, and keeps the last change of each alert. It is safe for concurrent use.
type notifications struct {
	mu   sync.Mutex
	last map[string]notification // by the name of the alert
}

// ServeHTTP implements http.Handler.
func (n *notifications) ServeHTTP(answer http.ResponseWriter, req *http.Request) {
	var group struct {
		Status string // firing if one of the alerts fires
		Alerts []notification
	}
	if err := json.NewDecoder(req.Body).Decode(&group); err != nil {
		http.Error(answer, err.Error(), http.StatusBadRequest)
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.last == nil {
		n.last = map[string]notification{}
	}
	for _, alert := range group.Alerts {
		name := alert.Labels["alertname"]
		if alert.at = time.Now(); alert.Status == group.Status && n.last[name].Status != alert.Status {
			n.last[name] = alert
		}
	}
}

func (n *notifications) of(alert string) notification {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.last[alert]
}
