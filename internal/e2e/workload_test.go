package e2e

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/e2e/oracle"
	"github.com/threeport/threeport-agent/internal/e2e/proxy"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
	"github.com/threeport/threeport-agent/internal/e2e/world"
	"github.com/threeport/threeport-agent/internal/threeport"
)

func TestWorkload_UnchangedSpec_SendsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.Deploy("web", world.ConfigMap("conf"), deployment("web", 2))
	w.ExpectStatus(d, "Healthy")
	w.awaitStatusRow(d, "Healthy")
	w.Eventually("the last Event of each pod to have a row", func() error {
		started := 0
		for _, row := range w.clusterRows() {
			if *row.Reason == "Started" {
				started++
			}
		}
		if started != 2 {
			return fmt.Errorf("%d pods have a row of Started, want 2", started)
		}
		return nil
	})
	w.AwaitAgreement(world.Expected(d)...)
	w.ExpectCondition(d, v1alpha1.ConditionDelivered, metav1.ConditionTrue, "")
	w.awaitSilence()
	watches, sent := w.watches(), len(w.proxy.Sent(proxy.Any))
	for i := range 50 {
		w.patch(world.CustomResource(d), fmt.Sprintf(`{"metadata":{"labels":{"touched":"%d"}}}`, i))
		w.patch(world.CustomResource(d), fmt.Sprintf(`{"spec":{"workloadInstanceId":%d}}`, d.InstanceID))
	}
	// The agent handles this change after all earlier ones, in each of its queues.
	more := w.Deploy("more", world.ConfigMap("more"))
	w.ExpectStatus(more, "Healthy")
	w.AwaitAgreement(world.Expected(d, more)...)
	for _, r := range w.proxy.Sent(proxy.Any)[sent:] {
		if r.IsHeartbeat() {
			continue
		}
		ofMore := strings.HasPrefix(r.Path, world.RowPath(more, 0)) || strings.Contains(r.Path+string(r.Body), strconv.FormatInt(more.InstanceID, 10))
		if !ofMore || strings.Contains(string(r.Body), strconv.FormatInt(d.InstanceID, 10)) {
			t.Errorf("after an unchanged spec was written, the agent sent %s %s %.300s", r.Method, r.Path, r.Body)
		}
	}
	if now := w.watches(); now != watches {
		t.Errorf("the agent had %d watches before the writes and has %d after them", watches, now)
	}
}

// awaitSilence waits until the agent has sent nothing for three times the delay of a status or a tree.
func (w *agentWorld) awaitSilence() {
	w.Helper()
	const held = 5 * time.Second // StatusInterval of the reporter's default configuration
	sent, since := -1, time.Now()
	w.Eventually("the agent to send nothing more", func() error {
		reports := slices.DeleteFunc(slices.Clone(w.proxy.Sent(proxy.Any)), proxy.Request.IsHeartbeat)
		if len(reports) != sent {
			sent, since = len(reports), time.Now()
		}
		if silent := time.Since(since); silent < 3*held {
			return fmt.Errorf("the agent sent its last report %s ago, want %s", silent, 3*held)
		}
		return nil
	})
}

func TestWorkload_ChangedSpec_ChangesReports(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.Deploy("list", world.ConfigMap("kept"), world.ConfigMap("dropped"))
	w.AwaitAgreement(world.Expected(d)...)
	added := w.Object(world.ConfigMap("added"))
	_, err := w.Upstream.Create(w.Ctx, added)
	w.Must(err)
	extra, err := w.Upstream.RegisterResource(w.Ctx, d, added)
	w.Must(err)

	changed := d
	changed.Resources = []v1alpha1.WorkloadResourceInstance{d.Resources[0], extra}
	w.Must(w.Upstream.Declare(w.Ctx, changed))
	w.AwaitAgreement(world.Expected(changed)...)
	before := len(w.proxy.Requested(world.RowPath(d, 1)))
	w.patch(d.Objects[1], `{"data":{"key":"after it was dropped"}}`)
	w.patch(added, `{"data":{"key":"after it was added"}}`)
	w.AwaitAgreement(world.Expected(changed)...)
	if now := len(w.proxy.Requested(world.RowPath(d, 1))); now != before {
		t.Errorf("the removed resource was reported %d more times", now-before)
	}
}

