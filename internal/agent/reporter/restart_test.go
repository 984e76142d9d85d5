package reporter

import (
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// memoryStore is a Store.
type memoryStore struct {
	mu     sync.Mutex
	tables map[string]map[string][]byte
}

func newMemoryStore() *memoryStore { return &memoryStore{tables: map[string]map[string][]byte{}} }

func (r *memoryStore) Load(table string) map[string][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.tables[table])
}

func (r *memoryStore) Put(table, key string, value []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tables[table] == nil {
		r.tables[table] = map[string][]byte{}
	}
	r.tables[table][key] = value
}

func (r *memoryStore) Delete(table, key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.tables[table], key)
}

func (r *memoryStore) has(table string, uid types.UID) bool {
	_, ok := r.Load(table)[string(uid)]
	return ok
}

// again replaces the reporter, as a restart of the process does, with the records of the one before.
func (w *world) again(store Store) {
	w.reporter.close() // in case it was never run
	w.targets, w.sink, w.registry = target.NewRegistry(), &recorder{}, prometheus.NewRegistry()
	w.reporter = New(quick(), w.clients, w.targets, w.sink, store, NewMetrics(w.registry), logr.Discard(), func(string) {})
}

// Deletions and recreations while no agent ran are reported at the next start, also if the workload is declared late, and
// Events about the deleted objects are attributed.
func TestReporter_Restart_ReportsDeletionsSince(t *testing.T) {
	for reason, early := range map[string]bool{"declared before the start": true, "declared after the informers have synced": false} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			store := newMemoryStore()
			w := newIdleWorld(t, shared.reader, quick())
			w.again(store)
			gone, again, single := w.create(configMap("gone")), w.create(configMap("again")), w.create(pod("single"))
			hook := w.create(owned(pod("hook"), gone))
			w.run()
			wl := w.track("web", "v1 ConfigMap gone", "v1 ConfigMap again", "v1 Pod single")
			for _, obj := range []types.UID{gone.GetUID(), again.GetUID(), single.GetUID(), hook.GetUID()} {
				w.eventually("the object is recorded", func() string {
					if !store.has(objectTable, obj) {
						return "it is not"
					}
					return ""
				})
			}
			w.stop()
			w.remove(hook)
			w.remove(gone)
			w.remove(again)
			w.remove(single)
			w.create(configMap("again"))
			w.create(event("Killing", hook))

			w.again(store)
			if early {
				w.targets.Track(wl)
			}
			w.run()
			if !early {
				w.track("keeper", "v1 ConfigMap none")
				w.eventually("the informers have synced", func() string {
					if !w.reporter.informers.BaseKindsSynced(w.namespace) {
						return "they have not"
					}
					return ""
				})
				w.targets.Track(wl)
			}
			w.expectLives(wl.Resources[0].Ref, "[1-deleted]")
			w.expectLives(wl.Resources[1].Ref, "[1-deleted 2]")
			w.expectLives(wl.Resources[2].Ref, "[1-deleted]")
			w.expectEvent("Killing", wl.Resources[0])
		})
	}
}

// The records of an object that no workload has any more are removed, but not before a workload is declared.
func TestAttributedObjects_Prune_RemovesUnattributed(t *testing.T) {
	store := newMemoryStore()
	targets := target.NewRegistry()
	attributed := newAttributedObjects(store)
	ref := target.Ref{Kind: "ConfigMap", Namespace: "ns", Name: "conf"}
	object := target.Object{Identity: target.Identity{Ref: ref, UID: "a"}}
	attributed.record(object)
	attributed.prune(targets)
	if !store.has(objectTable, "a") {
		t.Fatal("the record was removed before a workload is declared")
	}
	targets.Track(target.Workload{Name: "web", Instance: target.Instance{Type: target.WorkloadInstance, ID: 1}, Resources: []target.Resource{{Ref: ref, Version: "v1"}}})
	targets.Upsert(object)
	attributed.prune(targets)
	if !store.has(objectTable, "a") {
		t.Fatal("the record of a workload's object was removed")
	}
	targets.Track(target.Workload{Name: "web", Instance: target.Instance{Type: target.WorkloadInstance, ID: 1}})
	attributed.prune(targets)
	if store.has(objectTable, "a") {
		t.Error("the record is kept although no workload has the object")
	}
}

// Events that exist before the process watches them are marked: another process may have reported them.
func TestReporter_PreexistingEvents_AreMarked(t *testing.T) {
	t.Parallel()
	w := newIdleWorld(t, shared.reader, quick())
	conf := w.create(configMap("conf"))
	w.create(event("Before", conf))
	wl := w.track("web", "v1 ConfigMap conf")
	w.run()
	w.expectEvent("Before", wl.Resources[0])
	w.eventually("the informers have synced", func() string {
		if !w.reporter.Ready() {
			return "they have not"
		}
		return ""
	})
	w.create(event("After", conf))
	w.expectEvent("After", wl.Resources[0])
	for reason, want := range map[string]bool{"Before": true, "After": false} {
		if ev := w.sink.events(reason)[0]; ev.MayHaveRow != want {
			t.Errorf("the Event %s is preexisting: %t, want %t", reason, ev.MayHaveRow, want)
		}
	}
}

// Events that expired while no agent ran are forgotten.
func TestReporter_Restart_ForgetsEventsExpiredSince(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shared.reader, quick())
	w.sink.mu.Lock()
	w.sink.restored = []types.UID{"expired"}
	w.sink.mu.Unlock()
	w.track("web", "v1 ConfigMap none")
	w.eventually("the Event is forgotten", func() string {
		w.reporter.prune(time.Now())
		return complain(!w.sink.retainsNone(observe.EventSubject("expired")), "it is kept")
	})
}
