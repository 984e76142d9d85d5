package kubectl

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/attribution"
	"github.com/threeport/threeport-agent/internal/health"
)

// listedResource is a listed resource with its object.
type listedResource struct {
	listed v1alpha1.WorkloadResourceInstance // with its namespace
	state  v1alpha1.ResourceState
	// message says why the object is not present.
	message string
	object  *unstructured.Unstructured // nil if the object is not present
}

// isReportedAs reports whether a status is that of the resource.
func (l *listedResource) isReportedAs(rs v1alpha1.ResourceStatus) bool {
	return l.listed.Group == rs.Group && l.listed.Kind == rs.Kind && l.listed.Namespace == rs.Namespace && l.listed.Name == rs.Name
}

// workloadObjects has the objects of a workload.
type workloadObjects struct {
	listed     []listedResource
	derived    []*unstructured.Unstructured // by owners
	labelled   []*unstructured.Unstructured // by the workload's label, in no order
	warnings   map[types.UID]health.Warning
	incomplete []string // sorted messages about objects that may be missing, each once
}

// objectReader reads the objects of a workload. It only uses lists, so that it sees the same objects as the agent.
type objectReader struct {
	dynamic   dynamic.Interface
	metadata  metadata.Interface
	mapper    meta.RESTMapper
	discovery discovery.CachedDiscoveryInterface
	allKinds  bool

	mu         sync.Mutex
	incomplete []string // since the latest call of takeIncomplete
}

func newObjectReader(c *connection, allKinds bool) (*objectReader, error) {
	r := &objectReader{allKinds: allKinds}
	var err error
	if r.dynamic, err = c.dynamic(); err != nil {
		return nil, err
	}
	if r.metadata, err = c.metadata(); err != nil {
		return nil, err
	}
	if r.mapper, err = c.flags.ToRESTMapper(); err != nil {
		return nil, clusterFailure("ask which kinds there are", err)
	}
	if r.discovery, err = c.flags.ToDiscoveryClient(); err != nil {
		return nil, clusterFailure("ask which kinds there are", err)
	}
	return r, nil
}

// readWorkload reads all objects of a workload. Its messages about missing objects do not include those of other workloads.
func (r *objectReader) readWorkload(ctx context.Context, wl *v1alpha1.ThreeportWorkload) (*workloadObjects, error) {
	r.takeIncomplete() // those of a read that failed
	out := &workloadObjects{}
	var err error
	if out.listed, err = r.readListed(ctx, wl); err != nil {
		return nil, err
	}
	known, err := r.scan(ctx, r.scopes(out.listed))
	if err != nil {
		return nil, err
	}
	labelled, err := r.scanLabel(ctx, wl)
	if err != nil {
		return nil, err
	}
	roots := map[types.UID]bool{}
	for _, s := range out.listed {
		if s.object != nil {
			roots[s.object.GetUID()] = true
		}
	}
	byOwner := descendants(known, roots)
	if out.derived, err = r.readAll(ctx, byOwner); err != nil {
		return nil, err
	}
	labelled = slices.DeleteFunc(labelled, func(f objectMetadata) bool {
		return roots[f.uid] || slices.ContainsFunc(byOwner, func(other objectMetadata) bool { return other.uid == f.uid })
	})
	if out.labelled, err = r.readAll(ctx, r.dropIgnored(wl, out.listed, labelled)); err != nil {
		return nil, err
	}
	if out.warnings, err = r.readWarnings(ctx, out); err != nil {
		return nil, err
	}
	out.incomplete = r.takeIncomplete()
	return out, nil
}

// tolerate records that a scope cannot be read. It returns only errors after which the result would be useless.
func (r *objectReader) tolerate(what string, err error) error {
	switch {
	case err == nil, apierrors.IsNotFound(err): // a kind that is not installed has no objects
		return nil
	case apierrors.IsForbidden(err):
		r.noteIncomplete(what + " may not be listed, so some may be missing here")
		return nil
	case unavailable(err):
		r.noteIncomplete(what + " cannot be listed, so some may be missing here: " + err.Error())
		return nil
	}
	return clusterFailure("list "+what, err)
}

func (r *objectReader) noteIncomplete(problem string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.incomplete = append(r.incomplete, problem)
}

// takeIncomplete returns the messages since its latest call, sorted, each once.
func (r *objectReader) takeIncomplete() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.incomplete
	r.incomplete = nil
	return sortedSet(taken)
}

// sortedSet sorts texts in place, and returns each once.
func sortedSet(texts []string) []string {
	slices.Sort(texts)
	return slices.Compact(texts)
}

