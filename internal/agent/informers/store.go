package informers

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// store has the objects that an informer watches. The informer's reflector writes to it, and it passes each change on. A shared informer
// of client-go passes changes through a queue and three more goroutines. It keeps one more string for each object.
type store struct {
	transform cache.TransformFunc
	// handler is called after each change, and onFirstList after the first list. Both are called in the goroutine that reads the
	// watch. They may wait for mutexes only.
	handler     cache.ResourceEventHandler
	onFirstList func()
	listedOnce  bool // belongs to that goroutine

	mu      sync.RWMutex
	objects map[types.NamespacedName]any
	events  eventIndexes
}

func newStore(transform cache.TransformFunc, handler cache.ResourceEventHandler, onFirstList func()) *store {
	return &store{transform: transform, handler: handler, onFirstList: onFirstList, objects: map[types.NamespacedName]any{}}
}

// Transformer implements cache.TransformingStore: the reflector collects a list in the form of the cache.
func (s *store) Transformer() cache.TransformFunc { return s.transform }

// Add implements cache.ReflectorStore.
func (s *store) Add(obj any) error {
	obj, name, err := s.cachedForm(obj)
	if err != nil {
		return err
	}
	before := s.swap(name, obj)
	s.changed(before, obj)
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
	s.swap(name, nil)
	s.handler.OnDelete(obj)
	return nil
}

// Replace implements cache.ReflectorStore. The objects that are not listed are deleted.
func (s *store) Replace(list []any, _ string) error {
	objects := make(map[types.NamespacedName]any, len(list))
	for _, item := range list {
		obj, name, err := s.cachedForm(item)
		if err != nil {
			return err
		}
		objects[name] = obj
	}
	before := s.replace(objects)
	for name, obj := range before {
		if _, exists := objects[name]; !exists {
			s.handler.OnDelete(obj)
		}
	}
	for name, obj := range objects {
		s.changed(before[name], obj)
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
		return types.NamespacedName{Namespace: o.common.Value().namespace, Name: o.name}, nil
	case *cachedPod:
		return types.NamespacedName{Namespace: o.namespace.Value(), Name: o.name}, nil
	}
	o, err := meta.Accessor(obj)
	if err != nil {
		return types.NamespacedName{}, err //nolint:wrapcheck // names the type
	}
	return nameOf(o), nil
}

// changed passes an object on, unless it was listed again in the same version. before is nil if the store had no object of that name.
func (s *store) changed(before, obj any) {
	if before == nil {
		s.handler.OnAdd(obj, !s.listedOnce)
	} else if cachedVersion(before) != cachedVersion(obj) {
		s.handler.OnUpdate(before, obj)
	}
}

// swap stores an object under a name, or none, and returns the one before; nil if there was none.
func (s *store) swap(name types.NamespacedName, obj any) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.objects[name]
	if ev, ok := before.(*cachedEvent); ok {
		s.events.remove(ev)
	}
	if ev, ok := obj.(*cachedEvent); ok {
		s.events.add(ev)
	}
	if obj == nil {
		delete(s.objects, name)
	} else {
		s.objects[name] = obj
	}
	return before
}

// replace stores other objects, and returns those before. The store keeps the map.
func (s *store) replace(objects map[types.NamespacedName]any) map[types.NamespacedName]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.objects
	s.objects, s.events = objects, eventIndexes{}
	for _, obj := range objects {
		if ev, ok := obj.(*cachedEvent); ok {
			s.events.add(ev)
		}
	}
	return before
}

// get returns the object of a name; nil if there is none.
func (s *store) get(name types.NamespacedName) any {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.objects[name]
}

// list returns all objects.
func (s *store) list() []any {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.AppendSeq(make([]any, 0, len(s.objects)), maps.Values(s.objects))
}

// eventsBy returns the Events whose value in an index has a hash.
func (s *store) eventsBy(index eventIndex, hash uint32) []*cachedEvent {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.events.find(index, hash)
}