func TestWorkload_Deleted_ReportsAndReleases(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.Deploy("web", world.ConfigMap("conf"), deployment("web", 2))
	w.ExpectStatus(d, "Healthy")
	w.AwaitAgreement(world.Expected(d)...)
	if finalizers := w.Get(world.CustomResource(d)).GetFinalizers(); !slices.Contains(finalizers, v1alpha1.Finalizer) {
		t.Errorf("the finalizers are %v, want %s", finalizers, v1alpha1.Finalizer)
	}
	w.Must(w.Upstream.Delete(w.Ctx, d))
	w.expectGone(d)
	w.ExpectOperation(d, 0, threeport.OperationDeleted)
	w.ExpectOperation(d, 1, threeport.OperationDeleted)
	// Without workloads the agent watches only ThreeportWorkloads.
	w.Eventually("the agent to stop all informers", func() error {
		if n := w.watches(); n != 0 {
			return fmt.Errorf("the agent has %d informers", n)
		}
		return nil
	})
}

func TestWorkload_Released_SendsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d, other := w.Deploy("gone", world.ConfigMap("conf")), w.Deploy("other", world.ConfigMap("other"))
	w.AwaitAgreement(world.Expected(d, other)...)
	w.Remove(world.CustomResource(d))
	w.expectGone(d)
	_, err := w.agent.WaitFor(w.Ctx, "Released workload") // The log line follows just after.
	w.Must(err)
	sent := len(w.proxy.Requested(world.RowPath(d, 0)))
	w.patch(d.Objects[0], `{"data":{"key":"changed"}}`)
	w.patch(other.Objects[0], `{"data":{"key":"changed"}}`)
	w.AwaitAgreement(oracle.Expected{Deployed: other}, oracle.Expected{Deployed: d, Released: true})
	if now := len(w.proxy.Requested(world.RowPath(d, 0))); now != sent {
		t.Errorf("an object of a released workload was reported %d times", now-sent)
	}
}

func TestEvents_ObjectMoves_RowKeepsInstance(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.Deploy("web", deployment("web", 1))
	w.ExpectStatus(d, "Healthy")
	w.AwaitAgreement(world.Expected(d)...)
	before := w.allEvents()
	w.Remove(world.CustomResource(d))
	w.expectGone(d)
	// The same objects in another instance.
	again, err := w.Upstream.Register(w.Ctx, upstream.Workload{Name: d.Name, Type: v1alpha1.WorkloadTypeHelmInstance, Objects: d.Objects})
	w.Must(err)
	w.Must(w.Upstream.Declare(w.Ctx, again))
	w.ExpectHelmStatus(again, "Healthy")
	w.patch(d.Objects[0], `{"spec":{"replicas":2}}`)
	w.Eventually("new Events under the new instance", func() error {
		rows := w.allEvents()
		fresh := 0
		for _, row := range rows {
			if row.HelmWorkloadInstanceID != nil && *row.HelmWorkloadInstanceID == again.InstanceID {
				fresh++
			}
			if row.HelmWorkloadInstanceID != nil && row.WorkloadInstanceID != nil {
				return fmt.Errorf("the row of Event %s has two instances", *row.Reason)
			}
		}
		if fresh < 3 || len(rows)-fresh != len(before) {
			return fmt.Errorf("%d of %d rows are in the new instance, want at least 3 and all but %d", fresh, len(rows), len(before))
		}
		return nil
	})
}

// expectGone expects that a deleted ThreeportWorkload is released before the agent's grace period of 30 s ends. After the
// grace period the agent would release it even without its last reports.
func (w *agentWorld) expectGone(d upstream.Deployed) {
	w.Helper()
	const within = 20 * time.Second
	resource, err := w.Upstream.Resource(world.CustomResource(d))
	w.Must(err)
	w.EventuallyWithin(within, "ThreeportWorkload "+d.Name+" to disappear", func() error {
		if _, err := resource.Get(w.Ctx, d.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the API server still has it: %w", err)
		}
		return nil
	})
}

// watches returns the number of the agent's informers from its metrics.
func (w *agentWorld) watches() int {
	w.Helper()
	return w.sum("threeport_agent_watches")
}
