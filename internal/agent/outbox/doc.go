// Package outbox holds reports until the control plane has accepted them, and decides which is sent next. It keeps the
// newest report of each key, so a hundred changes of an object while the control plane is slow are one request.
//
// The reporter offers reports ([Outbox.Offer]). An offered version that is pending or accepted already changes nothing. The
// notifier takes reports ([Outbox.NextBatch]) and settles each item exactly once: [Outbox.Ack], [Outbox.AckRemoved],
// [Outbox.Reject], [Outbox.Refuse], [Outbox.Nack], [Outbox.Defer] or [Outbox.Requeue]. The keys with one ordering key are a
// group, and groups are independent of each other. At most one item of a group is in flight, and items of a group are taken
// in the order in which their keys came up. The receipt and version of an accepted report are kept until
// [Outbox.ForgetExcept], so that a repeat of an Event updates its row.
//
// # Parts
//
// Each part is a type in a file of its own; [Outbox] composes them. The methods of Outbox that take and settle items are in
// take.go, settle.go and deadletter.go, those for resync in state.go.
//
//   - entry.go: a key, its group and its subject, and the index of them.
//   - archive.go: [archive] has the Events that the control plane accepted, in little memory.
//   - protocol.go: [Protocol] decides whether a report is sent, and under which version.
//   - queue.go: groups that have something to send, by class. Classes take turns: state, fresh Events, the backlog, and
//     reports in quarantine. One report in quarantine is in flight at a time.
//   - breaker.go: breaker decides when a failed report is sent again. It is open during an outage: then only probes are
//     sent, one at a time, after growing waits. A report that fails while others succeed is quarantined.
//   - sync.go: initialSync holds a workload's operations and Events until the remote state is known ([Outbox.Seed]), so that
//     no row is created twice, whatever the store has lost.
//   - eviction.go, dropped.go: when the bound is exceeded, the oldest Normal Events of the instance with the most bytes are
//     dropped, and then its oldest Warnings. Instances that the control plane has not confirmed come first. An Event reports
//     how many were dropped.
//   - persistence.go: receipts, dead letters, and the pending reports that would be lost with the process.
//   - account.go, operations.go, deadletter.go: the progress of each workload.
//
// An Outbox is safe for concurrent use and starts no goroutine. It calls its [Store] and its [Protocol] with its mutex held.
package outbox
