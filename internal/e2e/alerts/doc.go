// Package alerts tests the alerts of config/monitoring and the dashboards of config/dashboards with a real Prometheus and Alertmanager.
// They scrape an agent and a control-plane API that run as processes with mutual TLS, while the test injects faults; see package
// monitoring.
//
// Another test proves that the tests of promtool can fail: it breaks each alert in several ways.
package alerts
