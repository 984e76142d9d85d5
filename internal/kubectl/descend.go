package kubectl

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/health"
)

// found is an object of which only the metadata is known.
type found struct {
	place
	uid    types.UID
	name   string
	owners []types.UID
}

// scan lists the metadata of everything in some places.
func (g *gatherer) scan(ctx context.Context, places []place) ([]found, error) {
	return g.scanEach(ctx, places, metav1.ListOptions{})
}

// scanLabel lists what belongs to a workload by its label.
func (g *gatherer) scanLabel(ctx context.Context, wl *v1alpha1.ThreeportWorkload) ([]found, error) {
	label := v1alpha1.LabelWorkloadInstance
	if wl.Spec.WorkloadType == v1alpha1.WorkloadTypeHelmInstance {
		label = v1alpha1.LabelHelmWorkloadInstance
	}
	var places []place
	for _, r := range baseResources {
		places = append(places, place{r, metav1.NamespaceAll})
	}
	return g.scanEach(ctx, places, metav1.ListOptions{LabelSelector: label + "=" + strconv.FormatInt(wl.Spec.WorkloadInstanceID, 10)})
}

func (g *gatherer) scanEach(ctx context.Context, places []place, options metav1.ListOptions) ([]found, error) {
	var mu sync.Mutex
	var out []found
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(concurrency)
	for _, p := range places {
		group.Go(func() error {
			err := g.listMetadata(ctx, p, options, func(m *metav1.PartialObjectMetadata) {
				f := found{place: place{p.GroupVersionResource, m.Namespace}, uid: m.UID, name: m.Name}
				for _, ref := range m.OwnerReferences {
					f.owners = append(f.owners, ref.UID)
				}
				mu.Lock()
				defer mu.Unlock()
				out = append(out, f)
			})
			return g.trouble(p.String(), err)
		})
	}
	return out, group.Wait()
}

// descendants returns what descends from some objects, without these.
func descendants(known []found, roots map[types.UID]bool) []found {
	children := map[types.UID][]int{}
	for i := range known {
		for _, owner := range known[i].owners {
			children[owner] = append(children[owner], i)
		}
	}
	var out []found
	seen := maps.Clone(roots)
	for queue := slices.Collect(maps.Keys(roots)); len(queue) > 0; queue = queue[1:] {
		for _, i := range children[queue[0]] {
			if f := known[i]; !seen[f.uid] {
				seen[f.uid] = true
				out = append(out, f)
				queue = append(queue, f.uid)
			}
		}
	}
	return out
}

// readAll reads objects of which the metadata is known. What is gone meanwhile is left out.
func (g *gatherer) readAll(ctx context.Context, wanted []found) ([]*unstructured.Unstructured, error) {
	names := map[place][]string{}
	uids := map[types.UID]bool{}
	for _, f := range wanted {
		names[f.place] = append(names[f.place], f.name)
		uids[f.uid] = true
	}
	var mu sync.Mutex
	var out []*unstructured.Unstructured
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(concurrency)
	for p, names := range names {
		group.Go(func() error {
			objects, err := g.read(ctx, p, names)
			mu.Lock()
			defer mu.Unlock()
			for _, u := range objects {
				if uids[u.GetUID()] {
					out = append(out, u)
				}
			}
			return g.trouble(p.String(), err)
		})
	}
	return out, group.Wait()
}

// readWarnings reads the latest Event of type Warning about each object.
func (g *gatherer) readWarnings(ctx context.Context, have *gathered) (map[types.UID]health.Warning, error) {
	namespaces := map[string]bool{}
	uids := map[types.UID]bool{}
	note := func(u *unstructured.Unstructured) {
		uids[u.GetUID()] = true
		namespaces[cmp.Or(u.GetNamespace(), metav1.NamespaceDefault)] = true // where Events about objects of the cluster are
	}
	for _, s := range have.listed {
		if s.object != nil {
			note(s.object)
		}
	}
	for _, u := range slices.Concat(have.derived, have.labelled) {
		note(u)
	}
	latest := map[types.UID]health.Warning{}
	for namespace := range namespaces {
		p := place{events, namespace}
		err := g.list(ctx, p, metav1.ListOptions{FieldSelector: "type=Warning"}, func(u *unstructured.Unstructured) {
			uid, warning, ok := warningOf(u.Object)
			if ok && uids[uid] && !warning.Time.Before(latest[uid].Time) {
				latest[uid] = warning
			}
		})
		if err := g.trouble(p.String(), err); err != nil {
			return nil, err
		}
	}
	return latest, nil
}
