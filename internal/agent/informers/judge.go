package informers

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/health"
)

// judge puts the verdict on an object on the board. The body is that of a listed object. If there is something that only
// the clock tells, the object is looked at again in time; so is what was told of it last, which is no news to the sink.
func (w *Watcher) judge(claim target.Attribution, id target.Identity, body runtime.Object, cached any) {
	if !claim.Listed && !health.CountsAsDependent(id.GroupKind()) {
		return // what stands between a resource and its pods is judged by them
	}
	now := w.now()
	a := w.assess(id, body, cached, health.Context{Now: now, Warning: w.pool.warningAbout(id.UID), Rules: w.config.Rules})
	w.metrics.assessments.Inc()
	if !a.Recheck.IsZero() { // the earliest counts; whoever comes too early is told when to come again
		w.objects.AddAfter(id.Ref, max(a.Recheck.Sub(now), w.config.StatusDelay))
	}
	var via health.OwnerPath
	if !claim.Listed {
		via = w.via(id, claim)
	}
	if w.board.assess(claim, id, via, a) {
		w.markStatus(claim.Workload)
		w.markTree(claim.Workload)
	}
}

// assess judges an object by what the cache has of it, or by its body.
func (w *Watcher) assess(id target.Identity, body runtime.Object, cached any, scene health.Context) health.Assessment {
	pod, isPod := cached.(*corev1.Pod)
	if !isPod {
		if obj, ok := cached.(runtime.Object); ok && body == nil {
			body = obj
		}
		return health.Object(id.GroupKind(), body, scene)
	}
	if a, ok := w.assessByRules(pod, body, scene); ok {
		return a
	}
	return health.Pod(pod, scene)
}

// assessByRules judges a pod by a user's rules. Those of derived pods see what the cache keeps of them.
func (w *Watcher) assessByRules(pod *corev1.Pod, body runtime.Object, scene health.Context) (health.Assessment, bool) {
	if scene.Rules == nil || pod.DeletionTimestamp != nil || !scene.Rules.Covers(podKind.GroupKind()) {
		return health.Assessment{}, false
	}
	if body == nil {
		body = pod
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(body)
	if err != nil {
		return health.Assessment{}, false
	}
	object["apiVersion"], object["kind"] = podKind.Version, podKind.Kind
	return scene.Rules.Judge(podKind.GroupKind(), object, scene.Now)
}

// via returns the owners between an object and the resource of a claim on it.
func (w *Watcher) via(id target.Identity, claim target.Attribution) health.OwnerPath {
	var path health.OwnerPath
	for _, owner := range w.targets.OwnerPath(id.UID, claim.Resource.Ref) {
		path = path.Append(health.ObjectRef{Kind: owner.Kind, Name: owner.Name})
	}
	return path
}

// warningAbout returns the latest Event of type Warning about an object.
func (p *pool) warningAbout(uid types.UID) health.Warning {
	var latest health.Warning
	if uid == "" {
		return latest
	}
	p.eachEvent(indexByUID, string(uid), func(ev *corev1.Event) {
		if at := observe.EventTime(ev); ev.Type == corev1.EventTypeWarning && at.After(latest.Time) {
			latest = health.Warning{Reason: ev.Reason, Message: ev.Message, Time: at}
		}
	})
	return latest
}

// warned has an object judged again after a while, in which more may come, because of an Event of type Warning about it.
func (w *Watcher) warned(ev *corev1.Event) {
	if ev.Type != corev1.EventTypeWarning {
		return
	}
	known, ok := w.targets.Lookup(ev.InvolvedObject.UID)
	if ok && (w.targets.Lists(known.Ref) || health.CountsAsDependent(known.GroupKind()) && len(w.targets.Attributions(known)) > 0) {
		w.objects.AddAfter(known.Ref, w.config.StatusDelay)
	}
}

// ReassessAll judges everything again, because the rules have changed.
func (w *Watcher) ReassessAll() {
	for _, ref := range w.offers.names() {
		w.objects.Add(ref)
	}
}

// bodies keeps the bodies of listed objects that were fetched, because the cache keeps less of them: so they are
// fetched when they change, and not whenever they are looked at.
type bodies struct {
	mu sync.Mutex
	of map[types.UID]fetched
}

type fetched struct {
	// cached is the version that the cache had.
	cached string
	body   runtime.Object
}

func newBodies() *bodies { return &bodies{of: map[types.UID]fetched{}} }

// get returns the body of an object that the cache has in a version.
func (b *bodies) get(uid types.UID, version string) (runtime.Object, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f, ok := b.of[uid]
	if !ok {
		return nil, false
	}
	o, isObject := f.body.(metav1.Object)
	return f.body, f.cached == version || isObject && o.GetResourceVersion() == version
}

func (b *bodies) keep(uid types.UID, version string, body runtime.Object) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.of[uid] = fetched{version, body}
}

func (b *bodies) drop(uid types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.of, uid)
}
