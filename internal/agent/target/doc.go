// Package target is the registry that attributes objects to workloads: by name, by the chain of owners, or by label.
//
// The registry combines two inputs, which may arrive in any order. The controller declares workloads ([Registry.Track],
// [Registry.Forget]); the informers record objects ([Registry.Upsert], [Registry.Delete]). [Registry.Attributions]
// answers from both and lists the rules. Whenever an answer may have changed, [Registry.Changed] signals, and
// [Registry.Drain] returns each affected object once. So the order in which an Event, its Pod, the Pod's ReplicaSet and
// their ThreeportWorkload arrive does not matter.
//
// Besides, the package has the types that stages exchange because they may not import each other: [ResourceStatus],
// [HealthTransition] and [DeliveryProgress].
//
// The package does no I/O and starts no goroutine. A Registry is safe for concurrent use; its mutex is a leaf: no other
// package is called while it is held.
package target
