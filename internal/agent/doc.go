// Package agent has the stages of the agent, one package each. Other packages serve them: filter has the user's filters of Events,
// worker the work queues, leader the lease of a replica, and credential the renewal of its token. The servers of probes and metrics are
// in endpoints, and the access to the metrics is in metricsauth. The package has no code of its own: cmd/agent wires the stages.
//
// The way of the data, and the queue or channel between two stages with its owner:
//
//	ThreeportWorkload (API server)
//	   │  controller-runtime's queue of reconcile requests; owner: the manager
//	controller   reconciles it: tracks the workload, and writes its status
//	   │  target.Registry, with a channel of capacity 1 for changes; owner: the registry
//	target       which object belongs to which workload; pure
//	   │
//	informers    watch the kinds that are needed, record the objects in the registry, and call a Handler for each change
//	   │  work queues of names; owner: the reporter
//	reporter     each worker reads the newest object, and offers reports
//	   │         assess: its verdict, and the workload's status and tree (package health)
//	   │         observe: the reports, as operation, Event, status or tree; pure
//	   │  Outbox.Offer; the outbox asks for all reports again through Outbox.Reoffer, a channel of capacity 1
//	outbox       the newest report of each key, until it is delivered; decides on order, retry and eviction
//	   │         journal: its records on disk
//	   │  Outbox.NextBatch, which blocks; owner of the goroutines: the Notifier
//	notify       sends the reports, in the protocol that the control plane takes
//	   │
//	control-plane API (package threeport)
//
// Besides that way, resync compares the rows of the control plane with the cluster: before the first report of a workload,
// and again at an interval. Its repairs are reports in the outbox.
//
// The controller writes the progress of each delivery into the status of the ThreeportWorkload. It reads that from the
// outbox through an interface of its own.
//
// Imports point one way: controller → target ← observe ← informers, assess ← reporter; observe ← outbox ← notify ← resync.
//
// On SIGTERM the informers and the reporter end first. The reporter offers the changes that are in its queues. Then the
// notifier delivers what is in the outbox, for at most --shutdown-timeout. A replica that has lost the lease sends nothing
// more.
package agent
