package watch

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/dynamicinformer"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"

	"github.com/threeport/threeport-agent/internal/target"
)

// informerID is what there is one informer of. An empty namespace is the whole cluster.
type informerID struct {
	gvr       schema.GroupVersionResource
	namespace string
}

// informer is a shared informer with its life: it runs from the first acquire to the last release, or until
// it fails for a reason that waiting does not mend.
type informer struct {
	id     informerID
	gvk    schema.GroupVersionKind
	shared cache.SharedIndexInformer
	refs   int // guarded by the pool's mutex
	cancel context.CancelFunc
	synced chan struct{} // closed when the first list is in the store, and handled
	failed chan struct{} // closed when err is set
	done   chan struct{} // closed when it has ended

	mu      sync.Mutex
	failure error
}

func (i *informer) hasSynced() bool {
	select {
	case <-i.synced:
		return true
	default:
		return false
	}
}

// err returns why the informer failed; nil while it has not.
func (i *informer) err() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.failure
}

func (i *informer) fail(err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.failure == nil {
		i.failure = err
		close(i.failed)
	}
}

// object returns the newest version of an object.
func (i *informer) object(ref target.Ref) (any, bool) {
	key := cache.ObjectName{Namespace: ref.Namespace, Name: ref.Name}.String()
	obj, ok, err := i.shared.GetStore().GetByKey(key)
	return obj, ok && err == nil
}

// pool holds the informers that run, shared by whoever needs them.
type pool struct {
	w  *Watcher
	mu sync.Mutex
	in map[informerID]*informer
}

func newPool(w *Watcher) *pool { return &pool{w: w, in: map[informerID]*informer{}} }

// acquire returns the informer of a resource and scope, and starts it if it does not run. The context is
// that of the first who acquires it as far as its values go; it ends with its last release.
func (p *pool) acquire(ctx context.Context, id informerID, kindName string) *informer {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := p.in[id]; i != nil && i.err() == nil {
		i.refs++
		return i
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	i := &informer{
		id:     id,
		gvk:    id.gvr.GroupVersion().WithKind(kindName),
		refs:   1,
		cancel: cancel,
		synced: make(chan struct{}),
		failed: make(chan struct{}),
		done:   make(chan struct{}),
	}
	i.shared = p.w.newSharedInformer(i)
	p.in[id] = i
	p.w.metrics.watches.WithLabelValues(id.gvr.GroupResource().String()).Inc()
	go p.run(ctx, i)
	return i
}

// release gives an informer back. The last one stops it, and waits for its end.
func (p *pool) release(i *informer) {
	p.mu.Lock()
	i.refs--
	last := i.refs == 0
	if last && p.in[i.id] == i {
		delete(p.in, i.id)
	}
	p.mu.Unlock()
	if last {
		i.cancel()
		<-i.done
		p.w.metrics.watches.WithLabelValues(i.id.gvr.GroupResource().String()).Dec()
	}
}

// all returns the informers that run.
func (p *pool) all(match func(*informer) bool) []*informer {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []*informer
	for _, i := range p.in {
		if match(i) {
			out = append(out, i)
		}
	}
	return out
}

// find returns an informer that sees an object: of a version if one is given, else of any.
func (p *pool) find(gvr *schema.GroupVersionResource, ref target.Ref) (*informer, bool) {
	found := p.all(func(i *informer) bool {
		return i.gvk.GroupKind() == ref.GroupKind() &&
			(i.id.namespace == "" || i.id.namespace == ref.Namespace) && (gvr == nil || i.id.gvr == *gvr)
	})
	if len(found) == 0 {
		return nil, false
	}
	return found[0], true
}

// eventsAbout returns the Events about an object: of its UID, or, if that is not given, of its name.
func (p *pool) eventsAbout(id target.Identity) []types.NamespacedName {
	var out []types.NamespacedName
	for _, i := range p.all(func(i *informer) bool { return i.gvk.GroupKind() == eventKind.GroupKind() }) {
		index, value := indexByUID, string(id.UID)
		if id.UID == "" {
			index, value = indexByName, id.String()
		}
		events, err := i.shared.GetIndexer().ByIndex(index, value)
		if err != nil {
			continue // an index that every informer of Events has
		}
		for _, ev := range events {
			if o, err := meta.Accessor(ev); err == nil {
				out = append(out, types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()})
			}
		}
	}
	return out
}

