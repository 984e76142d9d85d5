package informers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

var (
	// errNotInstalled means that the API server answered, and serves no such kind.
	errNotInstalled = errors.New("not installed")
	// errNoObject means that it serves the kind, and holds no such object. HTTP 404 does not say that, but that
	// the resource is not served any more as it was.
	errNoObject = errors.New("no such object")
)

// Requests to the API server beside the watches: reviews, discovery, and objects that are fetched one by
// one. The bound keeps a burst of new workloads from flooding a small API server.
const (
	clientQPS   = 100
	clientBurst = 200
)

// Clients are the ways to ask the API server. Built-in kinds go through the typed client and protobuf,
// listed kinds through the dynamic one, and kinds of which only the identity and the owners matter, or only
// those may be seen, through the metadata client.
type Clients struct {
	typed    kubernetes.Interface
	dynamic  dynamic.Interface
	metadata metadata.Interface
	secrets  metadata.Interface

	mu       sync.Mutex
	mappings map[schema.GroupVersionKind]mapping // answers of discovery
}

// mapping is how a kind is served.
type mapping struct {
	gvr        schema.GroupVersionResource
	namespaced bool
	watchable  bool // it has list and watch
}

// NewClients returns clients that share one connection pool and one rate limit. A connection that is open, and over
// which nothing comes any more, is given up within 45 seconds: client-go pings one of HTTP/2 after 30 seconds of
// silence, and waits 15 for the answer. Secrets have connections of their own, see [secretsAnswer].
func NewClients(config *rest.Config) (*Clients, error) {
	config = rest.CopyConfig(config)
	config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(clientQPS, clientBurst)
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	protobuf := rest.CopyConfig(config)
	protobuf.ContentType = runtime.ContentTypeProtobuf
	protobuf.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	typed, err := kubernetes.NewForConfigAndClient(protobuf, httpClient)
	if err != nil {
		return nil, fmt.Errorf("typed client: %w", err)
	}
	dyn, err := dynamic.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("dynamic client: %w", err)
	}
	meta, err := metadata.NewForConfigAndClient(metadata.ConfigFor(config), httpClient)
	if err != nil {
		return nil, fmt.Errorf("metadata client: %w", err)
	}
	secrets, err := newSecretsClient(config)
	if err != nil {
		return nil, err
	}
	return &Clients{
		typed: typed, dynamic: dyn, metadata: meta, secrets: secrets,
		mappings: map[schema.GroupVersionKind]mapping{},
	}, nil
}

// metadataOf returns the client that a resource's metadata is read with.
func (c *Clients) metadataOf(gvr schema.GroupVersionResource) metadata.Interface {
	if gvr.Group == "" && gvr.Resource == "secrets" {
		return c.secrets
	}
	return c.metadata
}

// resolve finds the resource of a kind: in the version asked for if it is served, else in the group's
// preferred version that has it. It returns errNotInstalled if the API server serves no such kind, and
// other errors if it does not tell. An earlier answer is good enough if cached is true.
func (c *Clients) resolve(ctx context.Context, gvk schema.GroupVersionKind, cached bool) (mapping, error) {
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
	return mapping{}, fmt.Errorf("kind %s is %w", gvk.GroupKind(), errNotInstalled)
}

// discoverIn asks for one group and version only, so that another that fails does not matter.
func (c *Clients) discoverIn(ctx context.Context, gv schema.GroupVersion, kind string) (mapping, error) {
	list := &metav1.APIResourceList{}
	err := c.typed.Discovery().RESTClient().Get().AbsPath(groupPath(gv.Group), gv.Version).Do(ctx).Into(list)
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
	err := c.typed.Discovery().RESTClient().Get().AbsPath(groupPath(group)).Do(ctx).Into(g)
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

// missingVerb asks the API server which permission to watch a resource the agent lacks, in a namespace or
// ("") in all; empty if none.
func (c *Clients) missingVerb(ctx context.Context, gvr schema.GroupVersionResource, namespace string) (string, error) {
	for _, verb := range []string{"list", "watch"} {
		review, err := c.typed.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: namespace, Verb: verb, Group: gvr.Group, Version: gvr.Version, Resource: gvr.Resource,
			}},
		}, metav1.CreateOptions{})
		if err != nil {
			return "", fmt.Errorf("ask for permission to %s %s: %w", verb, gvr.GroupResource(), err)
		}
		if review.Status.Allowed {
			continue
		}
		where := "in the whole cluster"
		if namespace != "" {
			where = "in namespace " + namespace
		}
		return fmt.Sprintf("permission missing: %s %s %s", verb, gvr.GroupResource(), where), nil
	}
	return "", nil
}

// Objects are read one by one with a list that selects a name, not with a get: a role that may get every
// resource of every kind may also get pods/exec and nodes/proxy, which is to take the cluster over.
func named(name string) metav1.ListOptions {
	return metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()}
}

// fetch reads the newest version of one object: as a whole, or, of a Secret, its metadata only. It returns
// errNoObject if there is none.
func (c *Clients) fetch(ctx context.Context, gvr schema.GroupVersionResource, ref target.Ref) (runtime.Object, error) {
	if ref.GroupKind() == secretKind.GroupKind() {
		return c.fetchMetadata(ctx, gvr, ref)
	}
	list, err := c.dynamic.Resource(gvr).Namespace(ref.Namespace).List(ctx, named(ref.Name))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", ref, err)
	}
	if len(list.Items) == 0 {
		return nil, errNoObject
	}
	return &list.Items[0], nil
}

// fetchMetadata reads the newest metadata of one object. It returns errNoObject if there is none.
func (c *Clients) fetchMetadata(ctx context.Context, gvr schema.GroupVersionResource, ref target.Ref) (*metav1.PartialObjectMetadata, error) {
	list, err := c.metadataOf(gvr).Resource(gvr).Namespace(ref.Namespace).List(ctx, named(ref.Name))
	if err != nil {
		return nil, fmt.Errorf("read metadata of %s: %w", ref, err)
	}
	if len(list.Items) == 0 {
		return nil, errNoObject
	}
	return &list.Items[0], nil
}
