package reporter

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/threeport/threeport-agent/internal/agent/informers"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// handler receives the changes that the informers see. It queues changed keys. It forgets a deleted Event at once.
type handler struct{ r *Reporter }

var _ informers.Handler = handler{}

func (h handler) ObjectChanged(ref target.Ref) {
	h.r.queues.samples.objects.add(ref)
	h.r.queues.objects.Add(ref)
}

func (h handler) EventChanged(name types.NamespacedName) {
	h.r.queues.samples.events.add(name)
	h.r.queues.events.Add(name)
}

func (h handler) EventDeleted(ev *corev1.Event) {
	h.r.events.forget(ev.UID)
	h.r.events.reassessWarned(ev)
}

func (h handler) EventsListed() { h.r.queues.eventsListed.Store(true) }

// KindChanged queues all workloads, objects and Events whose reports depend on the state of a kind. It begins the initial syncs that
// waited for it.
func (h handler) KindChanged(kind schema.GroupKind) {
	workloads := h.r.targets.WorkloadsListing(kind)
	if informers.IsBaseKind(kind) {
		workloads = h.r.targets.WorkloadNames()
	}
	instances := sets.New[target.Instance]()
	for _, name := range workloads {
		h.r.statuses.changed(name)
		h.r.queues.statusLater(name)
		if wl, ok := h.r.targets.Workload(name); ok {
			h.r.statuses.treeChanged(name, wl.Instance)
			instances.Insert(wl.Instance)
		}
	}
	for instance := range instances {
		if h.r.sink.IsSyncDeferred(instance) && h.r.informers.Complete(h.r.targets.WorkloadsOf(instance)) {
			h.r.sink.RetrySync(instance)
		}
	}
	// Events that name their object without its UID wait for the kind.
	h.r.queueAffected(h.r.targets.ListedObjects(kind))
	h.r.queues.requeueUnattributed()
}

func (h handler) OwnersResolved() { h.r.queues.requeueUnattributed() }
