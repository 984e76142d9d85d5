package alerts

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/threeport/threeport-agent/internal/e2e/monitoring"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
)

// documented is a row of docs/metrics.md.
type documented struct {
	kind   string
	labels []string
}

// documentedMetrics returns the metrics of docs/metrics.md.
func (w *monitoredWorld) documentedMetrics() map[string]documented {
	w.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", "metrics.md"))
	w.Must(err)
	found := map[string]documented{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (\\w+) \\| ([^|]*) \\|").FindAllStringSubmatch(string(text), -1) {
		labels := strings.FieldsFunc(row[3], func(r rune) bool { return strings.ContainsRune("` ,", r) })
		found[row[1]] = documented{row[2], labels}
	}
	if len(found) < 40 {
		w.Fatalf("docs/metrics.md has %d metrics, want at least 40", len(found))
	}
	return found
}

// expectDocumented expects that docs/metrics.md has the scraped metrics of the project, with their types and labels. Histograms are
// classic and native.
func (w *monitoredWorld) expectDocumented() {
	w.Helper()
	metrics := w.documentedMetrics()
	metadata, err := monitoring.Call[map[string][]struct{ Type string }](w.Monitoring, "metadata", nil)
	w.Must(err)
	scraped := 0
	for name, m := range metadata {
		if !strings.HasPrefix(name, "threeport_agent_") && !strings.HasPrefix(name, "controlplane_") {
			continue
		}
		scraped++
		if got, ok := metrics[name]; !ok || got.kind != m[0].Type {
			w.Errorf("%s is a %s, and in docs/metrics.md %+v", name, m[0].Type, got)
		}
	}
	if scraped < 40 {
		w.Errorf("Prometheus has %d metrics of the project, want at least 40", scraped)
	}
	series, err := monitoring.Call[[]map[string]string](w.Monitoring, "series", url.Values{"match[]": {`{__name__=~"(threeport_agent|controlplane)_.*"}`}})
	w.Must(err)
	for _, labels := range series {
		name := regexp.MustCompile("_(bucket|sum|count)$").ReplaceAllString(labels["__name__"], "")
		if _, ok := metrics[name]; !ok {
			name = labels["__name__"]
		}
		for label := range labels {
			if !slices.Contains([]string{"__name__", "job", "instance", "le"}, label) && !slices.Contains(metrics[name].labels, label) {
				w.Errorf("%v has the label %q, and in docs/metrics.md %v", labels, label, metrics[name].labels)
			}
		}
	}
	for name, m := range metrics {
		if m.kind == "histogram" {
			w.expectSeries(name+", a native histogram", "histogram_count("+name+")")
			w.expectSeries(name+", a classic histogram", name+"_bucket")
		}
	}
}

// dashboard is the part of a dashboard of Grafana that the test reads.
type dashboard struct {
	Title  string
	Panels []struct {
		Title   string
		Targets []struct{ Expr string }
	}
}

// expectDashboards expects that each query of each dashboard has series.
func (w *monitoredWorld) expectDashboards() {
	w.Helper()
	files, err := filepath.Glob(filepath.Join(root, "config", "dashboards", "*.json"))
	w.Must(err)
	if len(files) != 3 {
		w.Fatalf("the dashboards are %v, want 3", files)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		w.Must(err)
		var d dashboard
		if err := json.Unmarshal(raw, &d); err != nil {
			w.Fatalf("%s: %v", file, err)
		}
		if len(d.Panels) < 6 || len(d.Panels) > 13 {
			w.Errorf("dashboard %s has %d panels, want 6 to 13", d.Title, len(d.Panels))
		}
		for _, panel := range d.Panels {
			if len(panel.Targets) == 0 {
				w.Errorf("panel %s of dashboard %s has no query", panel.Title, d.Title)
			}
			for _, target := range panel.Targets {
				w.expectSeries(fmt.Sprintf("panel %s of dashboard %s", panel.Title, d.Title), substitute(target.Expr))
			}
		}
	}
}

// substitute replaces Grafana's variables.
func substitute(expr string) string {
	return strings.NewReplacer("$instance", ".*", "$__rate_interval", "30s").Replace(expr)
}

// expectSeries waits until an expression has series. Requests to the API keep its rates above 0 meanwhile.
func (w *monitoredWorld) expectSeries(subject, expr string) {
	w.Helper()
	w.Eventually("series of "+subject, func() error {
		_, err := w.Upstream.API.Count(w.Ctx, upstream.WorkloadEvents)
		found, queryErr := w.Query(expr)
		if err = errors.Join(err, queryErr); err == nil && len(found) == 0 {
			err = fmt.Errorf("%s has no series", expr)
		}
		return err
	})
}
