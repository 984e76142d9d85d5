package informers

import (
	"context"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The base kinds are watched whenever a workload is declared: Events, and the kinds that built-in controllers create.
var (
	eventKind  = schema.GroupVersionKind{Version: "v1", Kind: "Event"}
	podKind    = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	secretKind = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	baseKinds  = []schema.GroupVersionKind{
		eventKind,
		podKind,
		{Group: "apps", Version: "v1", Kind: "ReplicaSet"},
		{Group: "batch", Version: "v1", Kind: "Job"},
	}
)

// The kind of Services, and that of their endpoints, which is watched while a workload lists a Service.
var (
	serviceKind = schema.GroupKind{Kind: "Service"}
	sliceKind   = schema.GroupKind{Group: "discovery.k8s.io", Kind: "EndpointSlice"}
	sliceGVK    = sliceKind.WithVersion("v1")
)

// IsBaseKind reports whether a kind is watched for every workload.
func IsBaseKind(kind schema.GroupKind) bool {
	return slices.ContainsFunc(baseKinds, func(gvk schema.GroupVersionKind) bool { return gvk.GroupKind() == kind })
}

// kinds holds a kind watcher for each wanted kind. One goroutine calls reconcile, stop and dropStopped.
type kinds struct {
	env     *kindEnv
	running sync.WaitGroup
	// ended has capacity 1 and signals that stopped is not empty.
	ended chan struct{}

	mu       sync.Mutex
	started  bool
	watchers map[schema.GroupVersionKind]*kindWatcher
	stopped  []schema.GroupKind // kinds whose watchers have ended since the last dropStopped
}

func newKinds(env *kindEnv) *kinds {
	return &kinds{env: env, ended: make(chan struct{}, 1), watchers: map[schema.GroupVersionKind]*kindWatcher{}}
}

// reconcile starts and stops kind watchers so that exactly the wanted kinds are watched. It does not wait for stopped
// watchers: their informers may take long to stop.
func (s *kinds) reconcile(ctx context.Context) {
	wanted := s.env.targets.Kinds()
	if !s.env.targets.Empty() {
		for _, gvk := range baseKinds {
			wanted[gvk] = struct{}{}
		}
	}
	for gvk := range wanted {
		if gvk.GroupKind() == serviceKind {
			wanted[sliceGVK] = struct{}{}
			break
		}
	}
	s.stop(func(gvk schema.GroupVersionKind) bool {
		_, ok := wanted[gvk]
		return !ok
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	for gvk := range wanted {
		if k := s.watchers[gvk]; k != nil {
			k.wake() // the namespaces in which it is listed may have changed
			continue
		}
		s.watchers[gvk] = s.startLocked(ctx, gvk)
	}
	s.started = true
}

func (s *kinds) startLocked(ctx context.Context, gvk schema.GroupVersionKind) *kindWatcher {
	ctx, cancel := context.WithCancel(ctx)
	k := newKindWatcher(s.env, gvk, cancel)
	s.running.Go(func() {
		k.run(ctx)
		s.watcherEnded(k)
	})
	return k
}

// stop cancels the watchers that match.
func (s *kinds) stop(match func(schema.GroupVersionKind) bool) {
	for _, k := range s.remove(match) {
		k.cancel()
	}
}

func (s *kinds) remove(match func(schema.GroupVersionKind) bool) []*kindWatcher {
	s.mu.Lock()
	defer s.mu.Unlock()
	var removed []*kindWatcher
	for gvk, k := range s.watchers {
		if match(gvk) {
			delete(s.watchers, gvk)
			removed = append(removed, k)
		}
	}
	return removed
}

func (s *kinds) watcherEnded(k *kindWatcher) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = append(s.stopped, k.gvk.GroupKind())
	select {
	case s.ended <- struct{}{}:
	default:
	}
}

// dropStopped removes the objects of kinds that are no longer watched from the registry. A kind that is watched again,
// perhaps in another version, keeps its objects, so that the deletions in between are reported.
func (s *kinds) dropStopped() {
	s.mu.Lock()
	stopped := s.stopped
	s.stopped = nil
	s.mu.Unlock()
	for _, kind := range stopped {
		if !s.follows(kind) {
			s.env.targets.DropKind(kind)
		}
	}
}

// follows reports whether a kind is watched, in any version.
func (s *kinds) follows(kind schema.GroupKind) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for gvk := range s.watchers {
		if gvk.GroupKind() == kind {
			return true
		}
	}
	return false
}

// stateOf returns the state of a listed kind.
func (s *kinds) stateOf(gvk schema.GroupVersionKind) (kindState, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.watchers[gvk]; k != nil {
		return *k.state.Load(), true
	}
	return kindState{}, false
}

// countUnwatched sets a metric to the number of kinds in each of these states.
func (s *kinds) countUnwatched(gauge *prometheus.GaugeVec) {
	s.mu.Lock() // until the metric is set: another caller may know a later state
	defer s.mu.Unlock()
	for _, state := range unwatchedStates {
		n := 0
		for _, k := range s.watchers {
			if slices.Contains(k.state.Load().unwatched, state) {
				n++
			}
		}
		gauge.WithLabelValues(string(state)).Set(float64(n))
	}
}

// ready reports whether every kind that is wanted, installed and permitted has synced.
func (s *kinds) ready() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.watchers {
		if k.state.Load().pending() {
			return false
		}
	}
	return s.started
}
