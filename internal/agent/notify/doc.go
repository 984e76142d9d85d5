// Package notify delivers what the outbox holds: it takes reports, sends them through a [Sender], and settles
// each by its outcome. A report is sent again after a transient failure, with full-jitter exponential
// backoff or when the control plane says; one that the control plane refuses for good is given up, counted
// and shown.
//
// # Two ways
//
// A [Link] is the sender to a control plane. It asks whether report sets are taken ([controlplane.ReportSet]), and sends
// in these then: many reports in a request, each put in only if it is newer than what is there. Else it sends one
// report in a request, as version v0 has it ([V0Sender]). It asks again from time to time, and when a server turns out not to
// take sets any more. Either way loses nothing and makes nothing twice, and so does a change from one to the other:
//
//   - A report that was on its way in a set is pending until it is answered. It goes back to the outbox, and comes again.
//   - An Event that was sent in a set, answered or not, is looked for before v0 makes a row. One that v0 made a row for is
//     found by the set's Event UID.
//   - What v0 has no place for is not pending while v0 is spoken. The watch tells all of it when that is over, and all
//     statuses either way: see [Link.Attach].
//
// # Goroutines
//
// [Notifier.Run] owns the goroutines that deliver: it returns when all of them have ended, which is after what the
// outbox holds was flushed, or the time for that is over. [Link.Run] starts none.
package notify
