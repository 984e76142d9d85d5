package redact

import (
	"context"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/threeport/threeport-agent/internal/reload"
)

// Live holds the current rules. It is safe for concurrent use. A nil Live has the built-in rules.
type Live struct {
	files   *reload.Live[*Rules]
	metrics *Metrics
}

// Open reads the rules of a file or a directory. Invalid rules are an error here; later, Run keeps the previous rules instead.
func Open(path string, metrics *Metrics, log logr.Logger) (*Live, error) {
	files, err := reload.Open(path, reload.YAML, Parse, metrics, log)
	if err != nil {
		return nil, err
	}
	return &Live{files, metrics}, nil
}

// Current returns the rules that are in use.
func (l *Live) Current() *Rules {
	if l == nil {
		return builtInRules
	}
	return l.files.Current()
}

// Collectors are the metrics of the rules; none for a nil Live.
func (l *Live) Collectors() []prometheus.Collector {
	if l == nil {
		return nil
	}
	return []prometheus.Collector{l.metrics.InUse, l.metrics.Rejected}
}

// Run reloads the rules when they change, until the context ends. It calls changed after each reload, never concurrently.
func (l *Live) Run(ctx context.Context, changed func()) { l.files.Run(ctx, changed) }

// Metrics are the metrics of a user's rules.
type Metrics struct{ reload.Gauges }

// NewMetrics creates the metrics. Their names begin with that of the program.
func NewMetrics(program string) *Metrics {
	return &Metrics{reload.Gauges{
		InUse: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: program + "_redaction_rules",
			Help: "Rules of --redaction-rules that are in use.",
		}),
		Rejected: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: program + "_redaction_rules_failing",
			Help: "1 while the rules of --redaction-rules are unreadable or invalid, so that the previous ones are in use.",
		}),
	}}
}
