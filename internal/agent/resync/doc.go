// Package resync compares what the control plane has with what the cluster shows.
//
// It does so once for each workload before the outbox delivers anything of it, which is adoption: the outbox then knows
// the rows of Events, which must not be made twice, what need not be sent again, and the deletions that nobody saw. It
// makes no difference to it why the outbox does not know: a first start, a lost disk, another leader's disk.
//
// And it does so in every interval for all workloads, without holding anything back, and repairs what somebody changed
// in the control plane, or what this agent missed.
//
// The package knows neither cluster nor disk: it reads the [Cluster] and the [API], and tells the [Outbox].
// When it adopts, and when again after a failure, is the outbox's to decide: see [Auditor.Seed].
package resync
