package informers

import (
	"fmt"
	"testing"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

// A Pod that changes hands counts for the workload that it comes to, and no more for the one that it leaves.
func TestPodChangesHands(t *testing.T) {
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
	w.eventually("nothing to be left of the workloads", w.leftovers)
}

// A Pod that is known by its label before its owner is known is judged once, under its owner's resource.
func TestPodIsJudgedInOnePlace(t *testing.T) {
	reader, name := user(t, `[{"apiGroups": ["", "apps", "batch"], "resources": ["pods", "events", "jobs", "deployments"], "verbs": ["list", "watch"]}]`)
	w := newWorld(t, reader, quick())
	d := w.create(deployment("web"))
	wl := w.track("wl", "apps/v1 Deployment web")
	rs := w.create(owned(replicaSet("web"), d))
	p := w.create(owned(pod("web"), rs))
	w.patch(p, fmt.Sprintf(`{"metadata": {"labels": {"control-plane.threeport.io/workload-instance": "%d"}}}`, wl.Instance.ID))
	w.patchStatus(p, `{"status": {"phase": "Failed", "reason": "Evicted"}}`)
	ref := target.Ref{Kind: "Pod", Namespace: w.namespace, Name: "web"}
	w.eventually("the Pod to be claimed by its label", func() string {
		if ops := w.sink.operations(ref); len(ops) == 0 || ops[0].Attribution.Resource.Name != "" {
			return fmt.Sprint(ops)
		}
		return ""
	})
	w.allow(name, readAll)
	w.eventually("the Pod to be claimed through its owners, and judged there only", func() string {
		verdicts := w.watcher.board.judgements(wl.Name)
		if _, ok := verdicts[target.Ref{}]; ok || len(verdicts) != 1 {
			return fmt.Sprintf("the verdicts are %v", verdicts)
		}
		ops := w.sink.operations(ref)
		if ops[len(ops)-1].Attribution.Resource.Name != "web" {
			return "it is not"
		}
		return ""
	})
	w.eventually("what was offered because of the label to be withdrawn", func() string {
		return complain(!w.sink.withdrawn(w.sink.operations(ref)[0].Key()), "it is not")
	})
}
