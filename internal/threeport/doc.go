// Package threeport is the contract with a control plane: the wire types of v0 and of report sets, a client for the agent's
// requests, and the kinds of errors.
//
// The client makes each request once. The caller decides by the kind of the error whether to repeat it:
//
//	err := client.UpdateWorkloadResourceInstance(ctx, id, patch)
//	switch threeport.KindOf(err) {
//	case threeport.KindNone: // delivered
//	case threeport.KindRetryable: // again later, see [Error.RetryAfter]
//	case threeport.KindUnauthorized: // the credentials are wrong, for all requests
//	case threeport.KindNotFound: // the row does not exist
//	case threeport.KindForbidden: // the instance is not assigned to the cluster; again later
//	case threeport.KindPermanent: // a repeat would fail again
//	}
//
// Creating an Event is not idempotent in v0. A failed request may have created the row: look for it with
// [Client.FindWorkloadEvent] before creating it again.
//
// A [Client] is safe for concurrent use. Its only goroutines are those of idle connections, which [Client.Close] ends.
package threeport
