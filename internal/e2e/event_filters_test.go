package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/threeport/threeport-agent/internal/agent/outbox"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
	"github.com/threeport/threeport-agent/internal/e2e/world"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// emit creates an Event about the first object of a workload.
func (w *agentWorld) emit(d upstream.Deployed, reason string, n int) {
	w.Helper()
	w.Create(fmt.Sprintf(`
apiVersion: v1
kind: Event
metadata: {name: %s.%d}
involvedObject: {apiVersion: v1, kind: ConfigMap, name: conf, namespace: %s, uid: %s}
type: Normal
reason: %s
message: it happened
lastTimestamp: "2026-01-02T03:04:%02dZ"
`, strings.ToLower(reason), n, w.Namespace, w.Get(d.Objects[0]).GetUID(), reason, n))
}

// awaitOneRow waits for the row of a reason, and returns it.
func (w *agentWorld) awaitOneRow(reason string) (found threeport.WorkloadEvent) {
	w.Helper()
	w.Eventually("one row of "+reason, func() error {
		n := 0
		for _, row := range w.allEvents() {
			if *row.Reason == reason {
				found, n = row, n+1
			}
		}
		if n != 1 {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	})
	return found
}

// Dropped Events have no rows, but one that counts them, also after the agent was killed. Other filters take effect without a restart.
func TestEventFilters_DroppedEvents_AreCounted(t *testing.T) {
	t.Parallel()
	w := newWorldWithoutAgent(t)
	file := filepath.Join(t.TempDir(), "filters.yaml")
	filter := func(reason string) {
		t.Helper()
		text := fmt.Sprintf("filters:\n- {name: noise, if: event.reason == %q, action: drop}\n", reason)
		w.Must(os.WriteFile(file, []byte(text), 0o600))
	}
	filter("Noise")
	state := t.TempDir()
	flags := []string{"--event-filters=" + file, "--state-dir=" + state}
	w.startAgent(flags...)
	d := w.Deploy("conf", world.ConfigMap("conf"))
	w.ExpectStatus(d, "Healthy")
	for n := range 3 {
		w.emit(d, "Noise", n)
	}
	w.emit(d, "Signal", 3)
	w.awaitOneRow("Signal")
	dropped := func(want float64) {
		t.Helper()
		w.Eventually(fmt.Sprintf("%v dropped Events in the metric", want), func() error {
			got, err := w.agent.Metric(w.Ctx, "threeport_agent_events_filtered_total")
			if err == nil && got != want {
				err = fmt.Errorf("it is %v", got)
			}
			return err
		})
	}
	dropped(3)
	w.Eventually("the count in the state file", func() error { // the agent would count again what it did not save
		raw, err := os.ReadFile(filepath.Join(state, "state.db"))
		if err == nil && !bytes.Contains(raw, []byte(`"Normal":3`)) {
			err = errors.New("it is not there")
		}
		return err
	})
	w.KillAgent(w.agent)
	w.startAgent(flags...)
	w.emit(d, "Noise", 4)
	dropped(1)

	filter("Signal")
	_, err := w.agent.WaitFor(w.Ctx, "Files loaded")
	w.Must(err)
	w.emit(d, "Signal", 5)
	dropped(2)
	w.emit(d, "Loud", 6)
	w.awaitOneRow("Loud")

	w.Must(w.agent.Stop(world.Timeout)) // it sends the counts that wait
	row := w.awaitOneRow(outbox.ReasonEventsFiltered)
	if want := `5 Events (5 Normal, 0 Warning) that happened between 2026-01-02T03:04:00Z and 2026-01-02T03:04:05Z were left out by the filter "noise"`; !strings.HasPrefix(*row.Message, want) {
		t.Errorf("the row's message is %q, want it to begin with %q", *row.Message, want)
	}
	for _, row := range w.allEvents() {
		if *row.Reason == "Noise" {
			t.Errorf("there is a row of a dropped Event: %s", *row.RuntimeEventUID)
		}
	}
}

// Objects that a filter drops are not in the tree, which has their number. The objects below them are. A changed filter takes effect
// without a restart, and the health of the workload does not depend on it.
func TestEventFilters_DroppedObjects_AreCounted(t *testing.T) {
	t.Parallel()
	if *strictV0 { // v0 has no trees
		return
	}
	w := newWorldWithoutAgent(t)
	file := filepath.Join(t.TempDir(), "filters.yaml")
	filter := func(condition string) {
		t.Helper()
		w.Must(os.WriteFile(file, fmt.Appendf(nil, "filters:\n- {name: noise, of: objects, if: %s, action: drop}\n", condition), 0o600))
	}
	filter(`object.kind == "ReplicaSet"`)
	w.startAgent("--event-filters=" + file)
	d := w.Deploy("web", deployment("web", 2))
	w.ExpectStatus(d, "Healthy")
	expect := func(filtered int64, want ...string) {
		t.Helper()
		w.Eventually(fmt.Sprintf("a tree of %v", want), func() error {
			detail, err := w.detail(d)
			if err != nil {
				return err
			}
			var kinds []string
			for _, o := range detail.Objects {
				if o.Gone != nil {
					continue
				}
				kind := o.Object.Kind
				if kind == "Pod" && o.Owner != "" {
					kind = "owned " + kind
				}
				kinds = append(kinds, kind)
			}
			slices.Sort(kinds)
			if !slices.Equal(kinds, want) || detail.Workload.Filtered != filtered || detail.Workload.Status != "Healthy" {
				return fmt.Errorf("it has %v, %d objects are filtered, and the workload is %s", kinds, detail.Workload.Filtered, detail.Workload.Status)
			}
			return nil
		})
	}
	expect(1, "Deployment", "owned Pod", "owned Pod")
	filter(`object.kind == "Pod" || object.kind == "ReplicaSet"`)
	expect(3, "Deployment")
	filter(`object.kind == "None"`)
	expect(0, "Deployment", "ReplicaSet", "owned Pod", "owned Pod")
}
