// Package e2e tests the agent from outside. The Kubernetes control plane, the control-plane API and the agent run as
// processes.
package e2e
