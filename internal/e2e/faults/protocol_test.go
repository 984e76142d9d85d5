package faults

import "testing"

// protocol is a protocol of delivery, with the flags for it.
type protocol struct {
	name  string
	api   []string // flags of the control plane
	agent []string // flags of the agent
}

var (
	// reportSets uses report sets.
	reportSets = protocol{name: "report sets", agent: []string{"--report-sets"}}
	// v0 has a control plane with only the features of Threeport's; the agent falls back to v0.
	v0 = protocol{name: "v0", api: []string{"--strict-v0"}}
	// v0WithoutProbe is v0 without a fallback: the agent never tries report sets.
	v0WithoutProbe = protocol{name: "v0", api: v0.api, agent: []string{"--report-sets=false"}}
)

var bothWays = []protocol{reportSets, v0}

// forEachProtocol runs a test of the delivery with each protocol.
func forEachProtocol(t *testing.T, test func(*faultWorld)) {
	t.Helper()
	for _, delivery := range bothWays {
		t.Run(delivery.name, func(t *testing.T) {
			t.Parallel()
			test(newWorldIn(t, delivery))
		})
	}
}
