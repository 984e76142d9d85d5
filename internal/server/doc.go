// Package server is the control-plane API over HTTP: Threeport's v0, report sets, the endpoints and the page for people, TLS
// and limits.
//
// # Routes
//
// routes.go has one table of all routes: method, path, roles, body limit and handler. The mux and the rules of package auth
// are made of it. A new route is a new row there and a handler; an operation of huma is documented by itself.
//
// # v0
//
// The server answers requests of v0 as Threeport's own API server does, with the same envelope, codes and texts. The table of
// resources in package store lists the objects and their fields; validation, SQL, filters and routes follow from it
// (v0_*.go).
//
// It differs in one point: the RuntimeEventUID of a WorkloadEvent is unique among those of its instance. A second POST answers 200
// with the existing row, so repeated creates are harmless. Any number of Events may have an empty RuntimeEventUID. With
// [Config].StrictV0 that is as in Threeport's API, and nothing but v0 is served.
//
// # Everything else
//
// Report sets are decoded as a stream, strictly and within a bound on memory (reportset*.go). The other endpoints
// are operations of huma, which also makes the OpenAPI document (workloads.go, clusters.go, watch.go, openapi*.go).
//
// Package auth decides on every request before its handler. For rows of v0, v0_authorize.go asks it which rows an agent may
// access.
//
// A [Server] owns its goroutines: those of the store's feed and maintenance, of the export of logs, of the redaction rules, and of
// package auth. [Server.Run] returns when all have ended, and ends open streams first.
package server
