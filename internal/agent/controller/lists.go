package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/threeport/threeport-agent/api/v1alpha1"
)

// The memory of a listed resource in bytes: a constant, and its JSON as often as the agent keeps its names. These are in the list, the
// status, the report and the tree.
const (
	memoryPerResource = 512
	copiesOfNames     = 4
)

// ResourceLists holds the resources that ThreeportWorkloads list. The cache of the manager does not hold them, so that their memory is
// bounded: a user who may create ThreeportWorkloads may list any number of resources. If all lists exceed the bound, those of the oldest
// ThreeportWorkloads are held.
type ResourceLists struct {
	maxBytes int64

	mu       sync.Mutex
	byName   map[string]*resourceList // by the name of the ThreeportWorkload
	bytes    int64                    // of all lists, also of those that are not held
	excluded int                      // number of lists that are not held
}

// resourceList is the list of one generation of a ThreeportWorkload.
type resourceList struct {
	name       string
	uid        types.UID
	generation int64
	created    time.Time
	// objectBytes is the size of the ThreeportWorkload without its status, as it is stored.
	objectBytes int
	bytes       int64 // of memory
	// excluded is true if the list does not fit.
	excluded bool
	// held is true if resources has the list. An excluded list has to be read again before it is used.
	held      bool
	resources []v1alpha1.WorkloadResourceInstance
}

// NewResourceLists returns lists that take at most about maxBytes of memory.
func NewResourceLists(maxBytes int64) *ResourceLists {
	return &ResourceLists{maxBytes: maxBytes, byName: map[string]*resourceList{}}
}

// RegisterMetrics registers the metrics of lists.
func (l *ResourceLists) RegisterMetrics(registry prometheus.Registerer) {
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "threeport_agent_excluded_workloads",
		Help: "ThreeportWorkloads that are not watched, because the resources of all ThreeportWorkloads take too much memory.",
	}, func() float64 {
		l.mu.Lock()
		defer l.mu.Unlock()
		return float64(l.excluded)
	}))
}

// annotations are those that the agent reads.
var annotations = []string{v1alpha1.AnnotationNamespaces, v1alpha1.AnnotationReportAgain, v1alpha1.AnnotationRetryRejected}

// maxAnnotation bounds the kept annotations, in bytes. The namespaces of a longer one do not count: a part of it may end in the name of
// another namespace.
const maxAnnotation = 8 << 10

// Transform is the cache's transform function for ThreeportWorkloads. It takes the list from an object, and removes the parts that the
// agent does not use, because the API server bounds only the size of a whole object. client-go may transform an object twice. For one
// without a list and without managed fields, Transform keeps the list that it has. If there is none, it is read when it is needed.
func (l *ResourceLists) Transform(obj any) (any, error) {
	wl, ok := obj.(*v1alpha1.ThreeportWorkload)
	if !ok {
		return obj, nil
	}
	if len(wl.Spec.WorkloadResourceInstances) > 0 || wl.ManagedFields != nil {
		l.put(wl)
	}
	wl.Spec.WorkloadResourceInstances = nil
	wl.ManagedFields, wl.Labels, wl.OwnerReferences = nil, nil, nil
	if controllerutil.ContainsFinalizer(wl, v1alpha1.Finalizer) {
		wl.Finalizers = []string{v1alpha1.Finalizer}
	} else {
		wl.Finalizers = nil
	}
	maps.DeleteFunc(wl.Annotations, func(key, value string) bool {
		return !slices.Contains(annotations, key) || len(value) > maxAnnotation
	})
	return wl, nil
}

