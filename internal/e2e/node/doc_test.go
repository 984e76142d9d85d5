// Package node has the tests that need a real node: the agent is deployed as an operator, and workloads fail for
// real. `make test-node` runs them; they need Linux, root, and the programs that cluster.CanRunRealNode names.
package node
