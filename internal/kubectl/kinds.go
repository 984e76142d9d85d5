package kubectl

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func resource(group, version, name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: version, Resource: name}
}

// baseResources are searched for descendants of every listed resource.
var baseResources = []schema.GroupVersionResource{
	resource("apps", "v1", "deployments"),
	resource("apps", "v1", "statefulsets"),
	resource("apps", "v1", "daemonsets"),
	resource("apps", "v1", "replicasets"),
	resource("batch", "v1", "cronjobs"),
	resource("batch", "v1", "jobs"),
	resource("", "v1", "replicationcontrollers"),
	resource("", "v1", "pods"),
	resource("", "v1", "services"),
	resource("discovery.k8s.io", "v1", "endpointslices"),
	resource("networking.k8s.io", "v1", "ingresses"),
	resource("", "v1", "persistentvolumeclaims"),
}

// mapping returns the mapping of a kind in the wanted version, or else in another one.
func (r *objectReader) mapping(kind schema.GroupKind, version string) (*meta.RESTMapping, error) {
	mapping, err := r.mapper.RESTMapping(kind, version)
	if meta.IsNoMatchError(err) {
		return r.mapper.RESTMapping(kind)
	}
	return mapping, err
}

// scopes returns where to search for descendants of listed resources: in their namespaces, or in all if a cluster-scoped
// custom resource is listed.
func (r *objectReader) scopes(listed []listedResource) []listScope {
	namespaces, groups := map[string]bool{}, map[string]bool{}
	everywhere := false
	for _, s := range listed {
		if s.object == nil {
			continue
		}
		if s.listed.Namespace != "" {
			namespaces[s.listed.Namespace] = true
		}
		if isCustom(s.listed.Group) {
			groups[s.listed.Group] = true
			everywhere = everywhere || s.listed.Namespace == ""
		}
	}
	if everywhere {
		namespaces = map[string]bool{metav1.NamespaceAll: true}
	}
	var out []listScope
	for _, s := range r.searched(groups) {
		if !s.namespaced && everywhere {
			out = append(out, listScope{s.GroupVersionResource, ""})
		}
		for namespace := range namespaces {
			if s.namespaced {
				out = append(out, listScope{s.GroupVersionResource, namespace})
			}
		}
	}
	return out
}

// searched returns the resources to search, given the groups of the listed custom resources.
func (r *objectReader) searched(groups map[string]bool) []servedResource {
	var out []servedResource
	base := map[schema.GroupResource]bool{}
	for _, gvr := range baseResources {
		out = append(out, servedResource{gvr, true})
		base[gvr.GroupResource()] = true
	}
	if !r.allKinds && len(groups) == 0 {
		return out
	}
	for _, s := range r.served() {
		if !base[s.GroupResource()] && (r.allKinds || related(s.Group, groups)) {
			out = append(out, s)
		}
	}
	return out
}

// isCustom reports whether a group has custom resources. Groups of Kubernetes itself have no dot or end in .k8s.io, but so
// do some groups of custom resources.
func isCustom(group string) bool {
	return strings.Contains(group, ".") && !strings.HasSuffix(group, ".authorization.k8s.io") && !slices.Contains([]string{
		"networking.k8s.io", "storage.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "admissionregistration.k8s.io",
		"discovery.k8s.io", "policy", "coordination.k8s.io", "node.k8s.io", "scheduling.k8s.io", "certificates.k8s.io",
		"flowcontrol.apiserver.k8s.io", "events.k8s.io", "resource.k8s.io",
	}, group)
}

// related reports whether a group is a subdomain or a parent domain of another one, such as infrastructure.cluster.x-k8s.io
// of cluster.x-k8s.io.
func related(group string, others map[string]bool) bool {
	for other := range others {
		if group == other || strings.HasSuffix(group, "."+other) || strings.HasSuffix(other, "."+group) {
			return true
		}
	}
	return false
}

// servedResource is a resource that can be listed.
type servedResource struct {
	schema.GroupVersionResource
	namespaced bool
}

// served returns the resources that the cluster serves, in their preferred versions.
func (r *objectReader) served() []servedResource {
	lists, err := r.discovery.ServerPreferredResources()
	if err != nil {
		r.noteIncomplete("some kinds could not be discovered: " + err.Error())
	}
	return listable(lists)
}

func listable(lists []*metav1.APIResourceList) []servedResource {
	var out []servedResource
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for i := range list.APIResources {
			r := &list.APIResources[i]
			if slices.Contains(r.Verbs, "list") && !strings.Contains(r.Name, "/") && r.Kind != "Event" {
				out = append(out, servedResource{gv.WithResource(r.Name), r.Namespaced})
			}
		}
	}
	return out
}
