// Package assess judges the objects of workloads and derives the reports about their health. These are the verdict on
// each resource, the damped status of a workload, and the tree of an instance's objects.
//
// [Assessor.Judge] assesses one object, and [Assessor.Keep] puts the assessment into a cache. The health of a resource combines
// its own assessment with those of the pods and other dependents below it. It is computed on request, so a change of one pod does
// not read the other pods.
//
// A status that changes back and forth is damped ([health.Flapping]). Each verdict on a workload that leaves the package is recorded for
// that. Statuses and trees are spaced: [Assessor.AdmitStatus] and [Assessor.AdmitTree] return how long the caller has to wait with the
// next one.
//
// # Concurrency
//
// The package starts no goroutine. An [Assessor] is safe for concurrent use, except that one goroutine at a time may call
// [Assessor.Note], [Assessor.AdmitStatus], [Assessor.AdmitTree], [Assessor.BuildTree], [Assessor.ForgetWorkload] and
// [Assessor.ForgetInstance] for a workload. The package holds none of its mutexes while it calls its [Cluster] or
// [Transitions].
package assess
