// Package store keeps all that the control-plane API knows, in SQLite or PostgreSQL.
//
// v0's objects have a table each, which resource.go describes and v0.go reads and writes. Beside them are the board (one
// row of workloads for each instance), the objects of the trees, their definitions, the clusters, and what is the API's
// own: tokens, sessions, audit records. A write of a v0 instance and the board's row change in one transaction, so that
// neither is ever ahead of the other. Which columns there are, the migrations say.
//
// # Time
//
// All times are microseconds since 1970, as BIGINT: both databases compare and index them alike, and no driver's idea of
// a time zone gets between. v0's times lose what is shorter, as they do in Threeport's own API.
//
// # Writing
//
// Every write goes through inTx or exec. They try again when the database gave a transaction up in favour of others, they
// are not interrupted when a request ends, and they end after [Config].WriteTimeout at the latest. When they return nil,
// what was written survives a loss of power: SQLite runs with synchronous=FULL, PostgreSQL has synchronous_commit on
// unless its administrator turned it off. A connection that is lost during a commit leaves open whether it happened; the
// error is returned, and every kind of report can be sent again.
//
// SQLite has one connection that writes, which all writers wait for, and others that read. PostgreSQL has a pool for both.
// A write that takes several rows takes them in the order of their keys, so that two of them do not wait for each other.
//
// # Dialects
//
// What differs is in dialect.go, lock.go, optimize.go and the migrations; all other SQL is what both understand:
// placeholders ? (see rebind), INSERT … ON CONFLICT (…) DO UPDATE SET x = excluded.x, RETURNING, partial indexes. Two things
// to know: after INSERT … SELECT, SQLite wants a WHERE before ON CONFLICT; and NULLs sort first in one and last in the
// other, so that columns which are sorted by are NOT NULL.
//
// CockroachDB speaks PostgreSQL's protocol, and this is what its documentation asks for: transactions are retried by the
// client on 40001; keys are not sequences, but made here (id.go); there is no LISTEN, so that other replicas find changes
// by their poll alone; advisory locks always succeed, so that replicas may prune at once, which is harmless, and may
// migrate at once, which is not: there the first replica is to be started alone. It is not part of the tests.
//
// # Schema
//
// [Open] runs the migrations that a database has not had. A file of the time before there were versions is adopted; a
// schema of a newer program is refused. Only the index that makes runtimeeventuid unique is not a migration's: it comes
// and goes with [Config].StrictV0.
package store
