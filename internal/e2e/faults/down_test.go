package faults

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/controlplane"
)

// While the agent is down objects are changed, deleted and created again, and a Pod comes and goes.
func TestChangesWhileDown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reason string
		lost   bool
	}{{"with state", false}, {"with lost state", true}} {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			d := w.deploy("web", configMap("kept"), configMap("changed"), configMap("deleted"), configMap("again"), configMap("twice"), deployment)
			for _, obj := range d.Objects {
				w.happen(w.get(obj), "before-"+obj.GetName())
			}
			set := w.createOwned(replicaSet, w.get(d.Objects[5]))
			w.agree(30 * time.Second)
			w.kill()
			if c.lost {
				w.must(os.RemoveAll(w.state))
			}
			sent := w.proxy.count(anyRequest)

			w.change(d.Objects[1])
			w.remove(d.Objects[2])
			w.remove(d.Objects[3])
			w.happen(w.create(configMap("again")), "of-the-second")
			w.remove(d.Objects[4])
			w.create(configMap("twice"))
			w.remove(d.Objects[4])
			w.create(configMap("twice"))
			short := w.createOwned(pod, set)
			w.happen(short, "of-a-pod-that-came-and-went")
			w.remove(short)

			w.start()
			w.agree(60 * time.Second)
			for resource, want := range map[int]string{2: "DELETED", 3: "DELETED ADDED", 4: "DELETED ADDED"} {
				if got := w.operations(resource, sent); got != want {
					t.Errorf("of %s the agent said %q afterwards, expected %q", d.Objects[resource].GetName(), got, want)
				}
			}
			for _, r := range w.proxy.sent(anyRequest)[sent:] {
				if r.write() && (strings.HasPrefix(r.path, rowPath(d, 0)) || strings.Contains(string(r.body), "before-")) {
					t.Errorf("the agent sent %s %s %.200s, which the control plane has", r.method, r.path, r.body)
				}
			}
		})
	}
}

// operations returns what the control plane was told of a resource after a number of requests.
func (w *world) operations(resource, after int) string {
	w.Helper()
	var out []string
	for _, r := range w.proxy.sent(anyRequest)[after:] {
		if r.write() && r.accepted && r.path == rowPath(w.deployed[0], resource) {
			out = append(out, operationIn(r.body))
		}
	}
	return strings.Join(slices.Compact(out), " ")
}

// A whole workload is deleted while the agent is down, and comes back as another instance with objects of the same
// names.
func TestWorkloadDeletedWhileDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.deploy("web", configMap("one"), configMap("two"))
	w.happen(w.get(d.Objects[0]), "first")
	w.agree(30 * time.Second)
	w.kill()
	w.must(w.upstream.Delete(w.ctx, d))
	w.start()
	w.eventually(60*time.Second, "the deletions in the control plane", func() error {
		for i := range d.Objects {
			if err := w.hasOperation(i, controlplane.OperationDeleted); err != nil {
				return err
			}
		}
		return nil
	})
	w.agree(30 * time.Second)
}

// Of an object that came and went while the agent was down nothing is left but an Event, and its name, which another
// object bears now.
func TestEventOfUnseenIncarnation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.deploy("web", configMap("conf"))
	w.agree(30 * time.Second)
	w.kill()
	w.remove(d.Objects[0])
	w.happen(w.create(configMap("conf")), "of-the-second")
	w.remove(d.Objects[0])
	w.happen(w.create(configMap("conf")), "of-the-third")
	w.start()
	w.agree(30 * time.Second)
}
