package informers

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

// informerPool holds the running informers, which kind watchers share.
type informerPool struct {
	factory          informerFactory
	registrar        *registrar    // receives the notifications
	unavailableAfter time.Duration // see Config
	metrics          *Metrics
	log              logr.Logger

	mu      sync.Mutex
	running map[informerID]*informer
}

func newInformerPool(factory informerFactory, to *registrar, unavailableAfter time.Duration, metrics *Metrics, log logr.Logger) *informerPool {
	return &informerPool{
		factory: factory, registrar: to, unavailableAfter: unavailableAfter, metrics: metrics, log: log,
		running: map[informerID]*informer{},
	}
}

// acquire returns the informer of a resource and scope, and starts it if it does not run. k is woken when the
// informer's state changes, and acquires each informer at most once. The informer ends with its last release; of the
// context of its first user it keeps the values only.
func (p *informerPool) acquire(ctx context.Context, k *kindWatcher, id informerID) *informer {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.running[id]
	if before != nil && len(before.users) > 0 && before.err() == nil {
		before.users[k] = struct{}{}
		return before
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	i := &informer{
		id:     id,
		gvk:    id.gvr.GroupVersion().WithKind(k.gvk.Kind),
		users:  map[*kindWatcher]struct{}{k: {}},
		cancel: cancel,
		done:   make(chan struct{}),
	}
	handler := p.registrar.handlerFor(i, func(err error) { p.fail(i, err) })
	i.store = newStore(i.gvk, p.factory.transform(i.gvk), handler, func() { p.listed(ctx, i) })
	p.running[id] = i
	p.metrics.watches.WithLabelValues(id.gvr.GroupResource().String()).Inc()
	go p.run(ctx, i, before)
	return i
}

// release returns an informer. The last release stops it, and waits until it has stopped.
func (p *informerPool) release(k *kindWatcher, i *informer) {
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
	if p.running[i.id] == i {
		delete(p.running, i.id)
	}
	p.metrics.watches.WithLabelValues(i.id.gvr.GroupResource().String()).Dec()
}

// run runs an informer until the context ends. It first waits for its predecessor to stop: the predecessor's last
// notifications would otherwise come after those of its successor.
func (p *informerPool) run(ctx context.Context, i, before *informer) {
	defer close(i.done)
	if before != nil {
		<-before.done
	}
	reflector := p.factory.reflector(i.id, i.gvk, i.store, requestHooks{
		started:   func() { i.requestStarted(p.unavailableAfter, func() { p.wakeUsers(i) }) },
		succeeded: func() { p.requestSucceeded(i) },
		failed:    i.requestFailed,
	})
	retry := backoff{first: relistMin, most: relistMax}
	for ctx.Err() == nil {
		if err := reflector.ListAndWatchWithContext(ctx); err != nil {
			p.watchFailed(i, err)
		}
		retry.begin(0)
		select {
		case <-ctx.Done():
		case <-time.After(retry.wait()):
		}
	}
	i.resetRequests()
}

// relistMin and relistMax bound the average wait before a reflector lists and watches again. Those of client-go are about the same.
const (
	relistMin = 1200 * time.Millisecond
	relistMax = 30 * time.Second
)

// listed is called when the first list of an informer is in its store, and was handled. The context of a failed informer has ended.
func (p *informerPool) listed(ctx context.Context, i *informer) {
	if ctx.Err() != nil {
		return
	}
	p.registrar.listed(i, p.all(func(*informer) bool { return true }))
	i.markSynced()
	p.wakeUsers(i)
}

// watchFailed handles the error of a list or a watch. If a retry cannot succeed, it ends the informer, so that its kind
// watcher starts again. It records the other errors.
func (p *informerPool) watchFailed(i *informer, err error) {
	if i.err() != nil {
		return
	}
	switch {
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
		p.fail(i, err)
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		p.log.V(1).Info("watch expired; listing again", "resource", i.id.gvr.String())
	default:
		p.metrics.watchErrors.WithLabelValues(i.id.gvr.GroupResource().String()).Inc()
		p.log.V(1).Info("watch failed; it is retried", "resource", i.id.gvr.String(), "error", err.Error())
		i.retrying(err)
		p.wakeUsers(i)
	}
}

// requestSucceeded stops the timer of an informer. It wakes the users if the timer had expired, because the kind is available again.
func (p *informerPool) requestSucceeded(i *informer) {
	if i.resetRequests() {
		p.wakeUsers(i)
	}
}

// fail ends an informer. Its users release it, and acquire a new one.
func (p *informerPool) fail(i *informer, err error) {
	i.fail(err)
	p.wakeUsers(i)
	i.cancel()
}

func (p *informerPool) wakeUsers(i *informer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k := range i.users {
		k.wake()
	}
}

// all returns the running informers that match.
func (p *informerPool) all(match func(*informer) bool) []*informer {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []*informer
	for _, i := range p.running {
		if match(i) {
			out = append(out, i)
		}
	}
	return out
}

// find returns an informer whose cache has an object: of the given version, or of any version if gvr is nil.
func (p *informerPool) find(gvr *schema.GroupVersionResource, ref target.Ref) (*informer, bool) {
	found := p.all(func(i *informer) bool {
		return i.gvk.GroupKind() == ref.GroupKind() &&
			(i.id.namespace == "" || i.id.namespace == ref.Namespace) && (gvr == nil || i.id.gvr == *gvr)
	})
	if len(found) == 0 {
		return nil, false
	}
	return found[0], true
}

// eventInformers returns the informers of Events.
func (p *informerPool) eventInformers() []*informer {
	return p.all(func(i *informer) bool { return i.gvk.GroupKind() == eventKind.GroupKind() })
}
