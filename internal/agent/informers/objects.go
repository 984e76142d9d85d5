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
	cached := inf.object(id.Ref)
	if p, ok := cached.(*cachedPod); ok {
		cached = p.pod()
	}
	o, ok := cached.(metav1.Object)
	if !ok || o.GetUID() != id.UID {
		return CachedObject{}, false
	}
	return CachedObject{o, inf.id.gvr, inf.gvk}, true
}

// WholeObject is a listed object with all fields that may leave the cluster.
type WholeObject struct {
	ResourceVersion string
	// Body is nil if the object is large. Source reads it then.
	Body   runtime.Object
	Source observe.Source
	// Fetched is true if this call has read the object from the API server.
	Fetched bool
}

// WholeObject returns a listed object whole: from the cache, or from the API server if the cache keeps less. It returns false if the
// object no longer exists. A large object is not read again until Source is used.
func (s *Informers) WholeObject(ctx context.Context, id target.Identity, cached CachedObject) (WholeObject, bool, error) {
	switch o := cached.Object.(type) {
	case *unstructured.Unstructured:
		s.fetched.forget(id.UID)
		return WholeObject{ResourceVersion: o.GetResourceVersion(), Body: o}, true, nil
	case *metav1.PartialObjectMetadata:
		s.fetched.forget(id.UID)
		return WholeObject{ResourceVersion: o.GetResourceVersion(), Body: o}, true, nil
	}
	known, kept := s.fetched.lookup(id.UID, cached.GetResourceVersion())
	if !kept {
		var exists bool
		var err error
		if known, exists, err = s.fetched.read(ctx, id, cached); !exists {
			return WholeObject{}, false, err
		}
	}
	if known.size > 0 {
		return WholeObject{ResourceVersion: known.version, Source: largeObject{s.fetched, id, cached}, Fetched: !kept}, true, nil
	}
	return WholeObject{ResourceVersion: known.version, Body: known.body, Fetched: !kept}, true, nil
}

// largeObject reads an object that is not kept.
type largeObject struct {
	from   *objectCache
	id     target.Identity
	cached CachedObject
}

// Load implements [observe.Source].
func (o largeObject) Load(ctx context.Context) (runtime.Object, error) {
	if known, ok := o.from.lookup(o.id.UID, o.cached.GetResourceVersion()); ok && known.body != nil {
		return known.body, nil
	}
	read, _, err := o.from.read(ctx, o.id, o.cached)
	return read.body, err
}

// ForgetObject drops the fetched version of an object that is deleted or no longer listed.
func (s *Informers) ForgetObject(uid types.UID) { s.fetched.forget(uid) }

// objectCache keeps listed objects that were fetched because an informer's cache keeps less of them. An object is fetched
// again when it changes, and not each time it is read. Of the bodies of large objects, it keeps maxLargeFetched bytes.
type objectCache struct {
	fetch     func(context.Context, schema.GroupVersionResource, target.Ref) (runtime.Object, error)
	listed    func() int // the number of listed objects
	redaction *redact.Live
	count     prometheus.Counter

	mu      sync.Mutex
	objects map[types.UID]fetchedObject
	large   int // the size of the bodies of large objects
}

type fetchedObject struct {
	cachedVersion string         // in the informer's cache
	version       string         // of the object
	size          int            // 0 if it is not large
	body          runtime.Object // nil if it is large and was dropped for others
}

// read fetches an object and keeps it. It returns false if the object no longer exists.
func (c *objectCache) read(ctx context.Context, id target.Identity, cached CachedObject) (fetchedObject, bool, error) {
	obj, err := c.fetch(ctx, cached.gvr, id.Ref)
	if errors.Is(err, errNoObject) {
		return fetchedObject{}, false, nil
	}
	if err != nil {
		return fetchedObject{}, false, err
	}
	c.count.Inc()
	if partial, ok := obj.(*metav1.PartialObjectMetadata); ok {
		partial.SetGroupVersionKind(cached.gvk)
	}
	observe.Trim(obj, c.redaction.Current())
	o, err := meta.Accessor(obj)
	if err != nil || o.GetUID() != id.UID {
		return fetchedObject{}, false, err
	}
	fetched := fetchedObject{cachedVersion: cached.GetResourceVersion(), version: o.GetResourceVersion(), body: obj}
	if isLarge(obj, c.listed()) {
		fetched.size = sizeOf(obj)
	}
	c.put(id.UID, fetched)
	return fetched, true, nil
}

// put keeps an object, and drops the bodies of other large ones if they exceed the limit with it.
func (c *objectCache) put(uid types.UID, fetched fetchedObject) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(uid)
	if c.large+fetched.size > maxLargeFetched {
		for other, o := range c.objects {
			if o.size > 0 {
				o.body = nil
				c.objects[other] = o
			}
		}
		c.large = 0
	}
	c.objects[uid] = fetched
	c.large += fetched.size
}

func (c *objectCache) remove(uid types.UID) {
	if o := c.objects[uid]; o.body != nil {
		c.large -= o.size
	}
	delete(c.objects, uid)
}

// lookup returns a fetched object if it is as new as a version in the informer's cache.
func (c *objectCache) lookup(uid types.UID, cachedVersion string) (fetchedObject, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f, ok := c.objects[uid]
	return f, ok && (f.cachedVersion == cachedVersion || f.version == cachedVersion)
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
