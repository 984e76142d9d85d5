package faults

import (
	"os"
	"slices"
	"strings"
	"testing"

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
			d := w.deploy("web", configMap("kept"), configMap("changed"), configMap("deleted"), configMap("again"), configMap("twice"), deployment)
			for _, obj := range d.Objects {
				w.createEvent(w.get(obj), "before-"+obj.GetName())
			}
			set := w.createOwned(replicaSet, w.get(d.Objects[5]))
			w.awaitAgreement(waitTimeout)
			w.kill()
			if c.lost {
				w.must(os.RemoveAll(w.state))
			}
			sent, taken := w.proxy.count(anyRequest), len(w.proxy.accepted())

			w.change(d.Objects[1])
			w.remove(d.Objects[2])
			w.remove(d.Objects[3])
			w.createEvent(w.create(configMap("again")), "of-the-second")
			w.remove(d.Objects[4])
			w.create(configMap("twice"))
			w.remove(d.Objects[4])
			w.create(configMap("twice"))
			short := w.createOwned(pod, set)
			w.createEvent(short, "of-a-pod-that-came-and-went")
			w.remove(short)

			w.start()
			w.awaitAgreement(waitTimeout)
			for resource, want := range map[int]string{2: "DELETED", 3: "DELETED ADDED", 4: "DELETED ADDED"} {
				if got := w.operations(resource, taken); got != want {
					t.Errorf("the agent reported %[2]q for %[1]s afterwards, want %[3]q", d.Objects[resource].GetName(), got, want)
				}
			}
			for _, r := range w.proxy.sent(anyRequest)[sent:] {
				if r.writesTo(rowPath(d, 0)) || r.contains("before-") {
					t.Errorf("the agent sent %s %s %.200s, which the control plane already had", r.method, r.path, r.writes)
				}
			}
		})
	}
}

// operations returns the operations on a resource after the first writes.
func (w *world) operations(resource, after int) string {
	w.Helper()
	var out []string
	for _, write := range w.proxy.accepted()[after:] {
		if write.Path == rowPath(w.deployed[0], resource) {
			out = append(out, operationIn(write.Body))
		}
	}
	return strings.Join(slices.Compact(out), " ")
}

// A whole workload is deleted while the agent is down, and deployed again as another instance with objects of the same
// names.
func TestAgent_WorkloadDeletedWhileDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.deploy("web", configMap("one"), configMap("two"))
	w.createEvent(w.get(d.Objects[0]), "first")
	w.awaitAgreement(waitTimeout)
	w.kill()
	w.must(w.upstream.Delete(w.ctx, d))
	w.start()
	w.eventually(waitTimeout, "the deletions in the control plane", func() error {
		for i := range d.Objects {
			if err := w.expectOperation(i, threeport.OperationDeleted); err != nil {
				return err
			}
		}
		return nil
	})
	w.awaitAgreement(waitTimeout)
}

// An object is created and deleted while the agent is down. Only its Event remains, and another object has its name.
func TestAgent_EventOfUnseenIncarnation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.deploy("web", configMap("conf"))
	w.awaitAgreement(waitTimeout)
	w.kill()
	w.remove(d.Objects[0])
	w.createEvent(w.create(configMap("conf")), "of-the-second")
	w.remove(d.Objects[0])
	w.createEvent(w.create(configMap("conf")), "of-the-third")
	w.start()
	w.awaitAgreement(waitTimeout)
}
