// Package oracle judges the agent from outside: it watches the cluster by itself, remembers every object and
// every Event that it saw, works out which of them belong to a workload, and compares that with what the
// control plane holds. It shares no code with the agent's own watching and attribution.
package oracle

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Object is what the oracle remembers of one incarnation of an object, after its end too.
type Object struct {
	Kind, Namespace, Name string
	UID                   types.UID
	ResourceVersion       string
	Labels                map[string]string
	Owners                []types.UID
	Deleted               bool
}

// Oracle remembers what it saw. It is safe for concurrent use.
type Oracle struct {
	mu      sync.Mutex
	objects map[types.UID]Object
	events  map[types.UID]*corev1.Event
}

// Watch starts to watch Events and the given resources, and returns when the first lists are complete.
// It goes on until the context ends.
func Watch(ctx context.Context, config *rest.Config, resources map[string]schema.GroupVersionResource) (*Oracle, error) {
	o := &Oracle{objects: map[types.UID]Object{}, events: map[types.UID]*corev1.Event{}}
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("oracle: %w", err)
	}
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("oracle: %w", err)
	}
	events := informers.NewSharedInformerFactory(typed, 0)
	synced := []cache.InformerSynced{add(events.Core().V1().Events().Informer(), o.sawEvent, func(any) {})}
	objects := metadatainformer.NewSharedInformerFactory(client, 0)
	for kind, resource := range resources {
		informer := objects.ForResource(resource).Informer()
		synced = append(synced, add(informer,
			func(obj any) { o.sawObject(kind, obj, false) }, func(obj any) { o.sawObject(kind, obj, true) }))
	}
	events.Start(ctx.Done())
	objects.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return nil, fmt.Errorf("oracle: watch the cluster: %w", ctx.Err())
	}
	return o, nil
}

func add(informer cache.SharedIndexInformer, saw, gone func(any)) cache.InformerSynced {
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: saw, UpdateFunc: func(_, obj any) { saw(obj) }, DeleteFunc: gone,
	})
	if err != nil { // only a stopped informer refuses
		return func() bool { return false }
	}
	return registration.HasSynced
}

func (o *Oracle) sawEvent(obj any) {
	if ev, ok := obj.(*corev1.Event); ok {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.events[ev.UID] = ev
	}
}

func (o *Oracle) sawObject(kind string, obj any, deleted bool) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return
	}
	seen := Object{
		Kind: kind, Namespace: m.GetNamespace(), Name: m.GetName(), UID: m.GetUID(),
		ResourceVersion: m.GetResourceVersion(), Labels: m.GetLabels(), Deleted: deleted,
	}
	for _, owner := range m.GetOwnerReferences() {
		seen.Owners = append(seen.Owners, owner.UID)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.objects[seen.UID] = seen
}

// Current returns the object that bears a name now.
func (o *Oracle) Current(kind, namespace, name string) (Object, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, obj := range o.objects {
		if obj.Kind == kind && obj.Namespace == namespace && obj.Name == name && !obj.Deleted {
			return obj, true
		}
	}
	return Object{}, false
}

// Events returns the newest version of every Event seen, those that have expired too.
func (o *Oracle) Events() []*corev1.Event {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := make([]*corev1.Event, 0, len(o.events))
	for _, ev := range o.events {
		out = append(out, ev)
	}
	return out
}

// Resources that most workloads are made of, by kind.
func Resources() map[string]schema.GroupVersionResource {
	core := func(name string) schema.GroupVersionResource { return corev1.SchemeGroupVersion.WithResource(name) }
	apps := schema.GroupVersion{Group: "apps", Version: "v1"}
	batch := schema.GroupVersion{Group: "batch", Version: "v1"}
	return map[string]schema.GroupVersionResource{
		"Pod": core("pods"), "ConfigMap": core("configmaps"), "Secret": core("secrets"), "Service": core("services"),
		"Deployment": apps.WithResource("deployments"), "ReplicaSet": apps.WithResource("replicasets"),
		"StatefulSet": apps.WithResource("statefulsets"), "Job": batch.WithResource("jobs"), "CronJob": batch.WithResource("cronjobs"),
	}
}
