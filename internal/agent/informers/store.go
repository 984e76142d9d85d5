package informers

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// store has the objects that an informer watches. The informer's reflector writes to it, and it passes each change on. A shared informer
// of client-go passes changes through a queue and three more goroutines. It keeps one more string for each object.
type store struct {
	kind      schema.GroupVersionKind
	transform cache.TransformFunc
	// handler is called after each change, and onFirstList after the first list. Both are called in the goroutine that reads the
	// watch. They may wait for mutexes only.
	handler     cache.ResourceEventHandler
	onFirstList func()
	listedOnce  bool // belongs to that goroutine

	mu      sync.RWMutex
	objects objectSet
}

// objectSet has objects in their cached form, by name: Events, or others.
type objectSet struct {
	events *eventSet // nil for others
	others map[types.NamespacedName]any
}

// newObjectSet returns a set for objects of a kind. If it is a map, it has space for a number of them.
func newObjectSet(kind schema.GroupVersionKind, size int) objectSet {
	if kind == eventKind {
		return objectSet{events: &eventSet{}}
	}
	return objectSet{others: make(map[types.NamespacedName]any, size)}
}

// get returns the object of a name; nil if there is none.
func (s objectSet) get(name types.NamespacedName) any {
	if s.events == nil {
		return s.others[name]
	}
	if ev := s.events.get(name); ev != nil {
		return ev
	}
	return nil
}

// put puts an object in the place of the one before, which get returned. Nil is none.
func (s objectSet) put(name types.NamespacedName, before, obj any) {
	switch {
	case s.events != nil:
		s.events.replace(before, obj)
	case obj == nil:
		delete(s.others, name)
	default:
		s.others[name] = obj
	}
}

func (s objectSet) list() []any {
	if s.events != nil {
		return s.events.list()
	}
	return slices.AppendSeq(make([]any, 0, len(s.others)), maps.Values(s.others))
}

func newStore(
	kind schema.GroupVersionKind, transform cache.TransformFunc, handler cache.ResourceEventHandler, onFirstList func(),
) *store {
	return &store{kind: kind, transform: transform, handler: handler, onFirstList: onFirstList, objects: newObjectSet(kind, 0)}
}

// Transformer implements cache.TransformingStore: the reflector collects a list in the form of the cache.
func (s *store) Transformer() cache.TransformFunc { return s.transform }

// Add implements cache.ReflectorStore.
func (s *store) Add(obj any) error {
	obj, name, err := s.cachedForm(obj)
	if err != nil {
		return err
	}
	s.changed(s.put(name, obj), obj)
	return nil
}

// Update implements cache.ReflectorStore.
func (s *store) Update(obj any) error { return s.Add(obj) }

// Delete implements cache.ReflectorStore. The version of the object is that of its deletion.
func (s *store) Delete(obj any) error {
	obj, name, err := s.cachedForm(obj)
	if err != nil {
		return err
	}
	s.put(name, nil)
	s.handler.OnDelete(obj)
	return nil
}

// Replace implements cache.ReflectorStore. The objects that are not listed are deleted.
func (s *store) Replace(list []any, _ string) error {
	listed := newObjectSet(s.kind, len(list))
	for _, item := range list {
		obj, name, err := s.cachedForm(item)
		if err != nil {
			return err
		}
		markPreexisting(s.get(name), obj, !s.listedOnce)
		listed.put(name, listed.get(name), obj)
	}
	before := s.replace(listed)
	for _, obj := range before.list() {
		if name, _ := cachedName(obj); listed.get(name) == nil {
			s.handler.OnDelete(obj)
		}
	}
	for _, obj := range listed.list() {
		name, _ := cachedName(obj)
		s.changed(before.get(name), obj)
	}
	if !s.listedOnce {
		s.listedOnce = true
		s.onFirstList()
	}
	return nil
}

// Resync implements cache.ReflectorStore. It is never called.
func (s *store) Resync() error { return nil }

// cachedForm returns what the store keeps of an object.
func (s *store) cachedForm(obj any) (any, types.NamespacedName, error) {
	kept, err := s.transform(obj)
	if err != nil {
		return nil, types.NamespacedName{}, err
	}
	name, err := cachedName(kept)
	return kept, name, err
}

// cachedName returns the name of an object in its cached form.
func cachedName(obj any) (types.NamespacedName, error) {
	switch o := obj.(type) {
	case *cachedEvent:
		return o.name(), nil
	case *cachedPod:
		return types.NamespacedName{Namespace: o.namespace.Value(), Name: o.name}, nil
	}
	o, err := meta.Accessor(obj)
	if err != nil {
		return types.NamespacedName{}, err //nolint:wrapcheck // names the type
	}
	return nameOf(o), nil
}

// cachedVersion returns the version of an object in its cached form; zero if there is no object.
func cachedVersion(obj any) objectVersion {
	switch o := obj.(type) {
	case *cachedEvent:
		ev := o.metadata()
		return objectVersion{ev.UID, ev.ResourceVersion}
	case *cachedPod:
		return objectVersion{o.uid, o.resourceVersion()}
	}
	o, err := meta.Accessor(obj)
	if err != nil {
		return objectVersion{}
	}
	return versionOf(o)
}

// changed passes an object on, unless it was listed again in the same version. before is nil if the store had no object of that name.
func (s *store) changed(before, obj any) {
	if before == nil {
		s.handler.OnAdd(obj, !s.listedOnce)
	} else if cachedVersion(before) != cachedVersion(obj) {
		s.handler.OnUpdate(before, obj)
	}
}

// put stores an object under a name, or none, and returns the one before; nil if there was none.
func (s *store) put(name types.NamespacedName, obj any) any {
	before := s.get(name) // only this goroutine writes
	markPreexisting(before, obj, !s.listedOnce)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects.put(name, before, obj)
	return before
}

// replace stores other objects, and returns those before. The store keeps the set.
func (s *store) replace(objects objectSet) objectSet {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.objects
	s.objects = objects
	return before
}

// get returns the object of a name; nil if there is none.
func (s *store) get(name types.NamespacedName) any {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.objects.get(name)
}

// list returns all objects.
func (s *store) list() []any {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.objects.list()
}

// eventsBy returns the Events whose value in an index has a hash.
func (s *store) eventsBy(index eventIndex, hash uint32) []*cachedEvent {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.objects.events == nil {
		return nil
	}
	return s.objects.events.find(index, hash)
}