// put stores the list of a ThreeportWorkload.
func (l *ResourceLists) put(wl *v1alpha1.ThreeportWorkload) {
	object := *wl
	object.Status = v1alpha1.ThreeportWorkloadStatus{}
	list := &resourceList{
		name: wl.Name, uid: wl.UID, generation: wl.Generation, created: wl.CreationTimestamp.Time, objectBytes: jsonBytes(&object),
		resources: wl.Spec.WorkloadResourceInstances, held: true,
	}
	list.bytes = int64(memoryPerResource*len(list.resources) + copiesOfNames*jsonBytes(list.resources))

	l.mu.Lock()
	defer l.mu.Unlock()
	if before := l.byName[wl.Name]; before != nil {
		if before.uid == wl.UID && before.generation > wl.Generation {
			return
		}
		l.bytes -= before.bytes
	}
	l.byName[wl.Name] = list
	l.bytes += list.bytes
	l.choose()
}

// forget drops the list of a ThreeportWorkload.
func (l *ResourceLists) forget(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if list := l.byName[name]; list != nil {
		delete(l.byName, name)
		l.bytes -= list.bytes
		l.choose()
	}
}

// choose decides which lists are held; with mu held.
func (l *ResourceLists) choose() {
	if l.bytes <= l.maxBytes && l.excluded == 0 {
		return
	}
	oldestFirst := slices.SortedFunc(maps.Values(l.byName), func(a, b *resourceList) int {
		return cmp.Or(a.created.Compare(b.created), strings.Compare(a.name, b.name))
	})
	left := l.maxBytes
	l.excluded = 0
	for _, list := range oldestFirst {
		left -= list.bytes
		if list.excluded = left < 0; list.excluded {
			list.resources, list.held = nil, false
			l.excluded++
		}
	}
}

// errNewerList means that the cache is about to have a newer ThreeportWorkload, which will be reconciled.
var errNewerList = errors.New("the ThreeportWorkload has changed")

// of returns the resources of a ThreeportWorkload, or that they are excluded. It reads the ThreeportWorkload if the list is not held
// although it may be.
func (l *ResourceLists) of(ctx context.Context, reader client.Reader, wl *v1alpha1.ThreeportWorkload) (list resourceList, err error) {
	list, ok := l.find(wl)
	if ok && list.generation > wl.Generation {
		return resourceList{}, errNewerList
	}
	if ok && list.generation == wl.Generation && (list.held || list.excluded) {
		return list, nil
	}
	whole, err := readWhole(ctx, reader, wl)
	if err != nil {
		return resourceList{}, err
	}
	l.put(whole)
	list, _ = l.find(wl)
	return list, nil
}

// readWhole reads the parts of a ThreeportWorkload that the cache does not hold. The error is errNewerList if it has changed.
func readWhole(ctx context.Context, reader client.Reader, wl *v1alpha1.ThreeportWorkload) (*v1alpha1.ThreeportWorkload, error) {
	var current v1alpha1.ThreeportWorkloadList // the agent may list ThreeportWorkloads, and not get one
	if err := reader.List(ctx, &current, client.MatchingFields{"metadata.name": wl.Name}); err != nil {
		return nil, fmt.Errorf("read ThreeportWorkload %s: %w", wl.Name, err)
	}
	if len(current.Items) != 1 || current.Items[0].UID != wl.UID || current.Items[0].Generation != wl.Generation {
		return nil, errNewerList
	}
	return &current.Items[0], nil
}

// find returns what is known of the list of a ThreeportWorkload.
func (l *ResourceLists) find(wl *v1alpha1.ThreeportWorkload) (resourceList, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := l.byName[wl.Name]
	if list == nil || list.uid != wl.UID {
		return resourceList{}, false
	}
	return *list, true
}

// exclusion says why the list of a workload is not held; empty if it is.
func (l *ResourceLists) exclusion(name string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if list := l.byName[name]; list == nil || !list.excluded {
		return ""
	}
	return fmt.Sprintf("the resources of this and all older ThreeportWorkloads take more than %d MiB of memory, a quarter of GOMEMLIMIT: "+
		"raise GOMEMLIMIT and the memory limit of the agent, or delete ThreeportWorkloads", l.maxBytes>>20)
}
