package informers

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/threeport/threeport-agent/internal/agent/target"
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
	users  map[*kind]struct{} // guarded by the pool's mutex
	cancel context.CancelFunc
	done   chan struct{} // closed when it has ended

	mu      sync.Mutex
	synced  bool // the first list is in the store, and handled
	failure error
	// mishap is the latest error, which client-go tries to mend: why it has not synced yet, or, when it has, why it is
	// not told of changes.
	mishap error
	// patience runs, when it has synced, from its first request until one succeeds. When it is over, that is overdue.
	patience *time.Timer
	overdue  bool
}

func (i *informer) hasSynced() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.synced
}

// err returns why the informer failed; nil while it has not.
func (i *informer) err() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.failure
}

// trouble returns the latest error that keeps the informer from syncing, or, for long, from hearing of changes.
func (i *informer) trouble() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case i.synced && !i.overdue:
		return nil
	case i.synced && i.mishap == nil:
		return errNoAnswer
	}
	return i.mishap
}

// object returns the newest version of an object.
func (i *informer) object(ref target.Ref) (any, bool) {
	return i.named(types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name})
}

func (i *informer) named(name types.NamespacedName) (any, bool) {
	obj, ok, err := i.shared.GetStore().GetByKey(cache.ObjectName(name).String())
	return obj, ok && err == nil
}

// pool holds the informers that run, shared by whoever needs them.
type pool struct {
	w  *Watcher
	mu sync.Mutex
	in map[informerID]*informer
}

func newPool(w *Watcher) *pool { return &pool{w: w, in: map[informerID]*informer{}} }

// acquire returns the informer of a resource and scope for a kind, which is woken when its state changes, and
// starts it if it does not run. The context is that of the first who acquires it as far as its values go; it
// ends with its last release. A kind acquires each at most once.
func (p *pool) acquire(ctx context.Context, k *kind, id informerID) *informer {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.in[id]
	if before != nil && len(before.users) > 0 && before.err() == nil {
		before.users[k] = struct{}{}
		return before
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	i := &informer{
		id:     id,
		gvk:    id.gvr.GroupVersion().WithKind(k.gvk.Kind),
		users:  map[*kind]struct{}{k: {}},
		cancel: cancel,
		done:   make(chan struct{}),
	}
	i.shared = p.w.newSharedInformer(i)
	p.in[id] = i
	p.w.metrics.watches.WithLabelValues(id.gvr.GroupResource().String()).Inc()
	go p.run(ctx, i, before)
	return i
}

// release gives an informer back. The last one stops it, and waits for its end.
func (p *pool) release(k *kind, i *informer) {
	p.mu.Lock()
	delete(i.users, k)
	last := len(i.users) == 0
	p.mu.Unlock()
	if !last {
		return
	}
	i.cancel()
	<-i.done
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.in[i.id] == i {
		delete(p.in, i.id)
	}
	p.w.metrics.watches.WithLabelValues(i.id.gvr.GroupResource().String()).Dec()
}

// change changes the state of an informer, and wakes its users.
func (p *pool) change(i *informer, change func()) {
	i.mu.Lock()
	change()
	i.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	for k := range i.users {
		k.wake()
	}
}

// fail ends an informer for a reason that waiting does not mend.
func (p *pool) fail(i *informer, err error) {
	p.change(i, func() {
		if i.failure == nil {
			i.failure = err
		}
	})
	i.cancel()
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
	index, value := indexByUID, string(id.UID)
	if id.UID == "" {
		index, value = indexByName, id.String()
	}
	p.eachEvent(index, value, func(ev *corev1.Event) {
		out = append(out, types.NamespacedName{Namespace: ev.Namespace, Name: ev.Name})
	})
	return out
}

// eachEvent visits the Events that an index has under a value.
func (p *pool) eachEvent(index, value string, visit func(*corev1.Event)) {
	for _, i := range p.all(func(i *informer) bool { return i.gvk.GroupKind() == eventKind.GroupKind() }) {
		events, err := i.shared.GetIndexer().ByIndex(index, value)
		if err != nil {
			continue // an index that every informer of Events has
		}
		for _, obj := range events {
			if ev, ok := obj.(*corev1.Event); ok {
				visit(ev)
			}
		}
	}
}

// run is the life of an informer. It begins when the one before it has ended, whose last words would else
// come after those of its successor.
func (p *pool) run(ctx context.Context, i, before *informer) {
	defer close(i.done)
	if before != nil {
		<-before.done
	}
	registration, err := i.shared.AddEventHandler(p.w.handler(i))
	if err == nil {
		err = i.shared.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) { p.w.watchFailed(i, err) })
	}
	if err != nil { // only a stopped informer refuses
		p.fail(i, err)
		return
	}
	var ends sync.WaitGroup
	ends.Go(func() { i.shared.RunWithContext(ctx) })
	if cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		p.w.reconcileMissing(i)
		p.change(i, func() { i.synced, i.mishap = true, nil })
	}
	ends.Wait()
	i.settle()
}

