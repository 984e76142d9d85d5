package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/threeport/threeport-agent/api/v1alpha1"
)

// oracle tells what the API server holds, found in another way than the agent's: by listing every object of
// every kind. It remembers what is gone, since Events about it stay.
type oracle struct {
	discovery discovery.DiscoveryInterface
	metadata  metadata.Interface
	typed     kubernetes.Interface
	objects   map[types.UID]object
}

// object is what is known of one incarnation of an object.
type object struct {
	kind            schema.GroupKind
	namespace, name string
	uid             types.UID
	resourceVersion string
	labels          map[string]string
	owners          []types.UID
	gone            bool
}

// truth is what the API server holds, and what it held.
type truth struct {
	objects map[types.UID]object
	events  []corev1.Event
}

func newOracle(config *rest.Config) (*oracle, error) {
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NoWarnings{} // of deprecated kinds, which are listed like all others
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client of the oracle: %w", err)
	}
	meta, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client of the oracle: %w", err)
	}
	return &oracle{discovery: typed.Discovery(), metadata: meta, typed: typed, objects: map[types.UID]object{}}, nil
}

// look lists everything. Events come last, so that their objects are known.
func (o *oracle) look(ctx context.Context) (truth, error) {
	kinds, err := o.kinds()
	if err != nil {
		return truth{}, err
	}
	for uid, obj := range o.objects {
		obj.gone = true
		o.objects[uid] = obj
	}
	for resource, kind := range kinds {
		list, err := o.metadata.Resource(resource).List(ctx, metav1.ListOptions{})
		if err != nil {
			return truth{}, fmt.Errorf("list %s: %w", resource.Resource, err)
		}
		for i := range list.Items {
			obj := newObject(kind, &list.Items[i])
			o.objects[obj.uid] = obj
		}
	}
	events, err := o.typed.CoreV1().Events(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return truth{}, fmt.Errorf("list events: %w", err)
	}
	return truth{objects: o.objects, events: events.Items}, nil
}

// kinds returns the resources that can be watched, Events left out.
func (o *oracle) kinds() (map[schema.GroupVersionResource]schema.GroupKind, error) {
	lists, err := o.discovery.ServerPreferredResources()
	if err != nil {
		return nil, fmt.Errorf("discover the kinds: %w", err)
	}
	kinds := map[schema.GroupVersionResource]schema.GroupKind{}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("discover the kinds: %w", err)
		}
		for i := range list.APIResources {
			r := &list.APIResources[i]
			if r.Name != "events" && slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "watch") {
				kinds[version.WithResource(r.Name)] = schema.GroupKind{Group: version.Group, Kind: r.Kind}
			}
		}
	}
	return kinds, nil
}

func newObject(kind schema.GroupKind, m metav1.Object) object {
	obj := object{
		kind: kind, namespace: m.GetNamespace(), name: m.GetName(), uid: m.GetUID(),
		resourceVersion: m.GetResourceVersion(), labels: m.GetLabels(),
	}
	for _, owner := range m.GetOwnerReferences() {
		obj.owners = append(obj.owners, owner.UID)
	}
	return obj
}

// current returns the object that a listed resource names.
func (t truth) current(res v1alpha1.WorkloadResourceInstance) (object, bool) {
	for _, obj := range t.objects {
		if !obj.gone && names(res, obj) {
			return obj, true
		}
	}
	return object{}, false
}

func names(res v1alpha1.WorkloadResourceInstance, obj object) bool {
	return obj.kind == schema.GroupKind{Group: res.Group, Kind: res.Kind} && obj.namespace == res.Namespace && obj.name == res.Name
}

// place is where an object belongs.
type place struct {
	workload deployed
	// resourceID is the listed resource that it is or descends from; 0 if it has no row.
	resourceID int64
	// itself is true if the object is the listed resource.
	itself bool
}

// placeOf walks up the owners of an object to one that a workload lists. Where there is none, a label tells.
func (t truth) placeOf(uid types.UID, workloads []deployed) (place, bool) {
	visited := map[types.UID]bool{}
	for level, itself := []types.UID{uid}, true; len(level) > 0; itself = false {
		var owners []types.UID
		for _, at := range level {
			obj, known := t.objects[at]
			if !known || visited[at] {
				continue
			}
			visited[at] = true
			owners = append(owners, obj.owners...)
			if w, res, ok := listing(obj, workloads); ok {
				return place{w, res.ThreeportID, itself}, true
			}
		}
		level = owners
	}
	for _, w := range workloads {
		label := v1alpha1.LabelWorkloadInstance
		if w.helm() {
			label = v1alpha1.LabelHelmWorkloadInstance
		}
		if t.objects[uid].labels[label] == strconv.FormatInt(w.instanceID, 10) {
			return place{workload: w}, true
		}
	}
	return place{}, false
}

func listing(obj object, workloads []deployed) (deployed, v1alpha1.WorkloadResourceInstance, bool) {
	for _, w := range workloads {
		for _, res := range w.resources {
			if names(res, obj) {
				return w, res, true
			}
		}
	}
	return deployed{}, v1alpha1.WorkloadResourceInstance{}, false
}

// happened is when an Event was seen last. Events of the newer API have no lastTimestamp.
func happened(ev *corev1.Event) time.Time {
	switch {
	case ev.Series != nil && !ev.Series.LastObservedTime.IsZero():
		return ev.Series.LastObservedTime.Time
	case !ev.LastTimestamp.IsZero():
		return ev.LastTimestamp.Time
	case !ev.EventTime.IsZero():
		return ev.EventTime.Time
	case !ev.FirstTimestamp.IsZero():
		return ev.FirstTimestamp.Time
	}
	return ev.CreationTimestamp.Time
}
