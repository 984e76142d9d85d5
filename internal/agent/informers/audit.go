package informers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// errStalled means that an informer has fallen behind the API server, although no error shows.
var errStalled = errors.New("the watch has stalled, and begins again")

// version is what the API server, or a cache, has under a name; zero for nothing.
type version struct {
	uid             types.UID
	resourceVersion string
}

// lag is a name under which an informer's cache had something else than the API server, asked later, answered.
type lag struct{ cached, answered version }

// DetectStalls compares the cache of every informer that has synced with what the API server has, and restarts the informers
// that have stalled: those whose caches have not moved although the API server's answer is older than the grace. What
// an informer missed is reported when it has begun again. Audit returns how many it restarted; the error is that of the
// informers that could not be compared.
func (w *Watcher) DetectStalls(ctx context.Context) (stalled int, err error) {
	var failed []error
	lags := map[*informer]map[types.NamespacedName]lag{}
	for _, i := range w.pool.all((*informer).works) {
		found, err := w.compare(ctx, i)
		if err != nil && i.works() {
			failed = append(failed, fmt.Errorf("audit: %w", err))
		}
		if err == nil && len(found) > 0 {
			lags[i] = found
		}
	}
	if len(lags) == 0 {
		return 0, errors.Join(failed...)
	}
	grace := time.NewTimer(w.config.AuditGrace)
	defer grace.Stop()
	select {
	case <-grace.C:
	case <-ctx.Done():
		return 0, errors.Join(append(failed, ctx.Err())...)
	}
	for i, found := range lags {
		behind, err := w.stillBehind(ctx, i, found)
		if err != nil && i.works() {
			failed = append(failed, fmt.Errorf("audit: %w", err))
		}
		// Of one with an error client-go, or its kind, takes care already.
		if err != nil || !behind || !i.works() {
			continue
		}
		stalled++
		w.metrics.stalls.WithLabelValues(i.id.gvr.GroupResource().String()).Inc()
		w.log.Info("A watch has stalled; it begins again", "resource", i.id.gvr.String(), "namespace", i.id.namespace)
		w.pool.fail(i, errStalled)
	}
	return stalled, errors.Join(failed...)
}

// compare returns the names under which the API server has something else than an informer's cache had when it was
// asked. So every answer is newer than what it is compared with.
func (w *Watcher) compare(ctx context.Context, i *informer) (map[types.NamespacedName]lag, error) {
	unseen := map[types.NamespacedName]version{}
	for _, obj := range i.shared.GetStore().List() {
		if o, err := meta.Accessor(obj); err == nil {
			unseen[nameOf(o)] = versionOf(o)
		}
	}
	lags := map[types.NamespacedName]lag{}
	err := w.clients.eachMetadata(ctx, i.id.gvr, i.id.namespace, func(o *metav1.PartialObjectMetadata) {
		cached := unseen[nameOf(o)]
		delete(unseen, nameOf(o))
		if answered := versionOf(o); answered != cached {
			lags[nameOf(o)] = lag{cached, answered}
		}
	})
	if err != nil {
		return nil, err
	}
	for name, cached := range unseen {
		lags[name] = lag{cached, version{}}
	}
	return lags, nil
}

// stillBehind reports whether an informer's cache is, under one of the names, what it was. Where it had nothing, that
// is no sign before the API server is asked again: what was created may have been deleted in the meantime.
func (w *Watcher) stillBehind(ctx context.Context, i *informer, lags map[types.NamespacedName]lag) (bool, error) {
	missing := map[types.NamespacedName]types.UID{}
	for name, l := range lags {
		switch {
		case i.version(name) != l.cached:
		case l.cached != version{}:
			return true, nil
		default:
			missing[name] = l.answered.uid
		}
	}
	if len(missing) == 0 {
		return false, nil
	}
	behind := false
	err := w.clients.eachMetadata(ctx, i.id.gvr, i.id.namespace, func(o *metav1.PartialObjectMetadata) {
		behind = behind || missing[nameOf(o)] == o.GetUID()
	})
	return behind, err
}

// works reports whether an informer has synced, and waits for nothing but news.
func (i *informer) works() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.synced && i.failure == nil && i.patience == nil
}

// version returns what an informer's cache has under a name.
func (i *informer) version(name types.NamespacedName) version {
	obj, ok := i.named(name)
	o, err := meta.Accessor(obj)
	if !ok || err != nil {
		return version{}
	}
	return versionOf(o)
}

func nameOf(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

func versionOf(o metav1.Object) version { return version{o.GetUID(), o.GetResourceVersion()} }
