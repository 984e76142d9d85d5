package reporter

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/threeport/threeport-agent/internal/agent/assess"
	"github.com/threeport/threeport-agent/internal/agent/filter"
	"github.com/threeport/threeport-agent/internal/agent/informers"
	"github.com/threeport/threeport-agent/internal/health"
)

// Config sets how the cluster is watched, and how often its state is reported.
type Config struct {
	informers.Config
	// Workers is the number of goroutines that report objects, and of those that report Events.
	Workers int
	// StatusDelay is how long a change waits for further changes before the workload's health is reported, and how long an
	// object waits for further Warnings before it is assessed again.
	StatusDelay time.Duration
	// StatusInterval is the minimum time between two reports of an instance's status.
	StatusInterval time.Duration
	// Filters are the user's filters of Events; nil for none.
	Filters *filter.Live
	// Rules are the user's health rules; nil for none.
	Rules health.Rules
	// AllDeclared is closed when the workloads that exist at the start are in the registry. The informers wait for it, but not for ever;
	// nil for no wait.
	AllDeclared <-chan struct{}
	// Tracing starts the traces of sampled reports.
	Tracing Tracing

	now func() time.Time // time.Now, except in tests
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	return Config{
		Config: informers.DefaultConfig(), Workers: 4,
		StatusDelay: time.Second, StatusInterval: 5 * time.Second, now: time.Now,
	}
}

// Validate returns an error that names the wrong field and the accepted values.
func (c Config) Validate() error {
	switch {
	case c.Workers < 1:
		return fmt.Errorf("watch workers is %d: give a number above 0", c.Workers)
	case c.StatusDelay <= 0:
		return fmt.Errorf("status delay is %s: give a duration above 0", c.StatusDelay)
	case c.StatusInterval <= 0:
		return fmt.Errorf("status interval is %s: give a duration above 0", c.StatusInterval)
	}
	return c.Config.Validate()
}

// Metrics counts the cost of watching and assessing.
type Metrics struct {
	informers *informers.Metrics
	assess    *assess.Metrics
}

// NewMetrics registers the metrics.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	return &Metrics{informers: informers.NewMetrics(registry), assess: assess.NewMetrics(registry)}
}
