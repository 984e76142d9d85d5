// Package resync compares the rows of the control plane with the cluster.
//
// The initial sync of a workload comes before the outbox delivers its operations and Events. It reads the rows of Events,
// which must not be created twice, the reports that need not be sent again, and the deletions that no informer has seen. So
// a first start, a lost state and the state of another leader are one case.
//
// Afterwards all workloads are compared once in each interval. Rows that somebody else changed, or that this agent missed,
// are repaired. Deliveries go on meanwhile.
//
// The package knows neither the cluster nor the store: it reads the [Cluster] and the [API], and writes to the [Outbox]. The
// outbox decides when the initial sync takes place and when it is repeated: see [outbox.InitialSync].
package resync
