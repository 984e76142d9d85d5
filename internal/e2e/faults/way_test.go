package faults

import "testing"

// way is how reports are delivered.
type way struct {
	name  string
	api   []string // flags of the control plane
	agent []string // flags of the agent
}

var (
	// inSets is with the control plane as it is.
	inSets = way{name: "in sets", agent: []string{"--report-sets"}}
	// inV0 is with a control plane that is no better than Threeport's own.
	inV0 = way{name: "in v0", api: []string{"--strict-v0"}}
	// inV0Only is the same, and the agent does not ask for anything better.
	inV0Only = way{name: "in v0", api: inV0.api, agent: []string{"--report-sets=false"}}
)

var bothWays = []way{inSets, inV0}

// inBothWays runs a test whose subject is the delivery.
func inBothWays(t *testing.T, test func(*world)) {
	t.Helper()
	for _, delivery := range bothWays {
		t.Run(delivery.name, func(t *testing.T) {
			t.Parallel()
			test(newWorldIn(t, delivery))
		})
	}
}
