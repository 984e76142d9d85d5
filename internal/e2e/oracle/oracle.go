// Package oracle judges the agent from outside: it watches the cluster by itself, remembers every object and
// every Event that it saw, works out which of them belong to a workload, and compares that with what the
// control plane holds. It shares no code with the agent's own watching and attribution.
package oracle

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/threeport/threeport-agent/api/v1alpha1"
)

// fullName is what one object at a time bears.
type fullName struct {
	kind            schema.GroupKind
	namespace, name string
}

// object is what is remembered of one incarnation of a name, after its end too.
type object struct {
	fullName
	uid             types.UID
	resourceVersion string
	versions        []string // all that were seen, the newest last
	labels          map[string]string
	owners          []types.UID
	deleted         bool
}

// Oracle remembers what it saw. It is safe for concurrent use.
type Oracle struct {
	informers metadatainformer.SharedInformerFactory

	mu      sync.Mutex
	watched map[schema.GroupKind]cache.InformerSynced
	objects map[types.UID]object
	bearers map[fullName][]types.UID // in the order in which they bore it
	events  map[types.UID]*corev1.Event
	times   map[types.UID][]time.Time // of all versions of an Event that were seen
	ends    map[types.UID]ends        // of pods
	changes map[types.UID]changes     // of ThreeportWorkloads
	missed  bool                      // there may be versions that were not seen
}

func newOracle() *Oracle {
	return &Oracle{
		watched: map[schema.GroupKind]cache.InformerSynced{},
		objects: map[types.UID]object{},
		bearers: map[fullName][]types.UID{},
		events:  map[types.UID]*corev1.Event{},
		times:   map[types.UID][]time.Time{},
		ends:    map[types.UID]ends{},
		changes: map[types.UID]changes{},
	}
}

// Watch starts to watch Events and every other resource that the API server has, and returns when the first
// lists are complete. It goes on until the context ends.
func Watch(ctx context.Context, config *rest.Config) (*Oracle, error) {
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NoWarnings{} // of deprecated kinds, which are watched like all others
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("oracle: %w", err)
	}
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("oracle: %w", err)
	}
	kinds, err := discover(typed.Discovery())
	if err != nil {
		return nil, fmt.Errorf("oracle: %w", err)
	}
	o := newOracle()
	o.informers = metadatainformer.NewSharedInformerFactory(client, 0)
	events := informers.NewSharedInformerFactory(typed, 0)
	pods := events.Core().V1().Pods().Informer()
	if err := pods.SetTransform(withoutSpec); err != nil {
		return nil, fmt.Errorf("oracle: %w", err)
	}
	synced := []cache.InformerSynced{handle(events.Core().V1().Events().Informer(), o.sawEvent), handle(pods, o.sawPod)}
	dyn, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("oracle: %w", err)
	}
	// Whatever discovery says, which may be behind.
	workloads := dynamicinformer.NewDynamicSharedInformerFactory(dyn, 0)
	informer := workloads.ForResource(v1alpha1.GroupVersion.WithResource("threeportworkloads")).Informer()
	listed, unserved := handleServed(informer, o.sawWorkload)
	synced = append(synced, func() bool { return listed() || unserved.Load() })
	workloads.Start(ctx.Done())
	for kind, resource := range kinds {
		listed, unserved := o.watch(ctx, kind, resource)
		synced = append(synced, func() bool { return listed() || unserved.Load() })
	}
	events.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return nil, fmt.Errorf("oracle: watch the cluster: %w", context.Cause(ctx))
	}
	return o, nil
}

// withoutSpec leaves out of a pod what the oracle does not read, for the sake of memory.
func withoutSpec(obj any) (any, error) {
	if pod, ok := obj.(*corev1.Pod); ok {
		pod.Spec, pod.ManagedFields, pod.Annotations = corev1.PodSpec{}, nil, nil
	}
	return obj, nil
}

// Add watches one more resource, such as one whose definition was installed since Watch, and returns when its
// first list is complete: the API server may be about to serve it. It goes on until the context ends.
func (o *Oracle) Add(ctx context.Context, kind schema.GroupKind, resource schema.GroupVersionResource) error {
	o.mu.Lock()
	synced, ok := o.watched[kind]
	o.mu.Unlock()
	if !ok {
		synced, _ = o.watch(ctx, kind, resource)
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced) {
		return fmt.Errorf("oracle: watch %s: %w", resource.GroupResource(), context.Cause(ctx))
	}
	return nil
}

