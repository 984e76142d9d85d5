// Package target is the registry of what the agent reports about: which object, by name, by its chain
// of owners or by label, belongs to which workload.
//
// Two kinds of facts meet here, in any order. The controller declares workloads ([Registry.Track],
// [Registry.Forget]); the watch tells of objects that exist ([Registry.Upsert], [Registry.Delete]).
// [Registry.Attributions] answers from both. Whenever an answer may have changed, the objects concerned are
// handed out once by [Registry.Drain], and [Registry.Changed] signals that there are some: so an Event
// before its Pod, a Pod before its ReplicaSet, and all of them before their ThreeportWorkload find their
// way in the end.
//
// The package does no I/O and starts no goroutine. A Registry is safe for concurrent use.
package target