// run is the life of an informer.
func (p *pool) run(ctx context.Context, i *informer) {
	defer close(i.done)
	registration, err := i.shared.AddEventHandler(p.w.handler(i))
	if err == nil {
		err = i.shared.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) { p.w.watchFailed(i, err) })
	}
	if err != nil { // only a stopped informer refuses
		i.fail(err)
		return
	}
	var ends sync.WaitGroup
	ends.Go(func() { i.shared.RunWithContext(ctx) })
	if cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		p.w.reconcileMissing(i)
		close(i.synced)
	}
	ends.Wait()
}

// Indexes of Events by what they are about.
const (
	indexByUID  = "involvedUID"
	indexByName = "involvedName"
)

// newSharedInformer makes the informer of a kind, of the form that shows as much as is needed.
func (w *Watcher) newSharedInformer(i *informer) cache.SharedIndexInformer {
	const resync = time.Duration(0)
	none := cache.Indexers{}
	var shared cache.SharedIndexInformer
	switch {
	case i.gvk == eventKind:
		shared = coreinformers.NewEventInformer(w.clients.typed, i.id.namespace, resync, eventIndexers)
	case i.gvk == podKind:
		shared = coreinformers.NewPodInformer(w.clients.typed, i.id.namespace, resync, none)
	case metadataOnly(i.gvk):
		shared = metadatainformer.NewFilteredMetadataInformer(w.clients.metadataOf(i.id.gvr), i.id.gvr, i.id.namespace, resync, none, nil).Informer()
	default:
		shared = dynamicinformer.NewFilteredDynamicInformer(w.clients.dynamic, i.id.gvr, i.id.namespace, resync, none, nil).Informer()
	}
	// SetTransform refuses only an informer that runs.
	_ = shared.SetTransform(w.transform(i.gvk))
	return shared
}

// metadataOnly reports whether of a kind only the metadata is watched: its contents may not be seen, or
// nothing but its owners matters. Objects of the latter that are listed are fetched when they change.
func metadataOnly(gvk schema.GroupVersionKind) bool {
	return gvk == secretKind ||
		gvk.GroupKind() == schema.GroupKind{Group: "apps", Kind: "ReplicaSet"} ||
		gvk.GroupKind() == schema.GroupKind{Group: "batch", Kind: "Job"}
}

// watchFailed is called when a list or a watch ended in an error. client-go tries again with a backoff of
// its own; what that does not mend ends the informer, and its kind begins again.
func (w *Watcher) watchFailed(i *informer, err error) {
	if i.err() != nil {
		return
	}
	switch {
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
		i.fail(err)
		i.cancel()
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		w.log.V(1).Info("Watch expired; listing again", "resource", i.id.gvr.String())
	default:
		w.metrics.watchErrors.WithLabelValues(i.id.gvr.GroupResource().String()).Inc()
		w.log.V(1).Info("Watch failed; client-go tries again", "resource", i.id.gvr.String(), "error", err.Error())
	}
}

// reconcileMissing finds what was deleted while nothing watched: known objects that the first list of an
// informer does not have.
func (w *Watcher) reconcileMissing(i *informer) {
	for _, id := range w.targets.Live(i.gvk.GroupKind(), i.id.namespace) {
		obj, ok := i.object(id.Ref)
		if o, err := meta.Accessor(obj); ok && err == nil && o.GetUID() == id.UID {
			continue
		}
		w.sawDeleted(id)
	}
}

// goneAll tells that no object of a kind exists any more, because the kind does not.
func (w *Watcher) goneAll(kind schema.GroupKind) {
	for _, id := range w.targets.Live(kind, metav1.NamespaceAll) {
		w.sawDeleted(id)
	}
}