// discover returns the resources that can be watched, Events left out.
func discover(client discovery.DiscoveryInterface) (map[schema.GroupKind]schema.GroupVersionResource, error) {
	lists, err := client.ServerPreferredResources()
	if err != nil {
		return nil, fmt.Errorf("discover the kinds: %w", err)
	}
	kinds := map[schema.GroupKind]schema.GroupVersionResource{}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("discover the kinds: %w", err)
		}
		for i := range list.APIResources {
			r := &list.APIResources[i]
			if r.Name != "events" && slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "watch") {
				kinds[schema.GroupKind{Group: version.Group, Kind: r.Kind}] = version.WithResource(r.Name)
			}
		}
	}
	return kinds, nil
}

// watch starts to watch a resource. It returns whether the first list is complete, and whether the API server
// has said that it does not serve the resource, which is asked for again and again.
func (o *Oracle) watch(
	ctx context.Context, kind schema.GroupKind, resource schema.GroupVersionResource,
) (synced cache.InformerSynced, unserved *atomic.Bool) {
	synced, unserved = handleServed(o.informers.ForResource(resource).Informer(), func(obj any, deleted bool) { o.sawObject(kind, obj, deleted) })
	o.mu.Lock()
	o.watched[kind] = synced
	o.mu.Unlock()
	o.informers.Start(ctx.Done())
	return synced, unserved
}

// handleServed is handle for a resource that the API server may not serve yet: then it says so.
func handleServed(
	informer cache.SharedIndexInformer, saw func(obj any, deleted bool),
) (synced cache.InformerSynced, unserved *atomic.Bool) {
	unserved = &atomic.Bool{}
	_ = informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		if apierrors.IsNotFound(err) {
			unserved.Store(true)
			return
		}
		cache.DefaultWatchErrorHandler(ctx, r, err)
	}) // it fails once an informer is started
	return handle(informer, saw), unserved
}

func handle(informer cache.SharedIndexInformer, saw func(obj any, deleted bool)) cache.InformerSynced {
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { saw(obj, false) },
		UpdateFunc: func(_, obj any) { saw(obj, false) },
		DeleteFunc: func(obj any) { saw(obj, true) },
	})
	if err != nil { // only a stopped informer refuses
		return func() bool { return false }
	}
	return registration.HasSynced
}

// EventCount returns how many Events were seen.
func (o *Oracle) EventCount() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.events)
}

// Saw reports whether a version of an object or of an Event was seen, or a later one.
func (o *Oracle) Saw(uid types.UID, version string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	seen := slices.Clone(o.objects[uid].versions)
	if ev := o.events[uid]; ev != nil {
		seen = append(seen, ev.ResourceVersion)
	}
	return slices.ContainsFunc(seen, func(v string) bool {
		order, err := resourceversion.CompareResourceVersion(v, version)
		return err == nil && order >= 0
	})
}

// Interrupted says that the oracle's own watch may have missed versions, such as by an end of the API server: that it
// does not know one is not held against the agent any more. What there is in the end it sees.
func (o *Oracle) Interrupted() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.missed = true
}

// sawEvent keeps the newest version of an Event, one that has expired too.
func (o *Oracle) sawEvent(obj any, _ bool) {
	if ev, ok := obj.(*corev1.Event); ok {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.events[ev.UID] = ev
		if when := lastSeen(ev); !slices.ContainsFunc(o.times[ev.UID], when.Equal) {
			o.times[ev.UID] = append(o.times[ev.UID], when)
		}
	}
}

// lastKnown returns what is told, or, of a deletion that was missed, what was told last.
func lastKnown(obj any) any {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		return tombstone.Obj
	}
	return obj
}

func (o *Oracle) sawObject(kind schema.GroupKind, obj any, deleted bool) {
	m, err := meta.Accessor(lastKnown(obj))
	if err != nil {
		return
	}
	seen := object{
		fullName: fullName{kind, m.GetNamespace(), m.GetName()},
		uid:      m.GetUID(), resourceVersion: m.GetResourceVersion(), labels: m.GetLabels(), deleted: deleted,
	}
	for _, owner := range m.GetOwnerReferences() {
		seen.owners = append(seen.owners, owner.UID)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, known := o.objects[seen.uid]; !known {
		o.bearers[seen.fullName] = append(o.bearers[seen.fullName], seen.uid)
	}
	seen.versions = slices.Concat(o.objects[seen.uid].versions, []string{seen.resourceVersion})
	o.objects[seen.uid] = seen
}
