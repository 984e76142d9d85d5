// Package reporter turns the changes that the informers see into reports for a [Sink]: operations for objects, Events,
// statuses, and trees.
//
// # The path of a change
//
// The informers call the handler, which adds a key to a queue. A worker takes the key, reads the newest object from the
// cache, asks the registry to which workloads it belongs, offers reports, and has the object assessed. A change of the
// registry (a declared workload, a resolved owner) queues the affected objects and Events in the same way. The outcome
// therefore does not depend on the order in which objects, owners and declarations arrive.
//
// # Synthetic Events
//
// Kubernetes writes no Event when a container terminates or when the health of a workload changes. The reporter offers
// Events of its own for both. Their UIDs are derived from their subject, POD/CONTAINER/RESTARTS and
// THREEPORTWORKLOAD/TIME/STATUS, so that every process derives the same Event from the same Pod or ThreeportWorkload.
//
// # Records
//
// The sink records which reports were made, also across restarts. [Withdrawals.ForgetExcept] drops all keys of a
// subject except the given ones. The reporter itself records the attributed objects, in a [Store], so that it notices their
// deletion after a restart. In memory it records the last transition of each workload, and which Events are about unknown
// objects.
//
// # Goroutines
//
// [Reporter.Run] starts the informers and the workers, and waits until they have ended. Run itself passes on changes of the registry.
// The workers are:
//
//   - Config.Workers for objects, and as many for Events.
//   - One for Events that the cache has in part.
//   - One for statuses and trees, so that no report of an instance follows its withdrawal.
//
// When the context ends, the informers stop first. Then the workers process the keys that are queued.
//
// # Locks
//
// Each record has a mutex, which is held for its maps only. The record attributedObjects holds its mutex during calls of the
// store and the registry, so that both stay consistent. No mutex is held while the Sink, the informers or the assessor are
// called. A test in package agent derives this from the source.
//
// The order of all mutexes of informers, assess and reporter:
//
//	informers.informerPool.mu > informers.informer.mu
//	informers.tombstones.mu > target.Registry
//	reporter.attributedObjects.mu > target.Registry, Store
//
// The registry and the store are leaves: they call none of these packages.
package reporter
