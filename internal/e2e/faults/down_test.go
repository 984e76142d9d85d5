package faults

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/threeport/threeport-agent/internal/e2e/proxy"
	"github.com/threeport/threeport-agent/internal/e2e/world"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// While the agent is down, objects are changed, deleted and recreated, and a Pod is created and deleted.
func TestAgent_ChangesWhileDown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reason string
		lost   bool
	}{{reason: "with state"}, {reason: "with lost state", lost: true}} {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			d := w.deploy("web", world.ConfigMap("kept"), world.ConfigMap("changed"), world.ConfigMap("deleted"), world.ConfigMap("again"), world.ConfigMap("twice"), deployment)
			for _, obj := range d.Objects {
				w.createEvent(w.Get(obj), "before-"+obj.GetName())
			}
			set := w.CreateOwned(replicaSet, w.Get(d.Objects[5]))
			w.awaitAgreement()
			w.kill()
			if c.lost {
				w.Must(os.RemoveAll(w.state))
			}
			sent, taken := w.proxy.Count(proxy.Any), len(w.proxy.Accepted())

			w.change(d.Objects[1])
			w.Remove(d.Objects[2])
			w.Remove(d.Objects[3])
			w.createEvent(w.Create(world.ConfigMap("again")), "of-the-second")
			w.Remove(d.Objects[4])
			w.Create(world.ConfigMap("twice"))
			w.Remove(d.Objects[4])
			w.Create(world.ConfigMap("twice"))
			short := w.CreateOwned(pod, set)
			w.createEvent(short, "of-a-pod-that-came-and-went")
			w.Remove(short)

			w.start()
			w.awaitAgreement()
			for resource, want := range map[int]string{2: "DELETED", 3: "DELETED ADDED", 4: "DELETED ADDED"} {
				if got := w.operations(resource, taken); got != want {
					t.Errorf("the agent reported %[2]q for %[1]s afterwards, want %[3]q", d.Objects[resource].GetName(), got, want)
				}
			}
			for _, r := range w.proxy.Sent(proxy.Any)[sent:] {
				if r.WritesTo(world.RowPath(d, 0)) || r.Contains("before-") {
					t.Errorf("the agent sent %s %s %.200s, which the control plane already had", r.Method, r.Path, r.Writes)
				}
			}
		})
	}
}

// operations returns the operations on a resource after the first writes.
func (w *faultWorld) operations(resource, after int) string {
	w.Helper()
	var out []string
	for _, write := range w.proxy.Accepted()[after:] {
		if write.Path == world.RowPath(w.deployed[0], resource) {
			out = append(out, world.OperationOf(write))
		}
	}
	return strings.Join(slices.Compact(out), " ")
}

// A whole workload is deleted while the agent is down, and deployed again as another instance with objects of the same
// names.
func TestAgent_WorkloadDeletedWhileDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.deploy("web", world.ConfigMap("one"), world.ConfigMap("two"))
	w.createEvent(w.Get(d.Objects[0]), "first")
	w.awaitAgreement()
	w.kill()
	w.Must(w.Upstream.Delete(w.Ctx, d))
	w.start()
	w.Eventually("the deletions in the control plane", func() error {
		for i := range d.Objects {
			if err := w.expectOperation(i, threeport.OperationDeleted); err != nil {
				return err
			}
		}
		return nil
	})
	w.awaitAgreement()
}

// An object is created and deleted while the agent is down. Only its Event remains, and another object has its name.
func TestAgent_EventOfUnseenIncarnation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.deploy("web", world.ConfigMap("conf"))
	w.awaitAgreement()
	w.kill()
	w.Remove(d.Objects[0])
	w.createEvent(w.Create(world.ConfigMap("conf")), "of-the-second")
	w.Remove(d.Objects[0])
	w.createEvent(w.Create(world.ConfigMap("conf")), "of-the-third")
	w.start()
	w.awaitAgreement()
}
