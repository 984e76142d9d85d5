package informers

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/threeport/threeport-agent/internal/redact"
)

// informerFactory creates the reflectors of informers, and the form of objects in their stores. A store keeps the objects whole that
// workloads list, unless they are large.
type informerFactory struct {
	clients   *Clients
	lists     lists
	redaction *redact.Live
}

// requestHooks are called around each list and watch request. client-go itself reports some errors only, and no success.
type requestHooks struct {
	started   func()
	succeeded func()
	failed    func(error)
}

// transform returns the form of a kind's objects in a store.
func (f informerFactory) transform(gvk schema.GroupVersionKind) cache.TransformFunc {
	return transform(gvk, f.lists, f.redaction)
}

// reflector returns a reflector that reads objects in the form that suffices for their kind: typed, metadata only, or dynamic.
func (f informerFactory) reflector(id informerID, gvk schema.GroupVersionKind, to *store, hooks requestHooks) *cache.Reflector {
	var source *cache.ListWatch
	var example runtime.Object // nil for kinds with an encoded form in the cache
	switch {
	case gvk == eventKind:
		source = listWatch(f.clients.watched.Events(id.namespace), hooks)
	case gvk == podKind:
		source = listWatch(f.clients.watched.Pods(id.namespace), hooks)
	case isSecret(gvk.GroupKind()):
		source = listWatch(shortWatch{f.clients.secrets.Resource(id.gvr).Namespace(id.namespace)}, hooks)
		example = &metav1.PartialObjectMetadata{}
	case metadataOnly(gvk):
		source = listWatch(f.clients.metadata.Resource(id.gvr).Namespace(id.namespace), hooks)
		example = &metav1.PartialObjectMetadata{}
	default:
		source = listWatch(f.clients.dynamic.Resource(id.gvr).Namespace(id.namespace), hooks)
		example = &unstructured.Unstructured{}
	}
	return cache.NewReflectorWithOptions(source, example, to, cache.ReflectorOptions{Name: "informers", TypeDescription: id.gvr.String()})
}

// metadataOnly reports whether only the metadata of a kind is watched, because the agent needs nothing but its owners.
// Listed objects of these kinds are fetched when they change.
func metadataOnly(gvk schema.GroupVersionKind) bool {
	return gvk.GroupKind() == schema.GroupKind{Group: "apps", Kind: "ReplicaSet"} ||
		gvk.GroupKind() == schema.GroupKind{Group: "batch", Kind: "Job"}
}

// resource is the part of a client that lists and watches one resource.
type resource[L runtime.Object] interface {
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// listWatch returns how an informer reads a resource. The hooks are called before each request, and when its answer
// begins.
func listWatch[L runtime.Object](r resource[L], hooks requestHooks) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			if options.ResourceVersion == "0" {
				// "0" accepts any version, also one that is older than the cache. An object that is missing from it would
				// look deleted.
				options.ResourceVersion = ""
			}
			hooks.started()
			list, err := r.List(ctx, options)
			hooks.finished(ctx, err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			hooks.started()
			stream, err := r.Watch(ctx, options)
			hooks.finished(ctx, err)
			if options.SendInitialEvents != nil && (apierrors.IsTooManyRequests(err) || utilnet.IsConnectionRefused(err)) {
				// client-go waits up to a minute after these errors, and ignores its context meanwhile, so the informer could
				// not stop. After any other error it falls back to a list.
				err = errors.New(err.Error())
			}
			return stream, err
		},
	}
}

func (h requestHooks) finished(ctx context.Context, err error) {
	if err == nil {
		h.succeeded()
	} else if ctx.Err() == nil {
		h.failed(err)
	}
}
