package informers

import (
	"context"
	"errors"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/redact"
)

// CachedObject is the newest version of an object in an informer's cache, which may keep a part of the object only. It
// is shared with the cache and must not be changed.
type CachedObject struct {
	metav1.Object
	gvr schema.GroupVersionResource
	gvk schema.GroupVersionKind
}

// Object returns an object from a cache: in the version that the attribution lists, or in any version for a derived
// object. It returns false if no cache has this incarnation of the object, yet or still.
func (s *Informers) Object(id target.Identity, attribution target.Attribution) (CachedObject, bool) {
	var gvr *schema.GroupVersionResource
	if attribution.Listed {
		state, ok := s.kinds.stateOf(attribution.Resource.GroupVersionKind())
		if !ok || state.gvr.Empty() {
			return CachedObject{}, false
		}
		gvr = &state.gvr
	}
	inf, ok := s.pool.find(gvr, id.Ref)
	if !ok {
		return CachedObject{}, false
	}
	cached, _ := inf.object(id.Ref)
	if p, ok := cached.(*cachedPod); ok {
		cached = p.pod()
	}
	o, ok := cached.(metav1.Object)
	if !ok || o.GetUID() != id.UID {
		return CachedObject{}, false
	}
	return CachedObject{o, inf.id.gvr, inf.gvk}, true
}

// WholeObject returns a listed object with all fields that may leave the cluster: from the cache, or from the API server
// if the cache keeps less. It returns nil if the object no longer exists.
func (s *Informers) WholeObject(ctx context.Context, id target.Identity, cached CachedObject) (runtime.Object, error) {
	switch o := cached.Object.(type) {
	case *unstructured.Unstructured:
		s.fetched.forget(id.UID)
		return o, nil
	case *metav1.PartialObjectMetadata:
		s.fetched.forget(id.UID)
		return o, nil
	}
	return s.fetched.get(ctx, id, cached)
}

// SourceOf returns where a whole object is read again if it is large; nil for others, and for one that the cache has whole.
func (s *Informers) SourceOf(id target.Identity, cached CachedObject, whole runtime.Object) observe.Source {
	switch cached.Object.(type) {
	case *unstructured.Unstructured, *metav1.PartialObjectMetadata:
		return nil
	}
	if !isLarge(whole, s.fetched.listed()) {
		return nil
	}
	return largeObject{s.fetched, id, cached}
}

// largeObject reads an object that is not kept.
type largeObject struct {
	from   *objectCache
	id     target.Identity
	cached CachedObject
}

// Load implements [observe.Source].
func (o largeObject) Load(ctx context.Context) (runtime.Object, error) {
	return o.from.get(ctx, o.id, o.cached)
}

// ForgetObject drops the fetched version of an object that is deleted or no longer listed.
func (s *Informers) ForgetObject(uid types.UID) { s.fetched.forget(uid) }

// objectCache keeps listed objects that were fetched because an informer's cache keeps less of them. An object is fetched
// again when it changes, and not each time it is read. Of large objects, it keeps maxLargeFetched bytes.
type objectCache struct {
	fetch     func(context.Context, schema.GroupVersionResource, target.Ref) (runtime.Object, error)
	listed    func() int // the number of listed objects
	redaction *redact.Live
	count     prometheus.Counter

	mu      sync.Mutex
	objects map[types.UID]fetchedObject
	large   int // the size of the large objects
}

type fetchedObject struct {
	cachedVersion string // in the informer's cache
	object        runtime.Object
	large         int // its size if it is large, else 0
}

func (c *objectCache) get(ctx context.Context, id target.Identity, cached CachedObject) (runtime.Object, error) {
	version := cached.GetResourceVersion()
	if kept, ok := c.lookup(id.UID, version); ok {
		return kept, nil
	}
	obj, err := c.fetch(ctx, cached.gvr, id.Ref)
	if errors.Is(err, errNoObject) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	c.count.Inc()
	if partial, ok := obj.(*metav1.PartialObjectMetadata); ok {
		partial.SetGroupVersionKind(cached.gvk)
	}
	observe.Trim(obj, c.redaction.Current())
	if o, err := meta.Accessor(obj); err != nil || o.GetUID() != id.UID {
		return nil, err
	}
	c.put(id.UID, fetchedObject{cachedVersion: version, object: obj})
	return obj, nil
}

// put keeps an object, and drops other large ones if they exceed the limit with it.
func (c *objectCache) put(uid types.UID, fetched fetchedObject) {
	if isLarge(fetched.object, c.listed()) {
		fetched.large = sizeOf(fetched.object)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(uid)
	if c.large+fetched.large > maxLargeFetched {
		for other, o := range c.objects {
			if o.large > 0 {
				c.remove(other)
			}
		}
	}
	c.objects[uid] = fetched
	c.large += fetched.large
}

func (c *objectCache) remove(uid types.UID) {
	c.large -= c.objects[uid].large
	delete(c.objects, uid)
}

// lookup returns a fetched object if it is as new as the informer's cache.
func (c *objectCache) lookup(uid types.UID, version string) (runtime.Object, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f, ok := c.objects[uid]
	if !ok {
		return nil, false
	}
	o, isObject := f.object.(metav1.Object)
	return f.object, f.cachedVersion == version || isObject && o.GetResourceVersion() == version
}

// forget drops an object.
func (c *objectCache) forget(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(uid)
}

// clear drops all objects.
func (c *objectCache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.objects)
	c.large = 0
}

func (c *objectCache) size() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.objects)
}
