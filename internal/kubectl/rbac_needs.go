package kubectl

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/threeport/threeport-agent/api/v1alpha1"
)

// access is a resource in a namespace. The namespace is empty for cluster-scoped resources.
type access struct {
	schema.GroupResource
	namespace string
}

func (a access) String() string {
	if a.namespace == "" {
		return a.GroupResource.String()
	}
	return a.GroupResource.String() + " in namespace " + a.namespace
}

// need is an access that the agent needs.
type need struct {
	access
	watch   bool // besides list
	reason  string
	missing []string // the verbs that the agent lacks
}

func (n *need) verbs() []string {
	if n.watch {
		return []string{"list", "watch"}
	}
	return []string{"list"}
}

func (n *need) isMissing() bool { return len(n.missing) > 0 }

var (
	secretsResource        = schema.GroupResource{Resource: "secrets"}
	endpointSlicesResource = schema.GroupResource{Group: "discovery.k8s.io", Resource: "endpointslices"}
	serviceKind            = schema.GroupKind{Kind: "Service"}
	// alwaysWatched are the resources that the agent watches for every workload.
	alwaysWatched = []schema.GroupResource{
		{Resource: "events"}, {Resource: "pods"}, {Group: "apps", Resource: "replicasets"}, {Group: "batch", Resource: "jobs"},
	}
)

// needCollector collects the permissions that the agent needs for ThreeportWorkloads.
type needCollector struct {
	*objectReader
	secrets bool // whether listed Secrets are included
	needs   map[access]*need
	notes   []string // about kinds that are left out or guessed
}

func newNeedCollector(cluster *connection, secrets bool) (*needCollector, error) {
	reader, err := newObjectReader(cluster, false)
	if err != nil {
		return nil, err
	}
	return &needCollector{objectReader: reader, secrets: secrets, needs: map[access]*need{}}, nil
}

// collect adds the needs of workloads.
func (c *needCollector) collect(ctx context.Context, list []v1alpha1.ThreeportWorkload) error {
	leftOut := 0
	for i := range list {
		n, err := c.addListed(&list[i])
		if err != nil {
			return err
		}
		leftOut += n
	}
	if leftOut > 0 {
		c.notes = append(c.notes, many(leftOut, "listed Secret")+" left out: --secrets includes Secrets")
	}
	slices.Sort(c.notes)
	c.notes = slices.Compact(c.notes)
	return c.addDerived(ctx, list)
}

// addListed adds the listed kinds of a workload, and the kinds that the agent watches for every workload. It returns the
// number of Secrets that it left out.
func (c *needCollector) addListed(wl *v1alpha1.ThreeportWorkload) (leftOut int, err error) {
	listed := wl.Spec.WorkloadResourceInstances
	fallback := defaultNamespace(wl)
	namespaces := map[string]bool{}
	for _, r := range listed {
		kind := schema.GroupKind{Group: r.Group, Kind: r.Kind}
		if !isKind(kind) { // a role with the group * would permit all Secrets
			c.notes = append(c.notes, fmt.Sprintf("ThreeportWorkload %s lists the kind %q of the group %q, which cannot exist: it is left out.", wl.Name, r.Kind, r.Group))
			continue
		}
		needed, err := c.resolve(kind, r.Version, cmp.Or(r.Namespace, fallback))
		if err != nil {
			return 0, err
		}
		if needed.namespace != "" {
			namespaces[needed.namespace] = true
		}
		if needed.GroupResource == secretsResource && !c.secrets {
			leftOut++
			continue
		}
		reason := fmt.Sprintf("ThreeportWorkload %s lists %s", wl.Name, subject(r.Kind, needed.namespace, r.Name))
		c.add(needed, true, reason)
		if kind == serviceKind {
			c.add(access{endpointSlicesResource, needed.namespace}, true, reason)
		}
	}
	for namespace := range namespaces {
		for _, resource := range alwaysWatched {
			c.add(access{resource, namespace}, true, "for every ThreeportWorkload")
		}
	}
	return leftOut, nil
}

// isKind reports whether the API server could serve a kind.
func isKind(kind schema.GroupKind) bool {
	return (kind.Group == "" || len(validation.IsDNS1123Subdomain(kind.Group)) == 0) && len(validation.IsDNS1035Label(strings.ToLower(kind.Kind))) == 0
}

// resolve returns the access to a kind. It guesses the resource of a kind that the cluster does not serve.
func (c *needCollector) resolve(kind schema.GroupKind, version, namespace string) (access, error) {
	mapping, err := c.mapping(kind, version)
	if meta.IsNoMatchError(err) {
		guess, _ := meta.UnsafeGuessKindToResource(kind.WithVersion(version))
		c.notes = append(c.notes, fmt.Sprintf("The cluster does not serve %s: its resource name %s is a guess.", kind, guess.GroupResource()))
		return access{guess.GroupResource(), namespace}, nil
	}
	if err != nil {
		return access{}, clusterFailure("ask for the kind "+kind.String(), err)
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		namespace = ""
	}
	return access{mapping.Resource.GroupResource(), namespace}, nil
}

// addDerived adds the kinds of the existing objects below the listed resources: the agent looks up the owners of Pods, and
// the objects of Events. Below custom resources, it searches every kind.
func (c *needCollector) addDerived(ctx context.Context, list []v1alpha1.ThreeportWorkload) error {
	roots := map[types.UID]bool{}
	scopes := map[listScope]bool{}
	for i := range list {
		listed, err := c.readListed(ctx, &list[i])
		if err != nil {
			return err
		}
		c.allKinds = false
		for j := range listed {
			s := &listed[j]
			if s.object != nil {
				roots[s.object.GetUID()] = true
				c.allKinds = c.allKinds || isCustom(s.listed.Group)
			}
			if s.state == v1alpha1.ResourceForbidden && !s.notChecked() {
				c.noteIncomplete(s.message + ", so kinds below it may be missing here")
			}
		}
		for _, scope := range c.scopes(listed) {
			if scope.GroupResource() != secretsResource {
				scopes[scope] = true
			}
		}
	}
	known, err := c.scan(ctx, slices.Collect(maps.Keys(scopes)))
	if err != nil {
		return err
	}
	for _, d := range descendants(known, roots) {
		c.add(access{d.GroupResource(), d.namespace}, false, fmt.Sprintf("%s %s is below a listed resource", d.GroupResource(), d.name))
	}
	return nil
}

// add adds a need. The first reason stays.
func (c *needCollector) add(a access, watch bool, reason string) {
	n := c.needs[a]
	if n == nil {
		n = &need{access: a, reason: reason}
		c.needs[a] = n
	}
	n.watch = n.watch || watch
}

// sorted returns the needs by group, resource and namespace.
func (c *needCollector) sorted() []*need {
	return slices.SortedFunc(maps.Values(c.needs), func(a, b *need) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.namespace, b.namespace))
	})
}
