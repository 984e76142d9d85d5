// Package informers sees the cluster: it keeps one informer per resource and scope for what the registry of
// targets asks for, tells the registry which objects exist, and offers a report to its [Sink] whenever
// there is something new about an object that a workload claims.
//
// # The way of a change
//
// An informer's handler runs in client-go's goroutine and only marks: it files the object in the registry
// and puts its name into a queue. Workers take names from the queue, read the newest object from the
// informer's store, ask the registry whose it is, and offer reports. A change of claims (a workload is
// declared, an owner becomes known) comes out of the registry and marks the objects and Events concerned in
// the same way. So nothing depends on the order in which things arrive.
//
// # Health
//
// What changes is judged, with the latest Event of type Warning about it; so is an object about which such an Event
// comes or expires, after a while, and one whose verdict is said to end at a time, when that has come. The verdicts of a
// resource and of the pods below it are kept, so that a change of one pod reads no other; what they come to is worked out
// when somebody asks. A workload's status is damped if it flaps ([health.Flapping]), and offered on change, spaced.
//
// # Events of its own
//
// Kubernetes writes no Event when a container ends, and nobody does when a workload's status changes. The watcher offers
// these as Events, with UIDs made of what they are about: POD/CONTAINER/RESTARTS and THREEPORTWORKLOAD/TIME/STATUS. Pods
// and ThreeportWorkloads tell of them as long as they are there, so they are offered again and again like all else.
//
// # Goroutines
//
// [Watcher.Run] owns them all: the loop that compares what is wanted with what runs, one goroutine per
// listed kind, the informers, and the workers. It returns when every one of them has ended.
//
// A [Sink] is called from many goroutines at a time. It must not block.
package informers
