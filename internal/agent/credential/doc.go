// Package credential renews the bearer token of the agent before it ends. A [Renewer] asks the control plane for a new token when that
// is due, and sends it from then on. It writes the token to the [Secret] that the file of the token is mounted from.
package credential
