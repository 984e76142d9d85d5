package informers

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

// lookups asks for the owners of objects that no informer tells of: a custom controller's intermediate
// kinds. An object is asked for once, its metadata only, and the answer is filed in the registry: owners
// seldom change after creation, and a watch for each kind that owns something anywhere in the cluster would
// cost more than all the others.
type lookups struct {
	w     *Watcher
	queue workqueue.TypedRateLimitingInterface[target.Identity]
}

// discoveryLag is how often a kind is asked for that is not installed: an API server tells of a new group some
// time after it serves the first objects of it.
const discoveryLag = 5

func newLookups(w *Watcher) *lookups {
	return &lookups{w, newQueue[target.Identity]("lookups")}
}

// want asks for objects, except those that an informer will tell of, and Nodes, which nothing owns.
func (l *lookups) want(ids []target.Identity) {
	for _, id := range ids {
		if id.UID == "" || id.GroupKind() == (schema.GroupKind{Kind: "Node"}) || l.w.follows(id.GroupKind()) {
			continue
		}
		if _, known := l.w.targets.Lookup(id.UID); !known {
			l.queue.Add(id)
		}
	}
}

// reconcile asks for one object. What is not there, or may not be read, is filed as an object without
// owners that is gone, so that it is not asked for again soon.
func (l *lookups) reconcile(ctx context.Context, id target.Identity) error {
	defer func() {
		if l.queue.Len() == 0 { // the answers may tell whose the makers of unseen objects are
			l.w.reviewLater()
		}
	}()
	if _, known := l.w.targets.Lookup(id.UID); known {
		return nil
	}
	l.w.metrics.lookups.Inc()
	found, err := l.get(ctx, id)
	switch {
	case err == nil:
		l.w.targets.Upsert(found)
		l.want(l.w.targets.UnresolvedOwners(found.Identity))
		return nil
	case errors.Is(err, errNotInstalled) && l.queue.NumRequeues(id) < discoveryLag:
		return err
	case errors.Is(err, errNotInstalled), errors.Is(err, errNoObject),
		apierrors.IsNotFound(err), apierrors.IsForbidden(err), apierrors.IsMethodNotSupported(err):
		l.w.targets.Upsert(target.Object{Identity: id, LookedUp: time.Now()})
		l.w.targets.Delete(id.UID, time.Now())
		return nil
	default:
		return fmt.Errorf("look up owner %s: %w", id.Ref, err)
	}
}

// get asks for one object. If its kind is not served any more as it was, it asks how it is served now.
func (l *lookups) get(ctx context.Context, id target.Identity) (target.Object, error) {
	found, err := l.getAs(ctx, id, true)
	if apierrors.IsNotFound(err) {
		found, err = l.getAs(ctx, id, false)
	}
	return found, err
}

func (l *lookups) getAs(ctx context.Context, id target.Identity, cached bool) (target.Object, error) {
	served, err := l.w.clients.resolve(ctx, schema.GroupVersionKind{Group: id.Group, Kind: id.Kind}, cached)
	if err != nil {
		return target.Object{}, err
	}
	if !served.namespaced {
		id.Namespace = ""
	}
	o, err := l.w.clients.fetchMetadata(ctx, served.gvr, id.Ref)
	if err != nil {
		return target.Object{}, err
	}
	if o.UID != id.UID {
		return target.Object{}, errNoObject
	}
	found := objectOf(id.GroupKind(), o)
	found.LookedUp = time.Now()
	return found, nil
}
