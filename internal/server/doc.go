// Package server is the control-plane API over HTTP: Threeport's v0, report sets and what people read beside it, the page,
// TLS and limits.
//
// # v0
//
// It answers requests as Threeport's own API server does, with the same envelope, codes and texts. One table of resources
// (in package store) says which objects there are and which fields they have; validation, SQL, filters and routes all follow
// from it (handler.go, payload.go, answer.go, selection.go).
//
// It differs from v0 in one point, on purpose: the RuntimeEventUID of a WorkloadEvent is unique. Posting one again answers
// 200 with the row that exists, so that a repeated create is harmless. An empty RuntimeEventUID identifies nothing and is
// not unique. With [Config].StrictV0 even that is as in v0, and nothing else is served.
//
// # What is beside it
//
// Report sets are decoded in one pass, strictly and within bounds of memory that all requests share (reports*.go). The other
// endpoints are huma's, which also makes the document of all (board.go, watch.go, openapi*.go). Package access comes before
// every handler; guard.go asks it whose rows of v0 an agent may touch.
//
// A [Server] owns its goroutines: those of its store's feed and maintenance, and of access. [Server.Run] returns when all
// have ended, and ends open streams first.
package server
