// Package upstream plays the controller that deploys workloads: it registers an instance and its resources in
// the control plane, creates the objects in the cluster, and then the ThreeportWorkload that lists them. It
// also reads back what the control plane was told, as its users do.
package upstream
