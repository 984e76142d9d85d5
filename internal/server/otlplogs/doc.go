// Package otlplogs exports Events and status changes as logs to an OpenTelemetry backend, with OTLP over HTTP.
//
// A record is removed from the queue in the database after the backend accepted it, so each record arrives at least once. A record that
// arrives twice has the same log.record.uid. [store.Store.ExportLogs] has the queue, and lets one replica export at a time.
//
// OTLP says which answers are retried: https://opentelemetry.io/docs/specs/otlp/#otlphttp-response. An answer that refuses the data of a
// batch splits it by cluster, and then in halves, until only the refused records are left, which are counted. The number of these requests
// is limited for each cluster: see maxRefusals. All other failures are retried: an expired token or a wrong URL must not lose records.
//
// The queue has a limit in bytes, which is applied at a short interval, and not before an export only: the backend may ask for a long pause.
package otlplogs
