// Package alerts tests the alerts of config/monitoring and the dashboards of config/dashboards with a real Prometheus and Alertmanager.
// They scrape an agent and a control-plane API that run as processes with mutual TLS, while the test injects faults. The notifications
// of Alertmanager arrive at a webhook of the test.
//
// A test of alerts is a table of faults, which runs from top to bottom: see type fault. Faults that do not affect each other are injected
// at the same time. Durations and windows of the rules are shorter in the tests; see shorten.
//
// The programs are pinned in hack/prometheus and hack/alertmanager, and are built into the user's cache folder like those of package
// cluster. Their UIs have no files in these builds; the test uses their APIs only.
//
// Another test proves that the tests of promtool can fail: it breaks each alert in several ways.
package alerts
