// Package informers watches the cluster. It keeps one shared informer per resource and scope for the kinds that the
// registry's workloads list. It records in the registry which objects exist, and passes changes on to its [Handler]. It
// knows no verdicts and no reports.
//
// # Parts
//
//   - kinds starts and stops a kindWatcher for each wanted kind. A kindWatcher resolves how the API server serves the kind
//     and where the agent may watch it, and acquires informers for these scopes from the informerPool.
//   - The registrar receives the notifications of all informers. It keeps tombstones of deleted objects, and adds owners of
//     unwatched kinds to the lookups.
//   - The stallDetector compares caches with the API server.
//   - The objectCache keeps listed objects that were fetched because the informers' caches keep a part of them only.
//
// [Informers] composes them and answers questions about what is visible.
//
// # Goroutines
//
// [Informers.Run] starts, and waits for:
//
//   - one goroutine per kindWatcher, which waits for the informers that it releases;
//   - one goroutine per informer, and those of client-go;
//   - the lookup workers.
//
// Run itself starts and stops kind watchers. It waits for none of them before its context ends: the objects of a stopped
// kind are dropped from the registry when its kindWatcher signals that its informers have stopped.
//
// # Locks
//
// Mutexes of this package nest in one way only: informerPool.mu is locked before informer.mu, never after it. A lock on
// tombstones.mu covers calls of the registry, so that the deletion of an object and its registration do not interleave. The
// Handler, and other parts, are called without a mutex. A test in package agent derives this from the source.
package informers
