// Package openid logs people in by OpenID Connect: the authorization code flow with PKCE.
//
// A browser leaves for the provider with a [Flow], which only it keeps, and comes back with a code, for which
// [Provider.Person] gets to know who it is. Nothing of that is in memory, so that any replica may finish what another began.
// What the provider says of itself (its endpoints and keys) is asked when it is needed first: a provider that is away
// keeps nobody from starting, and is asked again.
package openid
