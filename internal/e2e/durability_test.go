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
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// restart starts the agent again with its state, after it was killed.
func (w *world) restart(state string) {
	w.Helper()
	w.startAgent("--state-dir=" + state)
}

func TestAgent_ObjectDeletedWhileDown_ReportsAtStart(t *testing.T) {
	state := t.TempDir()
	w := newWorld(t, "--state-dir="+state)
	d := w.deploy("web", configMap("kept"), configMap("deleted"), configMap("again"), deployment("web", 2))
	w.expectStatus(d, "Healthy")
	w.awaitAgreement(tracked(d)...)
	before := len(w.proxy.sent())
	w.agent.Kill()

	w.must(w.upstream.DeleteObject(w.ctx, d.Objects[1]))
	w.must(w.upstream.DeleteObject(w.ctx, d.Objects[2]))
	w.create(configMap("again"))
	w.restart(state)
	w.expectOperation(d, 1, threeport.OperationDeleted)
	w.expectOperation(d, 2, threeport.OperationAdded)
	w.awaitAgreement(tracked(d)...)

	var said []string
	for _, r := range w.proxy.writes(rowPath(d, 2))[1:] {
		said = append(said, operationIn(r))
	}
	if got := strings.Join(said, ", "); got != "DELETED, ADDED" {
		t.Errorf("the agent reported %s of the recreated object", got)
	}
	for _, r := range w.proxy.sent()[before:] {
		if r.writesTo(rowPath(d, 0)) || strings.Contains(string(r.body), "Scheduled") {
			t.Errorf("the restarted agent repeated %s %s %.300s, which the control plane already had", r.method, r.path, r.body)
		}
	}
}

// After restarts, a recreated object must not be taken for the deleted one.
func TestAgent_ObjectRecreated_SurvivesRestarts(t *testing.T) {
	state := t.TempDir()
	w := newWorld(t, "--state-dir="+state)
	d := w.deploy("web", configMap("again"), deployment("web", 2))
	w.awaitAgreement(tracked(d)...)
	for _, manifest := range []string{configMap("again"), deployment("web", 2)} {
		w.must(w.upstream.DeleteObject(w.ctx, w.place(object(manifest))))
		w.create(manifest)
	}
	w.expectStatus(d, "Healthy")
	w.awaitAgreement(tracked(d)...)
	before := len(w.proxy.writes(rowPath(d, 0)))
	for range 8 {
		w.must(w.agent.Stop(waitTimeout))
		w.restart(state)
		w.eventually(waitTimeout, "readiness", func() error {
			if page, code := w.fetch(w.probes + "/readyz"); code != http.StatusOK {
				return fmt.Errorf("HTTP %d: %s", code, page)
			}
			return nil
		})
		w.expectState(d, 0, v1alpha1.ResourcePresent, "")
		w.expectState(d, 1, v1alpha1.ResourcePresent, "")
	}
	if more := w.proxy.writes(rowPath(d, 0))[before:]; len(more) > 0 {
		t.Errorf("after restarts the agent reported %s of an unchanged object", operationIn(more[0]))
	}
	w.expectStatus(d, "Healthy")
	w.awaitAgreement(tracked(d)...)
}

func TestAgent_Killed_LosesAndRepeatsNothing(t *testing.T) {
	state := t.TempDir()
	w := newWorld(t, "--state-dir="+state)
	d := w.deploy("web", deployment("web", 3))
	for i := range 10 {
		w.patch(d.Objects[0], fmt.Sprintf(`{"spec":{"template":{"metadata":{"labels":{"turn":"%d"}}}}}`, i))
		w.eventually(waitTimeout, "the agent to report something", func() error {
			if n := len(w.proxy.writes("/v0/workload-events")); n <= i {
				return fmt.Errorf("%d Events were reported", n)
			}
			return nil
		})
		w.agent.Kill()
		w.restart(state)
	}
	w.expectStatus(d, "Healthy")
	w.awaitAgreement(tracked(d)...)
}

func TestAgent_StateLost_RepeatsNothing(t *testing.T) {
	state := t.TempDir()
	w := newWorld(t, "--state-dir="+state)
	d := w.deploy("web", configMap("conf"), deployment("web", 3))
	w.expectStatus(d, "Healthy")
	w.awaitAgreement(tracked(d)...)
	w.agent.Kill()
	w.must(os.Remove(filepath.Join(state, "state.db")))
	w.restart(state)
	w.patch(d.Objects[1], `{"spec":{"template":{"metadata":{"labels":{"turn":"1"}}}}}`)
	w.expectStatus(d, "Healthy")
	w.awaitAgreement(tracked(d)...)
}

// requestByOther sends a request to the control plane as another client would.
func (w *world) requestByOther(method, path, body string) {
	w.Helper()
	req, err := http.NewRequestWithContext(w.ctx, method, w.api.URL+path, strings.NewReader(body))
	w.must(err)
	req.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(req)
	w.must(err)
	defer answer.Body.Close() //nolint:errcheck // only the code matters
	if answer.StatusCode >= 300 {
		w.Fatalf("%s %s: HTTP %d", method, path, answer.StatusCode)
	}
}

func TestResync_RowsChangedByOthers_AreRestored(t *testing.T) {
	w := newWorld(t, "--resync-interval=5s")
	d := w.deploy("web", configMap("conf"), deployment("web", 1))
	w.expectStatus(d, "Healthy")
	w.awaitAgreement(tracked(d)...)
	events := w.clusterRows()
	gone, changed := events[0], events[1]

	w.requestByOther(http.MethodDelete, fmt.Sprintf("/v0/workload-events/%d", *gone.ID), "")
	w.requestByOther(http.MethodPatch, fmt.Sprintf("/v0/workload-events/%d", *changed.ID), `{"Message":"by hand"}`)
	w.requestByOther(http.MethodPatch, rowPath(d, 0), `{"LastOperation":"DELETED"}`)
	w.requestByOther(http.MethodPatch, rowPath(d, 1), `{"RuntimeDefinition":{"by":"hand"}}`)
	changes := w.expectStatusRepaired(d)
	w.awaitAgreement(tracked(d)...)
	for kind, repairs := range map[string]struct{ least, most int }{
		"operation": {least: 2, most: 2}, "event": {least: 2, most: 2}, "status": {least: 1, most: changes}, "watch": {},
	} {
		got := w.sum(fmt.Sprintf("threeport_agent_audit_repairs_total{kind=%q", kind))
		if got < repairs.least || got > repairs.most {
			t.Errorf("there were %d repairs of kind %s, want %d to %d", got, kind, repairs.least, repairs.most)
		}
	}
}

// expectStatusRepaired changes a workload's status until the resync repairs it. The agent may also report the status for
// another reason, so several changes may be needed. It returns their number.
func (w *world) expectStatusRepaired(d upstream.Deployed) (changes int) {
	w.Helper()
	w.eventually(waitTimeout, "the status to be repaired", func() error {
		status, err := w.api.Status(w.ctx, upstream.WorkloadInstances, d.InstanceID)
		if err != nil || status != "Healthy" {
			return errors.Join(err, fmt.Errorf("it is %q", status))
		}
		if w.sum(`threeport_agent_audit_repairs_total{kind="status"`) > 0 {
			return nil
		}
		w.requestByOther(http.MethodPatch, fmt.Sprintf("/v0/workload-instances/%d", d.InstanceID), `{"Status":"Down"}`)
		changes++
		return errors.New("the status was not repaired")
	})
	return changes
}
