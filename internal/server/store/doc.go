// Package store is the database of the control-plane API, on SQLite or PostgreSQL.
//
// # Data
//
// Each v0 object type has a table: v0_resource.go describes them, v0.go and v0_list.go read and write them. The other tables
// are: workloads (one row per v0 instance, with its displayed status), objects (the nodes of workload trees), definitions,
// clusters, silences, tokens, sessions, audit_records and log_queue. The migrations define their columns.
//
// There are two ways to write workloads: v0 requests (v0.go) and report sets ([Store.Apply], files apply*.go). [Store.Maintain]
// marks silent clusters and deletes old rows. [Store.RunFeed] delivers changes to subscribers. Triggers queue Events and status changes for
// [Store.ExportLogs], if the server has an export: all kinds of writes then fill log_queue, in their own transactions.
//
// A [Store] is composed of the type database, which has the connections, transactions and migrations, the type feed, and the
// queries and rules of the files above.
//
// # Invariants
//
//   - A v0 instance and its workloads row change in the same transaction.
//   - changedat of a row grows with every change, even if the clock is set back.
//   - A report applies only if it is newer than the stored version of its key, so report sets are idempotent.
//   - A cluster's Events depend on no rows of other clusters. The UID of an Event is unique only among those of its owner.
//   - A workload belongs to the cluster that it is assigned to. If the policy allows it, the first report assigns a workload
//     without a cluster: see [ClaimPolicy]. The deletion of a cluster releases its workloads.
//   - Rows are locked in a fixed order: the cluster, the instances with their workloads, then all others by key.
//   - A nil error of a write means that it survives a power loss: SQLite has synchronous=FULL, and PostgreSQL has
//     synchronous_commit on unless its administrator disabled it.
//
// # Concurrency
//
// All methods are safe for concurrent use; several replicas may share a PostgreSQL database. Every write goes through inTx or
// exec. They retry after conflicts, are not cancelled with the request, and end after [Config].WriteTimeout at the latest. A
// connection lost during a commit leaves the outcome open; the error is returned, and every kind of report can be sent again.
//
// SQLite has one connection for writing, for which writers queue, and several for reading. PostgreSQL has a pool for each.
//
// # Time
//
// All times are BIGINT columns with microseconds since 1970, so both databases compare and index them alike and no driver
// converts time zones. v0's times lose nanoseconds, as in Threeport's own API.
//
// # Dialects
//
// The differences between the databases are in dialect.go, errors.go, connect.go, lock.go, log_triggers.go, Store.optimize and the migrations. All
// other SQL runs on both: ? placeholders (see rebind), INSERT … ON CONFLICT (…) DO UPDATE SET x = excluded.x, RETURNING, partial
// indexes. After INSERT … SELECT, SQLite requires a WHERE before ON CONFLICT. NULLs sort first in one database and last in the
// other, so sorted columns are NOT NULL.
//
// The client side of CockroachDB's documented requirements is met: transactions are retried on 40001, keys are generated here
// (id.go), and without LISTEN replicas poll. Its advisory locks always succeed: concurrent pruning is harmless, but concurrent
// migrations are not, so start its first replica alone. The tests do not cover CockroachDB.
//
// # Schema
//
// [Open] runs the pending migrations, also on files from before the schema had versions. It rejects the schema of a newer
// program. The unique index of the UIDs of Events is not part of a migration, since it depends on [Config].StrictV0.
package store
