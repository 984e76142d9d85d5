// Package otlp tests the exports of OTLP with a real OpenTelemetry Collector, which is pinned in hack/otelcol and built into the user's cache
// folder like the programs of package cluster. It writes what it receives to a file. The control-plane API sends logs, and both programs
// send traces.
package otlp
