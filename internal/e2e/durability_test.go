package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/e2e/proxy"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
	"github.com/threeport/threeport-agent/internal/e2e/world"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// restart starts the agent again with its state, after it was killed.
func (w *agentWorld) restart(state string) {
	w.Helper()
	w.startAgent("--state-dir=" + state)
}

func TestAgent_ObjectDeletedWhileDown_ReportsAtStart(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	w := newWorld(t, "--state-dir="+state)
	d := w.Deploy("web", world.ConfigMap("kept"), world.ConfigMap("deleted"), world.ConfigMap("again"), deployment("web", 2))
	w.ExpectStatus(d, "Healthy")
	w.AwaitAgreement(world.Expected(d)...)
	before := len(w.proxy.Sent(proxy.Any))
	w.agent.Kill()

	w.Remove(d.Objects[1])
	w.Remove(d.Objects[2])
	w.create(world.ConfigMap("again"))
	w.restart(state)
	w.ExpectOperation(d, 1, threeport.OperationDeleted)
	w.ExpectOperation(d, 2, threeport.OperationAdded)
	w.AwaitAgreement(world.Expected(d)...)

	var operations []string
	for _, r := range w.proxy.Requested(world.RowPath(d, 2))[1:] {
		operations = append(operations, world.OperationOf(r))
	}
	if got := strings.Join(operations, ", "); got != "DELETED, ADDED" {
		t.Errorf("the agent reported %s for the recreated object, want DELETED, ADDED", got)
	}
	for _, r := range w.proxy.Sent(proxy.Any)[before:] {
		if r.WritesTo(world.RowPath(d, 0)) || strings.Contains(string(r.Body), "Scheduled") {
			t.Errorf("the restarted agent repeated %s %s %.300s, which the control plane already had", r.Method, r.Path, r.Body)
		}
	}
}

// After restarts, a recreated object must not be taken for the deleted one.
func TestAgent_ObjectRecreated_SurvivesRestarts(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	w := newWorld(t, "--state-dir="+state)
	d := w.Deploy("web", world.ConfigMap("again"), deployment("web", 2))
	w.AwaitAgreement(world.Expected(d)...)
	for _, manifest := range []string{world.ConfigMap("again"), deployment("web", 2)} {
		w.Remove(w.Object(manifest))
		w.create(manifest)
	}
	w.ExpectStatus(d, "Healthy")
	w.AwaitAgreement(world.Expected(d)...)
	before := len(w.proxy.Requested(world.RowPath(d, 0)))
	for range 8 {
		w.Must(w.agent.Stop(world.Timeout))
		w.restart(state)
		w.Eventually("readiness of the agent", func() error { return w.agent.Ready(w.Ctx) })
		w.ExpectState(d, 0, v1alpha1.ResourcePresent, "")
		w.ExpectState(d, 1, v1alpha1.ResourcePresent, "")
	}
	if more := w.proxy.Requested(world.RowPath(d, 0))[before:]; len(more) > 0 {
		t.Errorf("after restarts the agent reported %s of an unchanged object", world.OperationOf(more[0]))
	}
	w.ExpectStatus(d, "Healthy")
	w.AwaitAgreement(world.Expected(d)...)
}

func TestAgent_Killed_LosesAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	w := newWorld(t, "--state-dir="+state)
	d := w.Deploy("web", deployment("web", 3))
	for i := range 10 {
		w.patch(d.Objects[0], fmt.Sprintf(`{"spec":{"template":{"metadata":{"labels":{"turn":"%d"}}}}}`, i))
		w.Eventually(fmt.Sprintf("more than %d reports of Events", i), func() error {
			if n := len(w.proxy.Requested("/v0/workload-events")); n <= i {
				return fmt.Errorf("the agent reported %d Events", n)
			}
			return nil
		})
		w.agent.Kill()
		w.restart(state)
	}
	w.ExpectStatus(d, "Healthy")
	w.AwaitAgreement(world.Expected(d)...)
}

func TestAgent_StateLost_RepeatsNothing(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	w := newWorld(t, "--state-dir="+state)
	d := w.Deploy("web", world.ConfigMap("conf"), deployment("web", 3))
	w.ExpectStatus(d, "Healthy")
	w.AwaitAgreement(world.Expected(d)...)
	w.agent.Kill()
	w.Must(os.Remove(filepath.Join(state, "state.db")))
	w.restart(state)
	w.patch(d.Objects[1], `{"spec":{"template":{"metadata":{"labels":{"turn":"1"}}}}}`)
	w.ExpectStatus(d, "Healthy")
	w.AwaitAgreement(world.Expected(d)...)
}

// requestByOther sends a request to the control plane as another client would.
func (w *agentWorld) requestByOther(method, path, body string) {
	w.Helper()
	req, err := http.NewRequestWithContext(w.Ctx, method, w.Upstream.API.URL+path, strings.NewReader(body))
	w.Must(err)
	req.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(req)
	w.Must(err)
	defer answer.Body.Close() //nolint:errcheck // only the code matters
	if answer.StatusCode >= 300 {
		w.Fatalf("%s %s: HTTP %d", method, path, answer.StatusCode)
	}
}

func TestResync_RowsChangedByOthers_AreRestored(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "--resync-interval=5s")
	d := w.Deploy("web", world.ConfigMap("conf"), deployment("web", 1))
	w.ExpectStatus(d, "Healthy")
	w.AwaitAgreement(world.Expected(d)...)
	events := w.clusterRows()
	gone, changed := events[0], events[1]

	w.requestByOther(http.MethodDelete, fmt.Sprintf("/v0/workload-events/%d", *gone.ID), "")
	w.requestByOther(http.MethodPatch, fmt.Sprintf("/v0/workload-events/%d", *changed.ID), `{"Message":"by hand"}`)
	w.requestByOther(http.MethodPatch, world.RowPath(d, 0), `{"LastOperation":"DELETED"}`)
	w.requestByOther(http.MethodPatch, world.RowPath(d, 1), `{"RuntimeDefinition":{"by":"hand"}}`)
	changes := w.expectStatusRepaired(d)
	w.AwaitAgreement(world.Expected(d)...)
	for kind, repairs := range map[string]struct{ least, most int }{
		"operation": {least: 2, most: 2}, "event": {least: 2, most: 2}, "status": {least: 1, most: changes}, "watch": {},
	} {
		got := w.sum(fmt.Sprintf("threeport_agent_audit_repairs_total{kind=%q", kind))
		if got < repairs.least || got > repairs.most {
			t.Errorf("the resync made %d repairs of kind %s, want %d to %d", got, kind, repairs.least, repairs.most)
		}
	}
}

// expectStatusRepaired changes a workload's status until the resync repairs it. The agent may also report the status for
// another reason, so several changes may be needed. It returns their number.
func (w *agentWorld) expectStatusRepaired(d upstream.Deployed) (changes int) {
	w.Helper()
	w.Eventually("the resync to repair the status", func() error {
		status, err := w.Upstream.API.Status(w.Ctx, upstream.WorkloadInstances, d.InstanceID)
		if err != nil || status != "Healthy" {
			return errors.Join(err, fmt.Errorf("the status is %q, want Healthy", status))
		}
		if w.sum(`threeport_agent_audit_repairs_total{kind="status"`) > 0 {
			return nil
		}
		w.requestByOther(http.MethodPatch, fmt.Sprintf("/v0/workload-instances/%d", d.InstanceID), `{"Status":"Down"}`)
		changes++
		return errors.New("the resync has repaired no status")
	})
	return changes
}
