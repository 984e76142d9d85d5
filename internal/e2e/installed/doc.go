// Package installed tests faults of installed programs. The agent and the control-plane API run as Pods of a real node. Helm charts
// install them, and in another cluster kustomizations do. A real Prometheus scrapes the Pods with the credentials and alerts of the
// installation; see package monitoring.
//
// No operator of Prometheus and no kube-proxy run. The test does their work: Prometheus gets the rules of the PrometheusRules and the
// addresses of the Pods, and connections to the Service of the API lead to its Pod.
//
// A test needs Linux, root, and the programs that cluster.CanRunRealNode names.
package installed
