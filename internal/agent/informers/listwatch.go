package informers

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// resource is how each client reads one.
type resource[L runtime.Object] interface {
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// listWatch returns how an informer reads a resource. It calls asked before each request, and what that returned when
// the answer begins: client-go tells its user of some errors only, and of no success.
func listWatch[L runtime.Object](r resource[L], asked func(context.Context) (answered func(error))) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			if options.ResourceVersion == "0" {
				// That asks for any version, be it older than what was seen before: an object that is not in it
				// would be taken for deleted.
				options.ResourceVersion = ""
			}
			answered := asked(ctx)
			list, err := r.List(ctx, options)
			answered(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			answered := asked(ctx)
			stream, err := r.Watch(ctx, options)
			answered(err)
			if options.SendInitialEvents != nil && (apierrors.IsTooManyRequests(err) || utilnet.IsConnectionRefused(err)) {
				// client-go would wait up to a minute before it tries again, and not end before, which the end of a kind,
				// and so every other kind, would wait for. Of any other error it falls back to a list.
				err = errors.New(err.Error())
			}
			return stream, err
		},
	}
}
