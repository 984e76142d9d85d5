// Package kubectl is the plugin kubectl-threeport: what runs, and if not, why, on the command line.
//
// status shows what the agent says in the status of ThreeportWorkloads. tree and assess judge for themselves, with the
// rules of package health: tree what a workload lists and what descends from it in the cluster, assess objects in
// files. track writes a ThreeportWorkload. Nothing but track --apply changes anything.
//
// # Exit codes
//
// Commands that judge end with 0 if everything is Healthy and with 1 if something is Reconciling, Unhealthy, Down or
// Unknown. What cannot be done ends with 2 if the command line or the input is to blame, with 3 if the cluster is.
//
// # Concurrency
//
// [Run] returns when its context ends, and leaves no goroutine behind. Text from the cluster and from files is written
// without control characters.
package kubectl