// errNoAnswer means that the API server was asked, and has not said anything yet.
var errNoAnswer = errors.New("the API server does not answer")

// asked notes that an informer asks the API server, and, with what it returns, how that went. Of one that has synced,
// its kind hears when no list or watch succeeds until its patience is over, and when one does again.
func (p *pool) asked(ctx context.Context, i *informer) (answered func(error)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.synced && i.patience == nil {
		var patience *time.Timer
		patience = time.AfterFunc(p.w.config.Patience, func() {
			p.change(i, func() { i.overdue = i.patience == patience })
		})
		i.patience = patience
	}
	return func(err error) {
		if err == nil && i.settle() {
			p.change(i, func() {})
		}
		if err != nil && ctx.Err() == nil {
			i.mu.Lock()
			defer i.mu.Unlock()
			if i.patience != nil {
				i.mishap = err
			}
		}
	}
}

// settle notes that there is nothing that an informer which has synced waits for. It reports whether that was overdue.
func (i *informer) settle() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.patience == nil {
		return false
	}
	i.patience.Stop()
	overdue := i.overdue
	i.mishap, i.patience, i.overdue = nil, nil, false
	return overdue
}

// Indexes of Events by what they are about.
const (
	indexByUID  = "involvedUID"
	indexByName = "involvedName"
)

// newSharedInformer makes the informer of a kind, of the form that shows as much as is needed.
func (w *Watcher) newSharedInformer(i *informer) cache.SharedIndexInformer {
	asked := func(ctx context.Context) func(error) { return w.pool.asked(ctx, i) }
	options := cache.SharedIndexInformerOptions{ObjectDescription: i.id.gvr.String(), Indexers: cache.Indexers{}}
	var from *cache.ListWatch
	var example runtime.Object
	switch {
	case i.gvk == eventKind:
		from, example = listWatch(w.clients.typed.CoreV1().Events(i.id.namespace), asked), &corev1.Event{}
		options.Indexers = eventIndexers
	case i.gvk == podKind:
		from, example = listWatch(w.clients.typed.CoreV1().Pods(i.id.namespace), asked), &corev1.Pod{}
	case i.gvk == secretKind:
		from = listWatch(shortly{w.clients.secrets.Resource(i.id.gvr).Namespace(i.id.namespace)}, asked)
		example = &metav1.PartialObjectMetadata{}
	case metadataOnly(i.gvk):
		from = listWatch(w.clients.metadata.Resource(i.id.gvr).Namespace(i.id.namespace), asked)
		example = &metav1.PartialObjectMetadata{}
	default:
		from = listWatch(w.clients.dynamic.Resource(i.id.gvr).Namespace(i.id.namespace), asked)
		example = &unstructured.Unstructured{}
	}
	shared := cache.NewSharedIndexInformerWithOptions(from, example, options)
	// SetTransform refuses only an informer that runs.
	_ = shared.SetTransform(w.transform(i.gvk))
	return shared
}

// metadataOnly reports whether of a kind only the metadata is watched, because nothing but its owners matters. Objects
// of it that are listed are fetched when they change.
func metadataOnly(gvk schema.GroupVersionKind) bool {
	return gvk.GroupKind() == schema.GroupKind{Group: "apps", Kind: "ReplicaSet"} ||
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
		w.pool.fail(i, err)
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		w.log.V(1).Info("Watch expired; listing again", "resource", i.id.gvr.String())
	default:
		w.metrics.watchErrors.WithLabelValues(i.id.gvr.GroupResource().String()).Inc()
		w.log.V(1).Info("Watch failed; client-go tries again", "resource", i.id.gvr.String(), "error", err.Error())
		w.pool.change(i, func() {
			if !i.synced {
				i.mishap = err
			}
		})
	}
}

// reconcileMissing finds what was deleted while nothing watched: known objects that the first list of an
// informer does not have, and no other informer of the kind either, which may be ahead of it.
func (w *Watcher) reconcileMissing(i *informer) {
	if i.gvk == eventKind {
		w.forgetExpired(i)
		return
	}
	informers := w.pool.all(func(other *informer) bool {
		return other == i || other.gvk.GroupKind() == i.gvk.GroupKind() && other.hasSynced() && other.err() == nil
	})
	for _, id := range w.targets.Live(i.gvk.GroupKind(), i.id.namespace) {
		there := slices.ContainsFunc(informers, func(inf *informer) bool {
			obj, ok := inf.object(id.Ref)
			o, err := meta.Accessor(obj)
			return ok && err == nil && o.GetUID() == id.UID
		})
		if !there {
			w.sawDeleted(id, "", false)
		}
	}
}

// goneAll tells that no object of a kind exists any more, because the kind does not.
func (w *Watcher) goneAll(kind schema.GroupKind) {
	for _, id := range w.targets.Live(kind, metav1.NamespaceAll) {
		w.sawDeleted(id, "", false)
	}
}
