package informers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// errStalled means that an informer lags behind the API server without an error.
var errStalled = errors.New("the watch has stalled; it is restarted")

// stallDetector compares caches with the API server.
type stallDetector struct {
	clients *Clients
	pool    *informerPool
	grace   time.Duration // for which a cache may lag behind the API server
	metrics *Metrics
	log     logr.Logger
}

// objectVersion is an object as the API server, or a cache, has it under a name; zero if there is none.
type objectVersion struct {
	uid             types.UID
	resourceVersion string
}

// lag is a name for which an informer's cache differed from a later answer of the API server.
type lag struct{ cached, answered objectVersion }

// detect compares the cache of every current informer with the API server, and restarts the informers that have stalled.
// An informer has stalled if its cache still differs in the same way after the grace period. The handlers receive the
// missed changes after the restart. It returns the number of restarted informers; the error joins those of informers that
// could not be compared.
func (d stallDetector) detect(ctx context.Context) (stalled int, err error) {
	var failed []error
	lags := map[*informer]map[types.NamespacedName]lag{}
	for _, i := range d.pool.all((*informer).isCurrent) {
		found, err := d.compare(ctx, i)
		if err != nil && i.isCurrent() {
			failed = append(failed, fmt.Errorf("compare cache: %w", err))
		}
		if err == nil && len(found) > 0 {
			lags[i] = found
		}
	}
	if len(lags) == 0 {
		return 0, errors.Join(failed...)
	}
	grace := time.NewTimer(d.grace)
	defer grace.Stop()
	select {
	case <-grace.C:
	case <-ctx.Done():
		return 0, errors.Join(append(failed, ctx.Err())...)
	}
	for i, found := range lags {
		behind, err := d.stillBehind(ctx, i, found)
		if err != nil && i.isCurrent() {
			failed = append(failed, fmt.Errorf("compare cache: %w", err))
		}
		// The pool, or the kind watcher, already handles an informer with an error.
		if err != nil || !behind || !i.isCurrent() {
			continue
		}
		stalled++
		d.metrics.stalls.WithLabelValues(i.id.gvr.GroupResource().String()).Inc()
		d.log.Info("watch has stalled; restarting it", "resource", i.id.gvr.String(), "namespace", i.id.namespace)
		d.pool.fail(i, errStalled)
	}
	return stalled, errors.Join(failed...)
}

// compare returns the names for which an informer's cache differs from the API server. It reads the cache first, so that
// every answer is newer than the cached version.
func (d stallDetector) compare(ctx context.Context, i *informer) (map[types.NamespacedName]lag, error) {
	unanswered := map[types.NamespacedName]objectVersion{}
	for _, obj := range i.store.list() {
		if name, err := cachedName(obj); err == nil {
			unanswered[name] = cachedVersion(obj)
		}
	}
	lags := map[types.NamespacedName]lag{}
	err := d.clients.eachMetadata(ctx, i.id.gvr, i.id.namespace, func(o *metav1.PartialObjectMetadata) {
		cached := unanswered[nameOf(o)]
		delete(unanswered, nameOf(o))
		if answered := versionOf(o); answered != cached {
			lags[nameOf(o)] = lag{cached, answered}
		}
	})
	if err != nil {
		return nil, err
	}
	for name, cached := range unanswered {
		lags[name] = lag{cached, objectVersion{}}
	}
	return lags, nil
}

// stillBehind reports whether an informer's cache is unchanged for one of the names. An object that the cache still
// lacks proves a stall only if the API server still has it: it may have been created and deleted in the meantime.
func (d stallDetector) stillBehind(ctx context.Context, i *informer, lags map[types.NamespacedName]lag) (bool, error) {
	missing := map[types.NamespacedName]types.UID{}
	for name, l := range lags {
		switch {
		case cachedVersion(i.store.get(name)) != l.cached:
		case l.cached != objectVersion{}:
			return true, nil
		default:
			missing[name] = l.answered.uid
		}
	}
	if len(missing) == 0 {
		return false, nil
	}
	behind := false
	err := d.clients.eachMetadata(ctx, i.id.gvr, i.id.namespace, func(o *metav1.PartialObjectMetadata) {
		behind = behind || missing[nameOf(o)] == o.GetUID()
	})
	return behind, err
}

func nameOf(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

func versionOf(o metav1.Object) objectVersion {
	return objectVersion{o.GetUID(), o.GetResourceVersion()}
}
