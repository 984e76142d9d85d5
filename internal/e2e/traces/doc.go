// Package traces tests the traces of reports with a real OpenTelemetry Collector, which is pinned in hack/otelcol and built into the user's
// cache folder like the programs of package cluster. It writes what it receives to a file. An agent and a control-plane API send to it.
package traces
