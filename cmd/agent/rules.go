package main

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"

	catalogue "github.com/threeport/threeport-agent/config/health"
	"github.com/threeport/threeport-agent/internal/health"
	"github.com/threeport/threeport-agent/internal/health/rules"
)

// openRules returns the health rules: those of --health-rules, if it is set, before those of the catalogue. It also returns
// the former alone, to be reloaded when they change; nil if there are none. An error names the flag and all mistakes.
func openRules(path string, registry prometheus.Registerer) (health.Rules, *rules.Live, error) {
	if path == "" {
		return catalogue.Rules(), nil, nil
	}
	own, err := rules.Open(path, rules.NewMetrics(registry), ctrl.Log.WithName("health-rules"))
	if err != nil {
		return nil, nil, fmt.Errorf("--health-rules=%s: %w", path, err)
	}
	return rules.Layers{own, catalogue.Rules()}, own, nil
}
