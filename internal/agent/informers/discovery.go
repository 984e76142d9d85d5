package informers

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes/scheme"
)

// resolve returns the resource of a kind in the given version if the API server serves that version. Otherwise it returns
// the resource in the most preferred version of the group that has the kind. It returns errNotInstalled if the API server
// does not serve the kind, and other errors if discovery fails. It uses an earlier answer if cached is true.
func (c *Clients) resolve(ctx context.Context, gvk schema.GroupVersionKind, cached bool) (mapping, error) {
	if !isKind(gvk) {
		return mapping{}, fmt.Errorf("kind %q in the version %q is %w", gvk.GroupKind(), gvk.GroupVersion(), errNotInstalled)
	}
	c.mu.Lock()
	known, ok := c.mappings[gvk]
	if !cached {
		delete(c.mappings, gvk)
	}
	c.mu.Unlock()
	if ok && cached {
		return known, nil
	}
	found, err := c.discover(ctx, gvk)
	if err != nil {
		return mapping{}, err
	}
	c.mu.Lock()
	c.mappings[gvk] = found
	c.mu.Unlock()
	return found, nil
}

// isKind reports whether a kind can exist. The group and the version are parts of paths of the API server: "../api/v1" as the version
// would give a kind of the core group a second name.
func isKind(gvk schema.GroupVersionKind) bool {
	return (gvk.Group == "" || len(validation.IsDNS1123Subdomain(gvk.Group)) == 0) &&
		(gvk.Version == "" || len(validation.IsDNS1123Label(gvk.Version)) == 0)
}

func (c *Clients) discover(ctx context.Context, gvk schema.GroupVersionKind) (mapping, error) {
	if gvk.Version != "" {
		found, err := c.discoverIn(ctx, gvk.GroupVersion(), gvk.Kind)
		if !errors.Is(err, errNotInstalled) {
			return found, err
		}
	}
	versions, err := c.versions(ctx, gvk.Group)
	if err != nil {
		return mapping{}, err
	}
	for _, version := range versions {
		if version == gvk.Version {
			continue
		}
		found, err := c.discoverIn(ctx, schema.GroupVersion{Group: gvk.Group, Version: version}, gvk.Kind)
		if !errors.Is(err, errNotInstalled) {
			return found, err
		}
	}
	return mapping{}, fmt.Errorf("kind %s is %w%s", gvk.GroupKind(), errNotInstalled, groupHint(gvk.GroupKind()))
}

// groupHint names the group of a built-in kind that was looked for in another one; empty if there is none.
func groupHint(kind schema.GroupKind) string {
	var groups []string
	for known := range scheme.Scheme.AllKnownTypes() {
		if known.Kind == kind.Kind && known.Group != kind.Group && known.Version == "v1" {
			groups = append(groups, known.Group)
		}
	}
	if len(groups) == 0 {
		return ""
	}
	return fmt.Sprintf("; the group of %s is %q", kind.Kind, slices.Min(groups))
}

// discoverIn reads one group and version only, so that failures of others do not matter.
func (c *Clients) discoverIn(ctx context.Context, gv schema.GroupVersion, kind string) (mapping, error) {
	list := &metav1.APIResourceList{}
	err := c.typed.Discovery().RESTClient().Get().AbsPath(groupPath(gv.Group), gv.Version).Do(withAnswerLimit(ctx, maxDiscoveryBytes)).Into(list)
	if apierrors.IsNotFound(err) {
		return mapping{}, errNotInstalled
	}
	if err != nil {
		return mapping{}, fmt.Errorf("discover %s: %w", gv, err)
	}
	for _, r := range list.APIResources {
		if r.Kind == kind && !isSubresource(r.Name) {
			watchable := slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "watch")
			return mapping{gv.WithResource(r.Name), r.Namespaced, watchable}, nil
		}
	}
	return mapping{}, errNotInstalled
}

// versions returns the served versions of a group, the preferred one first; none if the group is not served.
func (c *Clients) versions(ctx context.Context, group string) ([]string, error) {
	if group == "" {
		return []string{"v1"}, nil
	}
	g := &metav1.APIGroup{}
	err := c.typed.Discovery().RESTClient().Get().AbsPath(groupPath(group)).Do(withAnswerLimit(ctx, maxDiscoveryBytes)).Into(g)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("discover group %s: %w", group, err)
	}
	versions := []string{g.PreferredVersion.Version}
	for _, v := range g.Versions {
		if !slices.Contains(versions, v.Version) {
			versions = append(versions, v.Version)
		}
	}
	return versions, nil
}

func groupPath(group string) string {
	if group == "" {
		return "/api"
	}
	return "/apis/" + group
}

func isSubresource(name string) bool { return slices.Contains([]byte(name), '/') }
