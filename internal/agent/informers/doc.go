// Package informers watches the cluster. It keeps one informer per resource and scope for the kinds that the
// registry's workloads list. It records in the registry which objects exist, and passes changes on to its [Handler]. It
// knows no verdicts and no reports.
//
// # Parts
//
// [Informers] composes the parts:
//
//   - kinds.go: kinds starts and stops a kindWatcher for each wanted kind.
//   - kindwatcher.go, scopes.go, backoff.go: a kindWatcher resolves how the API server serves the kind and where the agent may
//     watch it. It acquires informers for these scopes from the informerPool, and publishes the state of each scope.
//   - clients.go, discovery.go, permissions.go, answers.go: [Clients] sends the requests other than lists and watches of
//     informers. secrets.go has the clients for Secrets, which keep the data out.
//   - pool.go, informer.go, factory.go: the informerPool holds the running informers, which kind watchers share. An informer
//     records how its requests fare.
//   - codecs.go, protofields.go: how watches decode Pods and Events.
//   - store.go, eventindex.go: the store of an informer's objects, with the indexes of Events. It passes each change on.
//   - transform.go, limits.go, large.go: the form and the size of an object in a cache. cachedpod.go and cachedevent.go have the
//     encoded forms, and fieldcodec.go their encoding.
//   - registrar.go: the registrar receives the notifications of all informers. It adds owners of unwatched kinds to the lookups.
//   - tombstones.go: tombstones of deleted objects, until their deletion is reported. deletions.go compares the existing objects
//     with the API server.
//   - lookups.go: lookups reads owners of unwatched kinds.
//   - stalls.go: the stallDetector compares caches with the API server, and restarts informers that lag.
//   - objects.go: the objectCache keeps listed objects that were fetched because the informers' caches keep a part of them only.
//     The methods of Informers beside it return objects.
//   - visibility.go, events.go: the methods of Informers that answer which kinds and Events are visible.
//
// # Goroutines
//
// [Informers.Run] starts, and waits for:
//
//   - one goroutine per kindWatcher, which waits for the informers that it releases;
//   - one goroutine per informer, which calls the Handler too, and those of client-go for its requests;
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
