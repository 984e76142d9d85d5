// Package upstream replaces the controller that deploys workloads. It registers an instance and its resources in the
// control plane, creates the objects in the cluster, and then the ThreeportWorkload that lists them. It also reads the rows
// of the control plane, as users do.
package upstream
