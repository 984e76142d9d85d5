// Package monitoring runs a real Prometheus and Alertmanager in a test, with the project's alerts. The notifications of Alertmanager
// arrive at a webhook of the test.
//
// A test of alerts is a table of faults, which runs from top to bottom: see type Fault. Faults that do not affect each other are injected
// at the same time. Durations and windows of the rules are shorter in the tests; see shorten.
//
// The programs are pinned in hack/prometheus and hack/alertmanager, and are built into the user's cache folder like those of package
// cluster. Their UIs have no files in these builds; the tests use their APIs only.
package monitoring
