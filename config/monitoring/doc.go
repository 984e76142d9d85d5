// Package monitoring has the alerts and recording rules of the agent and of the control-plane API, as files for Prometheus. The
// PrometheusRules in config/components are made of them.
package monitoring
