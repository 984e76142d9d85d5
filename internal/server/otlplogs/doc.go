// Package otlplogs exports Events and status changes as logs to an OpenTelemetry backend, with OTLP over HTTP.
//
// A record is removed from the queue in the database after the backend accepted it, so each record arrives at least once. A record that
// arrives twice has the same log.record.uid. [store.Store.ExportLogs] has the queue, and lets one replica export at a time.
//
// OTLP says which answers are retried: https://opentelemetry.io/docs/specs/otlp/#otlphttp-response. An answer that refuses the data of a
// batch halves the batch, until only the refused records are left, which are counted. All other failures are retried: an expired token or
// a wrong URL must not lose records.
package otlplogs
