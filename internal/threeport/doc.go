// Package threeport speaks the control-plane API, version v0: its wire
// types, a client for the few requests the agent makes, and the kinds of
// failure a caller has to tell apart.
//
// The client makes each request once. Whether, when and how often to repeat
// one is the caller's decision, taken from the error:
//
//	err := client.UpdateWorkloadResourceInstance(ctx, id, patch)
//	switch threeport.KindOf(err) {
//	case threeport.KindNone: // delivered
//	case threeport.KindRetryable: // again later, see [Error.RetryAfter]
//	case threeport.KindUnauthorized: // credentials; nothing else will pass either
//	case threeport.KindNotFound: // the row is gone
//	case threeport.KindPermanent: // this message will never be accepted
//	}
//
// Creating an event is not idempotent in v0. When [Ambiguous] says that a
// failed create may have been applied all the same, look for the row with
// [Client.FindWorkloadEvent] before creating it again.
//
// A [Client] is safe for concurrent use. It starts no goroutines apart from
// those of the connections it keeps alive, which [Client.Close] ends.
package threeport
