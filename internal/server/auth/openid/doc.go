// Package openid logs people in by OpenID Connect: the authorization code flow with PKCE.
//
// [Provider.AuthURL] is where a browser goes to log in. It comes back with a code, for which [Provider.Person] returns
// the person. The state of a log-in is a [Flow], which only the browser keeps, in a cookie: the server has none, so any
// replica can finish a log-in.
//
// The provider's metadata (endpoints and keys) are fetched in the background when a [Provider] is created, and again
// when needed until that succeeds. So an unavailable provider does not prevent the start. All types are safe for
// concurrent use.
package openid
