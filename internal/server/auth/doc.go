// Package auth decides who may do what with the control-plane API.
//
// [Access.Authenticate] stands before every handler. It finds the [Principal] of a request by its bearer token, its
// browser session or its client certificate, refuses what the server's [Rule]s do not grant, paces agents and
// viewers, and records what administrators do. A handler asks [From] who it is that asks; what the table cannot know,
// because it depends on the row, it asks [Principal.May].
//
// Tokens and sessions are rows of the [Store], as hashes. What was read is kept for five seconds, so that a request
// costs no query; a revocation counts at once in the process that it came to, and in the others when those seconds are
// over. An answer that goes on for long, a watch, ends with the credential that it was opened with.
//
// People may come by single sign-on: package openid finds out who they are, and their groups say what they may. Their
// session belongs to a token that nobody has, so that all that holds for tokens and their sessions holds for them.
//
// One goroutine, which [New] starts and [Access.Close] ends, writes audit records and what else no request waits for.
package auth
