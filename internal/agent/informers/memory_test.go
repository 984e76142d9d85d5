package informers

import (
	"maps"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// records are a store.
type records struct {
	mu     sync.Mutex
	tables map[string]map[string][]byte
}

func newRecords() *records { return &records{tables: map[string]map[string][]byte{}} }

func (r *records) Load(table string) map[string][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.tables[table])
}

func (r *records) Put(table, key string, value []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tables[table] == nil {
		r.tables[table] = map[string][]byte{}
	}
	r.tables[table][key] = value
}

func (r *records) Delete(table, key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.tables[table], key)
}

func (r *records) has(table string, uid types.UID) bool {
	_, ok := r.Load(table)[string(uid)]
	return ok
}

// again makes the next watcher of a world, with what the first one kept.
func (w *world) again(store Memory) {
	w.watcher.shutDown() // if it was never run
	w.targets, w.sink, w.registry = target.NewRegistry(), &recorder{}, prometheus.NewRegistry()
	w.watcher = New(quick(), w.watcher.clients, w.targets, w.sink, store, NewMetrics(w.registry), logr.Discard(), func(string) {})
}

// What was deleted, or created again, while nothing watched is told at the next start, also if the workload is
// declared late; and an Event about it finds its workload.
func TestDeletedWhileNothingWatched(t *testing.T) {
	for reason, early := range map[string]bool{"declared before the start": true, "declared after the informers have synced": false} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			store := newRecords()
			w := newIdleWorld(t, shared.reader, quick())
			w.again(store)
			gone, again, single := w.create(configMap("gone")), w.create(configMap("again")), w.create(pod("single"))
			hook := w.create(owned(pod("hook"), gone))
			w.run()
			wl := w.track("web", "v1 ConfigMap gone", "v1 ConfigMap again", "v1 Pod single")
			for _, obj := range []types.UID{gone.GetUID(), again.GetUID(), single.GetUID(), hook.GetUID()} {
				w.eventually("the object to be kept", func() string {
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
				w.eventually("the informers to have synced", func() string {
					if !w.watcher.settled(w.namespace) {
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

// What belongs to nobody any more is not kept, and nothing is forgotten before anything is declared.
func TestMemoryIsTidied(t *testing.T) {
	store := newRecords()
	targets := target.NewRegistry()
	w := &Watcher{targets: targets, memory: newMemory(store), sink: &recorder{}}
	w.ends, w.announced = newEnds(nil), w.memory.changes()
	ref := target.Ref{Kind: "ConfigMap", Namespace: "ns", Name: "conf"}
	object := target.Object{Identity: target.Identity{Ref: ref, UID: "a"}}
	w.memory.object(object)
	w.tidyMemory()
	if !store.has(objectTable, "a") {
		t.Fatal("an object is forgotten before workloads are declared")
	}
	targets.Track(target.Workload{Name: "web", Instance: target.Instance{Type: target.WorkloadInstance, ID: 1}, Resources: []target.Resource{{Ref: ref, Version: "v1"}}})
	targets.Upsert(object)
	w.tidyMemory()
	if !store.has(objectTable, "a") {
		t.Fatal("an object of a workload is forgotten")
	}
	targets.Track(target.Workload{Name: "web", Instance: target.Instance{Type: target.WorkloadInstance, ID: 1}})
	w.tidyMemory()
	if store.has(objectTable, "a") {
		t.Error("an object of nobody is kept")
	}
}

// An Event that was there before this process watched may have been reported by another.
func TestEarlyEventsAreMarked(t *testing.T) {
	t.Parallel()
	w := newIdleWorld(t, shared.reader, quick())
	conf := w.create(configMap("conf"))
	w.create(event("Before", conf))
	wl := w.track("web", "v1 ConfigMap conf")
	w.run()
	w.expectEvent("Before", wl.Resources[0])
	w.eventually("the informers to have synced", func() string {
		if !w.watcher.Ready() {
			return "they have not"
		}
		return ""
	})
	w.create(event("After", conf))
	w.expectEvent("After", wl.Resources[0])
	for reason, want := range map[string]bool{"Before": true, "After": false} {
		if ev := w.sink.events(reason)[0]; ev.Preexisting != want {
			t.Errorf("the Event %s is early: %t, want %t", reason, ev.Preexisting, want)
		}
	}
}

// The Events that expired while nothing watched are forgotten.
func TestExpiredWhileNothingWatched(t *testing.T) {
	t.Parallel()
	store := newRecords()
	store.Put(eventTable, "expired", []byte("ns/expired"))
	w := newIdleWorld(t, shared.reader, quick())
	w.again(store)
	w.track("web", "v1 ConfigMap none")
	w.run()
	w.eventually("the Event to be forgotten", func() string {
		if !w.sink.forgotten(observe.EventKey("expired")) || store.has(eventTable, "expired") {
			return "it is not"
		}
		return ""
	})
}
