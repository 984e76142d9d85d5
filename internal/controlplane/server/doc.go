// Package server is the reference control-plane API, version v0: it answers the
// agent's requests as Threeport's own API server does, with the same envelope,
// codes and texts, from a database of its own.
//
// One table of resources (in package store) says which objects there are and
// which fields they have; validation, SQL, filters and routes all follow from it.
//
// It differs from v0 in one point, on purpose: the RuntimeEventUID of a
// WorkloadEvent is unique. Posting one again answers 200 with the row that
// exists, so that a repeated create is harmless. An empty RuntimeEventUID
// identifies nothing and is not unique.
package server
