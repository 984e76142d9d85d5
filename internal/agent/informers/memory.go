package informers

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// Memory keeps records when the process ends. *journal.Journal is one; a nil one remembers nothing.
type Memory interface {
	// Load returns the records of a table as the last process left them. A second call returns nothing.
	Load(table string) map[string][]byte
	Put(table, key string, value []byte)
	Delete(table, key string)
}

// The tables of a watcher.
const (
	objectTable = "objects" // by UID: objects that belong to a workload, and their owners
	eventTable  = "events"  // by UID: NAMESPACE/NAME of the Events that were offered
	endTable    = "ends"    // by the Event's UID: NAMESPACE/NAME of pods whose containers ended
	changeTable = "changes" // by the workload's name: the UID of the Event about the latest change of its status
)

// objectRecord is an object as the registry knows it.
type objectRecord struct {
	target.Object
	DeletedAt time.Time `json:",omitzero"`
}

// memory is what the watcher keeps: which objects belonged to workloads, so that it is noticed that they were
// deleted while nothing watched, and Events about them find their workload; and which Events were offered, so that
// they are forgotten when they have expired.
type memory struct {
	store Memory

	mu   sync.Mutex
	kept map[types.UID]struct{} // the objects
}

func newMemory(store Memory) *memory { return &memory{store: store, kept: map[types.UID]struct{}{}} }

// object keeps an object that is claimed.
func (m *memory) object(o target.Object) { m.put(objectRecord{Object: o}) }

// deleted keeps that an object was deleted, if it was kept.
func (m *memory) deleted(o target.Object, at time.Time) {
	if m.keeps(o.UID) {
		m.put(objectRecord{o, at})
	}
}

func (m *memory) put(r objectRecord) {
	if m.store == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept[r.UID] = struct{}{}
	r.LookedUp = time.Time{}
	value, err := json.Marshal(r)
	if err != nil { // the record has only types that encode
		panic(fmt.Sprintf("watch: encode record of %s: %v", r.Ref, err))
	}
	m.store.Put(objectTable, string(r.UID), value)
}

// keeps reports whether an object belonged to a workload, before the last start too.
func (m *memory) keeps(uid types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.kept[uid]
	return ok
}

// tidy forgets the objects that are not to be kept any more.
func (m *memory) tidy(keep func(types.UID) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for uid := range m.kept {
		if !keep(uid) {
			delete(m.kept, uid)
			m.forget(objectTable, string(uid))
		}
	}
}

// note keeps a record of a table, if anything is kept.
func (m *memory) note(table, key, value string) {
	if m.store != nil {
		m.store.Put(table, key, []byte(value))
	}
}

// forget drops a record of a table.
func (m *memory) forget(table, key string) {
	if m.store != nil {
		m.store.Delete(table, key)
	}
}

// take returns what was kept of a table, once.
func (m *memory) take(table string) map[string][]byte {
	if m.store == nil {
		return nil
	}
	return m.store.Load(table)
}

func (m *memory) event(uid types.UID, name types.NamespacedName) {
	m.note(eventTable, string(uid), name.String())
}

func (m *memory) forgetEvent(uid types.UID) { m.forget(eventTable, string(uid)) }

// end keeps that an end of a container was offered.
func (m *memory) end(uid types.UID, pod target.Ref) {
	m.note(endTable, string(uid), pod.Namespace+"/"+pod.Name)
}

func (m *memory) forgetEnd(uid types.UID) { m.forget(endTable, string(uid)) }

func (m *memory) ends() []types.UID {
	var out []types.UID
	for uid := range m.take(endTable) {
		out = append(out, types.UID(uid))
	}
	return out
}

// change keeps that a change of a workload's status was offered.
func (m *memory) change(workload string, uid types.UID) {
	m.note(changeTable, workload, string(uid))
}

func (m *memory) forgetChange(workload string) { m.forget(changeTable, workload) }

func (m *memory) changes() map[string]observe.Event {
	out := map[string]observe.Event{}
	for workload, uid := range m.take(changeTable) {
		out[workload] = observe.Event{UID: types.UID(uid)}
	}
	return out
}

// objects returns what was kept, once. What cannot be read is forgotten.
func (m *memory) objects() []objectRecord {
	var out []objectRecord
	for uid, value := range m.take(objectTable) {
		var r objectRecord
		if err := json.Unmarshal(value, &r); err != nil || string(r.UID) != uid {
			m.forget(objectTable, uid)
			continue
		}
		m.mu.Lock()
		m.kept[r.UID] = struct{}{}
		m.mu.Unlock()
		out = append(out, r)
	}
	return out
}

func (m *memory) events() map[types.UID]types.NamespacedName {
	out := map[types.UID]types.NamespacedName{}
	for uid, value := range m.take(eventTable) {
		namespace, name, _ := strings.Cut(string(value), "/")
		out[types.UID(uid)] = types.NamespacedName{Namespace: namespace, Name: name}
	}
	return out
}

// recall files what was kept in the registry: as objects of which nobody tells any more, until somebody does.
// Those that were deleted come first: the name is that of the one which was not.
func (w *Watcher) recall(now time.Time) {
	var living []objectRecord
	for _, r := range w.memory.objects() {
		r.LookedUp = now
		if r.DeletedAt.IsZero() {
			living = append(living, r)
			continue
		}
		w.targets.Upsert(r.Object)
		w.targets.Delete(r.UID, r.DeletedAt)
	}
	for _, r := range living {
		w.targets.Upsert(r.Object)
	}
}

// tidyMemory forgets the objects, and what else is kept, that belong to nobody any more, or that the registry has
// forgotten. As long as no workload is declared nothing is known against any.
func (w *Watcher) tidyMemory() {
	if w.targets.Empty() {
		return
	}
	keep := func(uid types.UID) bool {
		known, ok := w.targets.Lookup(uid)
		return ok && len(w.targets.Attributions(known)) > 0
	}
	w.memory.tidy(keep)
	w.tidyEnds(keep)
	w.tidyChanges()
}
