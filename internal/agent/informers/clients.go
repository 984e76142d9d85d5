package informers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

var (
	// errNotInstalled means that the API server does not serve a kind.
	errNotInstalled = errors.New("not installed")
	// errNoObject means that the API server serves a kind, and has no object of the name. HTTP 404 means something else:
	// the API server no longer serves the resource.
	errNoObject = errors.New("no such object")
)

// Limits of the requests to the API server other than watches: reviews, discovery, and reads of single objects. They keep
// a burst of new workloads from flooding a small API server.
const (
	clientQPS   = 100
	clientBurst = 200
)

// Limits of the look-ups of owners. Everybody who may create objects or Events can cause look-ups, so these do not take
// part in the limits of other requests.
const (
	lookupQPS   = 50
	lookupBurst = 100
)

// readTimeout is how long the read of one object may take. A conversion webhook or an aggregated API that does not answer would
// occupy the workers for a minute.
const readTimeout = 10 * time.Second

// Clients are the clients of the API server. The typed clients read Events and Pods with protobuf. The metadata client
// reads the kinds whose metadata alone the agent needs or may read. The dynamic client reads the other kinds.
type Clients struct {
	typed    kubernetes.Interface
	watched  typedcorev1.CoreV1Interface // for watches of Events and Pods
	dynamic  dynamic.Interface
	metadata metadata.Interface
	secrets  metadata.Interface
	lookups  *Clients // for look-ups of owners; nil in itself

	mu       sync.Mutex
	mappings map[schema.GroupVersionKind]mapping // cached answers of discovery
}

// mapping is the resource of a kind.
type mapping struct {
	gvr        schema.GroupVersionResource
	namespaced bool
	watchable  bool // it supports list and watch
}

// informerID identifies the informer of a namespace; empty for the whole cluster.
func (m mapping) informerID(namespace string) informerID {
	return informerID{m.gvr, namespace, m.namespaced}
}

// NewClients returns clients that share one connection pool and, except for look-ups of owners, one rate limit. A half-open
// connection is closed within 45 seconds: client-go pings an HTTP/2 connection after 30 seconds of silence, and waits 15
// seconds for the answer. Secrets use connections of their own, see [secretsTimeout].
func NewClients(config *rest.Config) (*Clients, error) {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return limitingTransport{next} })
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	clients, err := newClients(config, httpClient, flowcontrol.NewTokenBucketRateLimiter(clientQPS, clientBurst))
	if err != nil {
		return nil, err
	}
	clients.lookups, err = newClients(config, httpClient, flowcontrol.NewTokenBucketRateLimiter(lookupQPS, lookupBurst))
	return clients, err
}

// newClients returns clients with one rate limit.
func newClients(config *rest.Config, httpClient *http.Client, limiter flowcontrol.RateLimiter) (*Clients, error) {
	config = rest.CopyConfig(config)
	config.RateLimiter = limiter
	protobuf := rest.CopyConfig(config)
	protobuf.ContentType = runtime.ContentTypeProtobuf
	protobuf.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	typed, err := kubernetes.NewForConfigAndClient(protobuf, httpClient)
	if err != nil {
		return nil, fmt.Errorf("typed client: %w", err)
	}
	protobuf.NegotiatedSerializer, protobuf.GroupVersion, protobuf.APIPath = newWatchCodecs(), &corev1.SchemeGroupVersion, "/api"
	watched, err := rest.RESTClientForConfigAndClient(protobuf, httpClient)
	if err != nil {
		return nil, fmt.Errorf("client of Events and Pods: %w", err)
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
		typed: typed, watched: typedcorev1.New(watched), dynamic: dyn, metadata: meta, secrets: secrets,
		mappings: map[schema.GroupVersionKind]mapping{},
	}, nil
}

// named selects one object in a list. The agent never uses get: a role that may get all resources may also get pods/exec
// and nodes/proxy, and so control the cluster.
func named(name string) metav1.ListOptions {
	return metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()}
}

// boundRead bounds the time of the read of one object, and its answer in bytes.
func boundRead(ctx context.Context, bytes int64) (context.Context, context.CancelFunc) {
	return context.WithTimeout(withAnswerLimit(ctx, bytes), readTimeout)
}

// fetch reads the newest version of one object, but of a Secret the metadata only. It returns errNoObject if there is none.
func (c *Clients) fetch(ctx context.Context, gvr schema.GroupVersionResource, ref target.Ref) (runtime.Object, error) {
	if isSecret(ref.GroupKind()) {
		return c.fetchMetadata(ctx, gvr, ref)
	}
	ctx, cancel := boundRead(ctx, maxObjectBytes)
	defer cancel()
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
	ctx, cancel := boundRead(ctx, maxMetadataBytes)
	defer cancel()
	list, err := c.metadataClient(gvr).Resource(gvr).Namespace(ref.Namespace).List(ctx, named(ref.Name))
	if err != nil {
		return nil, fmt.Errorf("read metadata of %s: %w", ref, err)
	}
	if len(list.Items) == 0 {
		return nil, errNoObject
	}
	return &list.Items[0], nil
}

// eachMetadata visits the metadata of all objects of a resource in a namespace, page by page. The pages become smaller if the objects are
// large.
func (c *Clients) eachMetadata(ctx context.Context, gvr schema.GroupVersionResource, namespace string, visit func(*metav1.PartialObjectMetadata)) error {
	ctx = withAnswerLimit(ctx, maxMetadataBytes)
	for next := (metav1.ListOptions{Limit: 500}); ; {
		list, err := c.metadataClient(gvr).Resource(gvr).Namespace(namespace).List(ctx, next)
		if errors.Is(err, errLargeAnswer) && next.Limit > 1 {
			next.Limit = max(1, next.Limit/8)
			continue
		}
		if err != nil {
			return fmt.Errorf("read metadata of %s in namespace %q: %w", gvr.GroupResource(), namespace, err)
		}
		for i := range list.Items {
			visit(&list.Items[i])
		}
		if list.Continue == "" {
			return nil
		}
		next.Continue = list.Continue
	}
}
