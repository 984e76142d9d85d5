// Package auth authenticates and authorizes the requests of the control-plane API.
//
// [Authenticator.Middleware] wraps the router. It authenticates the [Principal] of a request, checks the permission of its role,
// applies rate limits and writes the audit log. Handlers read the principal with [PrincipalFrom]. Permissions that depend on
// rows are checked by the handlers, with [Principal.Authorize] and [Principal.MayReportFor].
//
// Where to find what:
//
//   - A token, session or certificate is checked in authenticate.go.
//   - The role of a certificate is decided in authenticate.go, that of a person in config.go (SingleSignOn.roleOf). A token has
//     its role in its row.
//   - The permissions of a role are the server's [Rule]s, for an agent's access to rows also in row_access.go.
//   - A session begins and ends in session.go, a stream with it.
//   - The audit log is written in audit_log.go.
//   - People log in with a token in login.go, by single sign-on in sign_on.go and package openid.
//
// # Invariants
//
//   - Only hashes of secrets are stored, and no error, log line or audit record quotes a secret.
//   - A request without a rule is for administrators only. An invalid token is never ignored in favour of another credential.
//   - A revocation takes effect at once in the replica that handles it, and within five seconds (cacheTime) in the others. There
//     an open stream ends within ten.
//   - An SSO session is backed by a secretless token, so revocation and caching work unchanged.
//   - Every audited request (see isAudited) has a record in the [Store] or, if that fails, in the log.
//
// # Concurrency
//
// [Authenticator] is safe for concurrent use. Its goroutine, started by [New] and stopped by [Authenticator.Close], writes audit
// records and the times of token use, so that no request waits for them. With an identity provider a second one reads its keys. Each
// stream has a goroutine that ends with its request.
package auth