// unavailable reports whether the API server fails for a kind, such as one of an aggregated API.
func unavailable(err error) bool {
	return apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err)
}

// readListed reads the listed resources, in their order.
func (r *objectReader) readListed(ctx context.Context, wl *v1alpha1.ThreeportWorkload) ([]listedResource, error) {
	fallback := defaultNamespace(wl)
	out := make([]listedResource, len(wl.Spec.WorkloadResourceInstances))
	at := map[listScope]map[string][]int{} // by name
	for i, listed := range wl.Spec.WorkloadResourceInstances {
		out[i].listed = listed
		mapping, err := r.mapping(schema.GroupKind{Group: listed.Group, Kind: listed.Kind}, listed.Version)
		if meta.IsNoMatchError(err) {
			out[i].state, out[i].message = v1alpha1.ResourceKindNotInstalled, "the cluster does not serve "+listed.Kind
			if listed.Group != "" {
				out[i].message += "." + listed.Group
			}
			continue
		}
		if err != nil {
			return nil, clusterFailure("ask for the kind "+listed.Kind, err)
		}
		switch {
		case mapping.Scope.Name() != meta.RESTScopeNameNamespace:
			out[i].listed.Namespace = ""
		case listed.Namespace == "":
			out[i].listed.Namespace = fallback
		}
		scope := listScope{mapping.Resource, out[i].listed.Namespace}
		if at[scope] == nil {
			at[scope] = map[string][]int{}
		}
		at[scope][listed.Name] = append(at[scope][listed.Name], i)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(concurrency)
	for scope, names := range at {
		group.Go(func() error { return r.readListedIn(ctx, scope, names, out) })
	}
	return out, group.Wait()
}

// readListedIn reads the listed resources of one scope.
func (r *objectReader) readListedIn(ctx context.Context, scope listScope, names map[string][]int, out []listedResource) error {
	objects, err := r.read(ctx, scope, slices.Sorted(maps.Keys(names)))
	state, message := v1alpha1.ResourceAbsent, ""
	switch {
	case apierrors.IsForbidden(err):
		state, message = v1alpha1.ResourceForbidden, scope.String()+" may not be listed"
	case apierrors.IsNotFound(err):
		state, message = v1alpha1.ResourceKindNotInstalled, "the cluster does not serve "+scope.GroupResource().String()
	case unavailable(err):
		state, message = v1alpha1.ResourceUnavailable, err.Error()
	case err != nil:
		return clusterFailure("list "+scope.String(), err)
	}
	for _, indexes := range names {
		for _, i := range indexes {
			out[i].state, out[i].message = state, message
		}
	}
	for _, u := range objects {
		for _, i := range names[u.GetName()] {
			out[i].state, out[i].object = v1alpha1.ResourcePresent, u
		}
	}
	return nil
}

// defaultNamespace returns the namespace of resources that are listed without one.
func defaultNamespace(wl *v1alpha1.ThreeportWorkload) string {
	return attribution.DefaultNamespace(writtenNamespaces(wl))
}

// writtenNamespaces returns the namespaces of the listed resources as they are written, which may be empty.
func writtenNamespaces(wl *v1alpha1.ThreeportWorkload) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range wl.Spec.WorkloadResourceInstances {
			if !yield(wl.Spec.WorkloadResourceInstances[i].Namespace) {
				return
			}
		}
	}
}

func (l *listedResource) verdict(judged health.Assessment) health.Assessment {
	name := subject(l.listed.Kind, l.listed.Namespace, l.listed.Name)
	switch l.state {
	case v1alpha1.ResourcePresent:
		return judged
	case v1alpha1.ResourceAbsent:
		return health.Assessment{Verdict: health.Verdict{Status: health.Down, Reason: "Absent", Message: name + " does not exist"}}
	case v1alpha1.ResourceForbidden:
		if l.notChecked() {
			return health.Assessment{Verdict: health.Verdict{Status: health.Unknown, Reason: health.NotChecked, Message: name + ": " + l.message}}
		}
	case v1alpha1.ResourceKindNotInstalled, v1alpha1.ResourceUnavailable, v1alpha1.ResourcePending:
	}
	return health.Assessment{Verdict: health.Verdict{Status: health.Unknown, Reason: string(l.state), Message: fmt.Sprintf("%s: %s", name, l.message)}}
}

// notChecked reports whether the resource is a Secret that may not be read. As in the agent's verdict, it does not count.
func (l *listedResource) notChecked() bool {
	return l.state == v1alpha1.ResourceForbidden && l.listed.Group == "" && l.listed.Kind == "Secret"
}
