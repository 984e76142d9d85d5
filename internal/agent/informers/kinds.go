package informers

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The kinds that are watched whenever there is a workload: Events, and what the built-in controllers derive.
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

// reconcileKinds starts and stops the goroutines of kinds, so that the kinds watched are those wanted.
func (w *Watcher) reconcileKinds(ctx context.Context) {
	wanted := w.targets.Kinds()
	if !w.targets.Empty() {
		for _, gvk := range baseKinds {
			wanted[gvk] = struct{}{}
		}
	}
	stopped := w.stopKinds(func(gvk schema.GroupVersionKind) bool {
		_, ok := wanted[gvk]
		return !ok
	})
	for _, k := range stopped {
		<-k.done
		// A kind that is listed in another version now goes on: what was seen of it stays known, so that what
		// is deleted before that version is watched is told.
		gk := k.gvk.GroupKind()
		if !slices.ContainsFunc(slices.Collect(maps.Keys(wanted)), func(gvk schema.GroupVersionKind) bool { return gvk.GroupKind() == gk }) {
			w.targets.DropKind(gk)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for gvk := range wanted {
		if k := w.kinds[gvk]; k != nil {
			k.wake() // the namespaces that it is wanted in may have changed
			continue
		}
		ctx, cancel := context.WithCancel(ctx)
		k := newKind(w, gvk, cancel)
		w.kinds[gvk] = k
		go k.run(ctx)
	}
	w.running = true
}

// stopKinds cancels the goroutines of the kinds that match, and returns them.
func (w *Watcher) stopKinds(match func(schema.GroupVersionKind) bool) []*kind {
	w.mu.Lock()
	defer w.mu.Unlock()
	var stopped []*kind
	for gvk, k := range w.kinds {
		if match(gvk) {
			delete(w.kinds, gvk)
			k.cancel()
			stopped = append(stopped, k)
		}
	}
	return stopped
}

// follows reports whether objects of a kind are told of by an informer, in whatever version.
func (w *Watcher) follows(gk schema.GroupKind) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for gvk := range w.kinds {
		if gvk.GroupKind() == gk {
			return true
		}
	}
	return false
}
