// Package oracle checks the agent from outside. It watches the cluster, records every object and Event, attributes them to
// workloads, and compares the result with the rows of the control plane. It shares no code with the agent's informers and
// attribution.
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

// fullName identifies one object at a time.
type fullName struct {
	kind            schema.GroupKind
	namespace, name string
}

// object is the record of one incarnation of a name, also after its deletion.
type object struct {
	fullName
	uid             types.UID
	resourceVersion string
	versions        []string // all observed ones, the latest last
	labels          map[string]string
	owners          []types.UID
	deleted         bool
}

// Oracle records the content of a cluster. It is safe for concurrent use.
type Oracle struct {
	informers metadatainformer.SharedInformerFactory

	mu                 sync.Mutex
	watched            map[schema.GroupKind]cache.InformerSynced
	objects            map[types.UID]object
	incarnationsByName map[fullName][]types.UID // in the order of their creation
	events             map[types.UID]*corev1.Event
	times              map[types.UID][]time.Time         // of all observed versions of an Event
	terminations       map[types.UID]podTerminations     // of pods
	transitions        map[types.UID]workloadTransitions // of ThreeportWorkloads
	mayHaveMissed      bool                              // versions may be missing from the record
}

func newOracle() *Oracle {
	return &Oracle{
		watched:            map[schema.GroupKind]cache.InformerSynced{},
		objects:            map[types.UID]object{},
		incarnationsByName: map[fullName][]types.UID{},
		events:             map[types.UID]*corev1.Event{},
		times:              map[types.UID][]time.Time{},
		terminations:       map[types.UID]podTerminations{},
		transitions:        map[types.UID]workloadTransitions{},
	}
}

// Watch watches all resources of an API server until the context ends. It returns after the first lists.
func Watch(ctx context.Context, config *rest.Config) (*Oracle, error) {
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NoWarnings{} // of deprecated kinds
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
	synced := []cache.InformerSynced{addHandler(events.Core().V1().Events().Informer(), o.recordEvent), addHandler(pods, o.recordPod)}
	dyn, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("oracle: %w", err)
	}
	// Not from discovery, which may not list the kind yet.
	workloads := dynamicinformer.NewDynamicSharedInformerFactory(dyn, 0)
	informer := workloads.ForResource(v1alpha1.GroupVersion.WithResource("threeportworkloads")).Informer()
	listed, unserved := addHandlerIfServed(informer, o.recordWorkload)
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

// withoutSpec removes unused parts of a pod to save memory.
func withoutSpec(obj any) (any, error) {
	if pod, ok := obj.(*corev1.Pod); ok {
		pod.Spec, pod.ManagedFields, pod.Annotations = corev1.PodSpec{}, nil, nil
	}
	return obj, nil
}

// Add watches another resource until the context ends, such as one whose CRD was installed after Watch. It returns after the
// first list. The API server need not serve the resource yet.
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

// discover returns the resources that can be watched, except Events.
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

// watch watches a resource. It returns whether the first list is complete, and whether the API server has answered that it
// does not serve the resource; the informer retries then.
func (o *Oracle) watch(
	ctx context.Context, kind schema.GroupKind, resource schema.GroupVersionResource,
) (synced cache.InformerSynced, notServed *atomic.Bool) {
	synced, notServed = addHandlerIfServed(o.informers.ForResource(resource).Informer(), func(obj any, deleted bool) { o.recordObject(kind, obj, deleted) })
	o.mu.Lock()
	o.watched[kind] = synced
	o.mu.Unlock()
	o.informers.Start(ctx.Done())
	return synced, notServed
}

// addHandlerIfServed is addHandler for a resource that the API server may not serve yet.
func addHandlerIfServed(
	informer cache.SharedIndexInformer, record func(obj any, deleted bool),
) (synced cache.InformerSynced, notServed *atomic.Bool) {
	notServed = &atomic.Bool{}
	_ = informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		if apierrors.IsNotFound(err) {
			notServed.Store(true)
			return
		}
		cache.DefaultWatchErrorHandler(ctx, r, err)
	}) // fails only on a started informer
	return addHandler(informer, record), notServed
}

func addHandler(informer cache.SharedIndexInformer, record func(obj any, deleted bool)) cache.InformerSynced {
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { record(obj, false) },
		UpdateFunc: func(_, obj any) { record(obj, false) },
		DeleteFunc: func(obj any) { record(obj, true) },
	})
	if err != nil { // only on a stopped informer
		return func() bool { return false }
	}
	return registration.HasSynced
}

// EventCount returns the number of observed Events.
func (o *Oracle) EventCount() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.events)
}

// Observed reports whether a version of an object or an Event, or a later one, was observed.
func (o *Oracle) Observed(uid types.UID, version string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	versions := slices.Clone(o.objects[uid].versions)
	if ev := o.events[uid]; ev != nil {
		versions = append(versions, ev.ResourceVersion)
	}
	return slices.ContainsFunc(versions, func(v string) bool {
		order, err := resourceversion.CompareResourceVersion(v, version)
		return err == nil && order >= 0
	})
}

// Interrupted records that the oracle may have missed versions, as during a restart of the API server. From then on a
// report of an unknown version is no difference. The latest versions are still known.
func (o *Oracle) Interrupted() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mayHaveMissed = true
}

// recordEvent records the latest version of an Event, also after its expiry.
func (o *Oracle) recordEvent(obj any, _ bool) {
	if ev, ok := obj.(*corev1.Event); ok {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.events[ev.UID] = ev
		if when := lastSeen(ev); !slices.ContainsFunc(o.times[ev.UID], when.Equal) {
			o.times[ev.UID] = append(o.times[ev.UID], when)
		}
	}
}

// unwrapTombstone returns the object of an informer notification, or the last known one after a missed deletion.
func unwrapTombstone(obj any) any {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		return tombstone.Obj
	}
	return obj
}

func (o *Oracle) recordObject(kind schema.GroupKind, obj any, deleted bool) {
	m, err := meta.Accessor(unwrapTombstone(obj))
	if err != nil {
		return
	}
	observed := object{
		fullName: fullName{kind, m.GetNamespace(), m.GetName()},
		uid:      m.GetUID(), resourceVersion: m.GetResourceVersion(), labels: m.GetLabels(), deleted: deleted,
	}
	for _, owner := range m.GetOwnerReferences() {
		observed.owners = append(observed.owners, owner.UID)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, known := o.objects[observed.uid]; !known {
		o.incarnationsByName[observed.fullName] = append(o.incarnationsByName[observed.fullName], observed.uid)
	}
	observed.versions = slices.Concat(o.objects[observed.uid].versions, []string{observed.resourceVersion})
	o.objects[observed.uid] = observed
}
