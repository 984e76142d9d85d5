// Package outbox keeps what the control plane is still to be told, and decides what is told next: the newest report
// of each key, so that a hundred changes of one object while the control plane is slow are one request.
//
// The watch offers reports ([Outbox.Offer]); a report whose version was already accepted, or is already waiting,
// changes nothing. The notifier takes them, one or many at a time ([Outbox.NextBatch]), and settles each item that it
// took exactly once: [Outbox.Ack], [Outbox.Nack], [Outbox.Defer], [Outbox.Requeue], [Outbox.Reject] or [Outbox.AckNotFound].
// A lane has at most one item out at a time, and its items come out in the order in which their keys came in; lanes are
// independent of each other. Of an accepted report its receipt and version stay, until the key is forgotten: that is how
// a repeat finds its row. What is withdrawn while it is out is not sent again if it fails.
//
// # Pace
//
// Operations and statuses, fresh Events, Events that had to wait for the end of an outage, and reports that alone keep
// failing take turns, so that none of them starves another; of the last there is one out at a time. When reports of two
// keys fail and nothing succeeds in between, or the control plane refuses whoever asks, it is an outage: nothing comes
// out but a probe, one at a time, after waits that grow. The first that succeeds ends it.
//
// # What is known of the control plane
//
// If the configuration says so, the first item of a workload is its [InitialSync], and its operations and Events wait until
// [Outbox.Seed] has told what the control plane has of it. Whatever became of the memory of an earlier process, nothing
// is made twice.
//
// # Bounds
//
// What only the outbox remembers, Events above all, is in its [Store], which outlives the process. When that grows
// beyond its bound the oldest Normal Events are dropped, then the oldest Warnings. What was dropped is counted, and the
// control plane is told with an Event of its own.
//
// An Outbox is safe for concurrent use and starts no goroutine.
package outbox
