// Package e2e tests the agent from outside: a real Kubernetes control plane, the reference control-plane API
// and the agent, each in processes of their own.
package e2e
