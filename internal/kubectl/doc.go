// Package kubectl is the plugin kubectl-threeport. It shows whether workloads run and, if not, why.
//
// status shows the status that the agent writes to ThreeportWorkloads. tree and assess use package health directly: tree
// for the objects of a workload in the cluster, assess for objects in files. track writes a ThreeportWorkload. rbac
// prints the role that the agent needs for ThreeportWorkloads. doctor checks the installation of the agent: readInstallation reads
// all that the checks need, and the checks are pure. Only track --apply changes the cluster.
//
// # Exit codes
//
// status, tree and assess exit with 0 if everything is Healthy, and with 1 if an object is Reconciling, Unhealthy, Down or
// Unknown. rbac exits with 1 if the agent lacks a permission, and doctor if a finding is an error. A wrong command line or input exits with 2, and a failure of the
// cluster with 3. status exits with 4 if the agent does not report.
//
// # Concurrency
//
// [Run] returns when its context ends, and leaves no goroutine behind.
//
// # Output
//
// Control characters in text from the cluster and from files are replaced.
package kubectl
