// Package node has the tests with a real node: the agent runs as an operator, and containers really fail. The tests need
// Linux, root, and the programs that cluster.CanRunRealNode names.
package node
