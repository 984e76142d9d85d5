package faults

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/threeport/threeport-agent/internal/e2e/process"
	"github.com/threeport/threeport-agent/internal/e2e/world"
)

const (
	largeObjects = 40
	largeData    = 900 << 10 // bytes, of each: 132 MiB in all
	largeMemory  = 120 << 20 // bytes
)

// A workload lists large ConfigMaps. The agent has the shipped GOMEMLIMIT, and reports all of them and a change of one.
func TestObjects_Large_FitMemoryLimit(t *testing.T) {
	build, err := shippedBounds()
	if err != nil {
		t.Fatal(err)
	}
	if build.binary, err = process.Build(t.Context(), root, "./cmd/agent", t.TempDir()); err != nil {
		t.Fatal(err)
	}
	build.confined = false // the test measures the memory itself
	w := newWorldOn(t, ownCluster(t))
	w.agent = w.LaunchAgent(build.command(w.World), append(w.protocol.agent,
		"--kubeconfig="+w.kubeconfig(w.toCluster.Listen), "--threeport-api-server="+w.toAPI.Listen, "--state-dir="+filepath.Join(t.TempDir(), "state"),
	)...)
	w.AwaitAgent(w.Ctx, w.agent)
	manifests := make([]string, largeObjects)
	for i := range manifests {
		manifests[i] = strings.Replace(world.ConfigMap(fmt.Sprint("large-", i)), "value", strings.Repeat("x", largeData), 1)
	}
	large := w.deploy("large", manifests...)
	w.awaitAgreement()
	w.Patch(large.Objects[0], `{"data": {"more": "data"}}`)
	w.awaitAgreement()
	peak, err := process.PeakResidentBytes(w.agent.PID())
	w.Must(err)
	t.Logf("the agent took up to %d MiB for %d objects of %d KiB", peak>>20, largeObjects, largeData>>10)
	if peak > largeMemory {
		t.Errorf("the agent took %d MiB, want at most %d", peak>>20, largeMemory>>20)
	}
}
