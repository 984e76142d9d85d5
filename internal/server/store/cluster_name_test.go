package store

import (
	"testing"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// A cluster without a name is shown by its UID, so another cluster must not have it as its name.
func TestApply_ClusterName_UUIDIsQualified(t *testing.T) {
	const other = "9b2f0c1e-7f7a-4f43-8f0a-2d8f4c6f3a10"
	agent := &threeport.Agent{ClusterUID: "own", ClusterName: other}
	args := clusterNameArgs(agent)
	if got, want := args[len(args)-1], other+" (own)"; got != want {
		t.Errorf("the name is stored as %q, want %q", got, want)
	}
	agent.ClusterName = "prod"
	args = clusterNameArgs(agent)
	if got := args[len(args)-1]; got != "prod" {
		t.Errorf("the name is stored as %q, want prod", got)
	}
}
