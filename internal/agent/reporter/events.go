package reporter

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/informers"
	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/health"
)

// eventReporter reports the cluster's Events.
type eventReporter struct {
	targets   *target.Registry
	informers *informers.Informers
	sink      Sink
	notes     *eventNotes
	queues    *queues
	now       func() time.Time
}

// reconcile reports the newest version of an Event if it is attributed to a workload. Other Events stay in the cache, and
// are queued again when their attribution may have changed.
func (r *eventReporter) reconcile(_ context.Context, name types.NamespacedName) error {
	ev, ok := r.informers.Event(name)
	if !ok {
		return nil
	}
	attribution, ok := r.attribution(name, ev.Event)
	if !ok {
		r.sink.Cancel(observe.EventKey(ev.UID))
		return nil
	}
	if _, known := r.targets.KnownObject(ev.InvolvedObject.UID); !known {
		r.notes.setAboutUnknownObject(ev.UID, name, attribution.Instance)
	}
	report := r.report(ev.Event, ev.Initial, attribution)
	if ev.Shortened {
		r.queues.longEvents.Add(name)
	} else {
		r.sink.Offer(report)
	}
	r.reassessWarned(ev.Event)
	return nil
}

// reconcileLong reads an Event whole, because the cache has only the begin of its texts, and reports it. These reads have a worker
// of their own, so that many long Events do not delay others.
func (r *eventReporter) reconcileLong(ctx context.Context, name types.NamespacedName) error {
	cached, ok := r.informers.Event(name)
	if !ok {
		return nil
	}
	ev, err := r.informers.WholeEvent(ctx, name)
	if err != nil {
		return err
	}
	if ev == nil || ev.UID != cached.UID { // the informer's next change queues the new one
		return nil
	}
	if attribution, ok := r.attribution(name, ev); ok {
		r.sink.Offer(r.report(ev, cached.Initial, attribution))
	}
	return nil
}

// report returns the report of an Event. initial is true for an Event in an informer's first list.
func (r *eventReporter) report(ev *corev1.Event, initial bool, attribution target.Attribution) observe.Event {
	if initial {
		r.notes.setPreexisting(ev.UID)
	}
	report := observe.NewEvent(ev, attribution)
	report.Preexisting = r.notes.isPreexisting(ev.UID)
	return report
}

// forget forgets an Event that is deleted. Its row in the control plane stays.
func (r *eventReporter) forget(uid types.UID) {
	r.notes.remove(uid)
	r.sink.ForgetExcept(observe.EventSubject(uid))
}

// forgetExpired forgets the reported Events that no cache has: they expired while no informer watched them. It returns false
// if not all Events are listed yet.
func (r *eventReporter) forgetExpired() bool {
	known := append(r.sink.Events(), r.notes.preexistingEvents()...) // read before the caches, which have all that still exist
	cached, ok := r.informers.EventUIDs()
	if !ok {
		return false
	}
	for _, uid := range known {
		if _, exists := cached[uid]; !exists {
			r.forget(uid)
		}
	}
	return true
}

// reassessWarned queues the object of a Warning after the status delay, in which further Warnings may come.
func (r *eventReporter) reassessWarned(ev *corev1.Event) {
	if ev.Type != corev1.EventTypeWarning {
		return
	}
	known, ok := r.targets.KnownObject(ev.InvolvedObject.UID)
	if !ok || !observe.IsAbout(ev, known) {
		return
	}
	if r.targets.IsListed(known.Ref) || health.CountsAsDependent(known.GroupKind()) && len(r.targets.Attributions(known)) > 0 {
		r.queues.objects.AddAfter(known.Ref, r.queues.statusDelay)
	}
}

// attribution returns the workload that an Event is reported to, if it is known yet. An Event has one row, so the first of
// several workloads gets it. An Event that names an object of another namespace, or the UID of another object, has none.
func (r *eventReporter) attribution(name types.NamespacedName, ev *corev1.Event) (target.Attribution, bool) {
	involved := observe.InvolvedObject(ev)
	known, ok := r.targets.KnownObject(involved.UID)
	switch {
	case ok && observe.IsAbout(ev, known):
		return r.attributionOfKnown(known)
	case ok, !observe.InNamespaceOfObject(ev):
		return target.Attribution{}, false
	}
	for _, attribution := range r.targets.AttributionsByName(involved, ev.CreationTimestamp.Time) {
		// Another object may have the name until the kind has synced.
		if r.informers.ResourceStatus(attribution.Resource).State != target.Pending {
			return attribution, true
		}
	}
	if involved.UID == "" {
		return target.Attribution{}, false
	}
	r.informers.LookUpOwners([]target.Identity{involved})
	return r.inferOwner(name, ev)
}

func (r *eventReporter) attributionOfKnown(id target.Identity) (target.Attribution, bool) {
	for _, attribution := range r.targets.Attributions(id) {
		return attribution, true
	}
	r.informers.LookUpOwners(r.targets.UnresolvedOwners(id))
	return target.Attribution{}, false
}

// inferAge is the minimum age of an Event whose owner is inferred. A younger Event may have come before its object, whose
// owner references are better evidence than its name.
const inferAge = 2 * time.Second

// inferOwner attributes an Event by the name of its object, if the object was deleted before any informer saw it.
func (r *eventReporter) inferOwner(name types.NamespacedName, ev *corev1.Event) (target.Attribution, bool) {
	involved := observe.InvolvedObject(ev)
	if _, known := r.targets.KnownObject(involved.UID); known || !r.informers.BaseKindsSynced(involved.Namespace) {
		return target.Attribution{}, false
	}
	attribution, ok := r.targets.InferOwner(involved.Ref)
	if !ok {
		return target.Attribution{}, false
	}
	// An age far below zero means that the clocks differ. Such an age says nothing, and the owner is inferred.
	if r.now().Sub(ev.CreationTimestamp.Time).Abs() < inferAge {
		r.queues.events.AddAfter(name, inferAge)
		return target.Attribution{}, false
	}
	return attribution, true
}
