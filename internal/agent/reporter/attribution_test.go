package reporter

import (
	"fmt"
	"strings"
	"testing"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

// The health of a Pod counts for the workload that its label names, also after the label has changed.
func TestReporter_PodChangesWorkload_HealthFollows(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shared.reader, quick())
	w.create(configMap("conf"))
	from, to := w.track("from", "v1 ConfigMap conf"), w.track("to", "v1 ConfigMap conf")
	w.expectStatus(from, "Healthy")
	w.expectStatus(to, "Healthy")
	label := func(wl target.Workload) string {
		return fmt.Sprintf(`{"metadata": {"labels": {"control-plane.threeport.io/workload-instance": "%d"}}}`, wl.Instance.ID)
	}
	p := w.create(pod("web"))
	w.patch(p, label(from))
	w.patchStatus(p, `{"status": {"phase": "Failed", "reason": "Evicted"}}`)
	w.expectStatus(from, "Down")
	w.patch(p, label(to))
	w.expectStatus(to, "Down")
	w.expectStatus(from, "Healthy")
	w.remove(p)
	w.expectStatus(to, "Healthy")
	for _, wl := range []target.Workload{from, to} {
		w.targets.Forget(wl.Name)
	}
	w.eventually("nothing is left of the workloads", w.leftovers)
}

// A Pod that is first attributed by its label is assessed once after its owner is known: under the owner's resource.
func TestReporter_PodAttributedByLabelThenByOwner_AssessedOnce(t *testing.T) {
	t.Parallel()
	reader, name := user(t, `[{"apiGroups": ["", "apps", "batch"], "resources": ["pods", "events", "jobs", "deployments"], "verbs": ["list", "watch"]}]`)
	w := newWorld(t, reader, quick())
	d := w.create(deployment("web"))
	wl := w.track("wl", "apps/v1 Deployment web")
	rs := w.create(owned(replicaSet("web"), d))
	p := w.create(owned(pod("web"), rs))
	w.patch(p, fmt.Sprintf(`{"metadata": {"labels": {"control-plane.threeport.io/workload-instance": "%d"}}}`, wl.Instance.ID))
	w.patchStatus(p, `{"status": {"phase": "Failed", "reason": "Evicted"}}`)
	ref := target.Ref{Kind: "Pod", Namespace: w.namespace, Name: "web"}
	w.eventually("the Pod is attributed by its label", func() string {
		if ops := w.sink.operations(ref); len(ops) == 0 || ops[0].Attribution.Resource.Name != "" {
			return fmt.Sprint(ops)
		}
		return ""
	})
	w.allow(name, readAll)
	w.eventually("the Pod is attributed by its owners, and assessed once", func() string {
		// Health names the objects with the workload's label if they are not Healthy.
		_, _, message := w.reporter.Health(wl.Name)
		if pods := w.statuses(wl)[0].Pods; pods.Total != 1 || strings.Contains(message, "the label of the workload") {
			return fmt.Sprintf("%d pods are counted for the Deployment; %s", pods.Total, message)
		}
		ops := w.sink.operations(ref)
		if ops[len(ops)-1].Attribution.Resource.Name != "web" {
			return "it is not"
		}
		return ""
	})
	w.eventually("the operation that was offered because of the label is cancelled", func() string {
		return complain(!w.sink.isCancelled(w.sink.operations(ref)[0].Key()), "it is not")
	})
}
