// Package notify delivers the reports of an outbox: [Notifier] takes them, sends them through a [Sender], and settles each
// by its result.
//
// # Senders
//
//   - [StdoutSender] prints one line per report.
//   - [V0Sender] makes one request per report, in version v0 of the control-plane API.
//   - [NegotiatingSender] uses report sets ([threeport.ReportSet]) while the control plane takes them, and v0 otherwise. A
//     set has many reports in one request. It probes from time to time, and goes back to v0 when a server no longer
//     takes sets.
//
// # The row of a report
//
//	report     in v0 ([V0Sender])                           in a report set (apply_*.go of the API's store)
//	status     the instance of the ThreeportWorkload        the same
//	operation  the WorkloadResourceInstance that it lists   the same
//	Event      of the receipt, else with the UID of the     with the UID of the Event, of the instance or else of
//	           Event, else a new one                        the cluster, else a new one
//
// Package reporter decides the UID of the row, for both protocols alike. An Event that several instances get has a UID for each of them.
// While sets are used, a report that repairs a row is sent in v0, because a set overwrites no newer version.
//
// # A change of the protocol
//
// Any 404 or 405 for a report set ends the use of sets until the next probe: an earlier release and a proxy answer alike. The change
// loses and duplicates nothing, with one exception.
//
//   - A report whose set was not answered is pending. It is sent again in the new protocol.
//   - An Event that was sent in a set, answered or not, is looked for before v0 creates a row. A set finds a row that v0
//     created by the UID of the Event.
//   - A report without a place in v0 is not pending while v0 is used. After each change the outbox asks the reporter for all
//     statuses, trees and objects again, and for the Events of shared objects ([outbox.Outbox.SetProtocol]).
//   - The exception: an Event of a shared object that was pending for a second workload is lost if the cluster deletes it before
//     sets are used again.
//
// # Goroutines
//
// [Notifier.Run] owns the goroutines that deliver, and returns when all of them have ended. [NegotiatingSender.Run] starts
// none.
package notify
