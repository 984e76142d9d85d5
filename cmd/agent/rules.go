package main

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"

	catalogue "github.com/threeport/threeport-agent/config/health"
	"github.com/threeport/threeport-agent/internal/agent/filter"
	"github.com/threeport/threeport-agent/internal/health"
	"github.com/threeport/threeport-agent/internal/health/rules"
	"github.com/threeport/threeport-agent/internal/redact"
)

// openRules opens the user's rules and filters. It returns the health rules of --health-rules, to be reloaded when they change; nil if there
// are none.
func (o *options) openRules(registry prometheus.Registerer) (own *rules.Live, err error) {
	if o.reporter.Rules, own, err = openHealthRules(o.healthRules, registry); err != nil {
		return nil, err
	}
	if o.reporter.Redaction, err = openRedaction(o.redactionRules, registry); err != nil {
		return nil, err
	}
	o.reporter.Filters, err = openFilters(o.eventFilters, registry)
	return own, err
}

// openHealthRules returns the health rules: those of --health-rules, if it is set, before those of the catalogue. It also returns
// the former alone, to be reloaded when they change; nil if there are none. An error names the flag and all mistakes.
func openHealthRules(path string, registry prometheus.Registerer) (health.Rules, *rules.Live, error) {
	if path == "" {
		return catalogue.Rules(), nil, nil
	}
	own, err := rules.Open(path, rules.NewMetrics(registry), ctrl.Log.WithName("health-rules"))
	if err != nil {
		return nil, nil, fmt.Errorf("--health-rules=%s: %w", path, err)
	}
	return rules.Layers{own, catalogue.Rules()}, own, nil
}

// openRedaction returns the redaction rules of --redaction-rules; nil for the built-in rules only. An error names the flag and
// all mistakes.
func openRedaction(path string, registry prometheus.Registerer) (*redact.Live, error) {
	if path == "" {
		return nil, nil
	}
	live, err := redact.Open(path, redact.NewMetrics("threeport_agent"), ctrl.Log.WithName("redaction-rules"))
	if err != nil {
		return nil, fmt.Errorf("--redaction-rules=%s: %w", path, err)
	}
	registry.MustRegister(live.Collectors()...)
	return live, nil
}

// openFilters returns the filters of --event-filters; nil for none. An error names the flag and all mistakes.
func openFilters(path string, registry prometheus.Registerer) (*filter.Live, error) {
	if path == "" {
		return nil, nil
	}
	live, err := filter.Open(path, filter.NewMetrics(registry), ctrl.Log.WithName("event-filters"))
	if err != nil {
		return nil, fmt.Errorf("--event-filters=%s: %w", path, err)
	}
	return live, nil
}
