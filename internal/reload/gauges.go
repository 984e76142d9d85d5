package reload

import "github.com/prometheus/client_golang/prometheus"

// Gauges are [Metrics] as two gauges.
type Gauges struct {
	InUse    prometheus.Gauge // the number of rules
	Rejected prometheus.Gauge // 1 while the files are unreadable or invalid
}

// Use implements [Metrics].
func (g Gauges) Use(rules int) { g.InUse.Set(float64(rules)) }

// Failing implements [Metrics].
func (g Gauges) Failing(failing bool) { SetBool(g.Rejected, failing) }

// SetBool sets a gauge to 1 or 0.
func SetBool(gauge prometheus.Gauge, on bool) {
	value := 0.0
	if on {
		value = 1
	}
	gauge.Set(value)
}
