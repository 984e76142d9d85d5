// Package outbox keeps what the control plane is still to be told: the newest report of each key, so that
// a hundred changes of one object while the control plane is slow are one request.
//
// The watch offers reports ([Outbox.Offer]); a report whose version was already accepted, or is already
// waiting, changes nothing. The notifier takes them ([Outbox.Next]) and settles each item that it took
// exactly once: [Outbox.Accept], [Outbox.Retry] or [Outbox.Reject]. A lane has at most one item out at a
// time, and its items come out in the order in which their keys came in; lanes are independent of each
// other. Of an accepted report its receipt and version stay, until the key is forgotten: that is how a
// repeat finds its row. What is withdrawn while it is out is not sent again if it fails.
//
// An Outbox is safe for concurrent use and starts no goroutine.
package outbox
