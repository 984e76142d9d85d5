package reporter

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/agent/filter"
	"github.com/threeport/threeport-agent/internal/agent/informers"
	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/health"
)

// eventReporter reports the cluster's Events.
type eventReporter struct {
	targets      *target.Registry
	informers    *informers.Informers
	filters      *filter.Live
	sink         Sink
	aboutUnknown *unknownObjectEvents
	queues       *queues
	now          func() time.Time
}

// reconcile reports the newest version of an Event to each instance that it is attributed to. Other Events stay in the cache,
// and are queued again when their attribution may have changed.
func (r *eventReporter) reconcile(ctx context.Context, name types.NamespacedName) error {
	ctx = r.queues.samples.events.take(ctx, name)
	ev, ok := r.informers.Event(name)
	if !ok {
		return nil
	}
	reports := r.reports(name, ev.Event, ev.Preexisting)
	if _, known := r.targets.Object(ev.InvolvedObject.UID); known {
		r.aboutUnknown.remove(ev.UID)
	} else {
		r.aboutUnknown.set(ev.UID, name, reports)
	}
	if len(reports) == 0 {
		r.sink.Cancel(observe.EventKey(ev.UID))
		r.sink.DropRejected(observe.EventSubject(ev.UID))
		r.sink.ForgetExcept(observe.EventSubject(ev.UID), observe.EventKey(ev.UID))
		return nil
	}
	decision := r.decide(ev.Event)
	if ev.Shortened && decision.Action != filter.Drop {
		r.queues.samples.longEvents.move(ctx, name)
		r.queues.longEvents.Add(name)
	} else {
		r.offer(ctx, observe.EventSubject(ev.UID), reports, decision)
	}
	r.reassessWarned(ev.Event)
	return nil
}

// reconcileLong reads an Event whole, because the cache has only the beginning of its texts, and reports it. These reads have a worker
// of their own, so that many long Events do not delay others.
func (r *eventReporter) reconcileLong(ctx context.Context, name types.NamespacedName) error {
	ctx = r.queues.samples.longEvents.take(ctx, name)
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
	if reports := r.reports(name, ev, cached.Preexisting); len(reports) > 0 {
		r.offer(ctx, observe.EventSubject(ev.UID), reports, r.decide(ev))
	}
	return nil
}

// filterByAnnotation is the name under which Events are counted that an annotation drops.
const filterByAnnotation = "annotation " + v1alpha1.AnnotationEvents

// decide returns what happens to an Event by the annotations of its object and the owners, and else by the filters.
func (r *eventReporter) decide(ev *corev1.Event) filter.Decision {
	if r.targets.DropsEvents(ev.InvolvedObject.UID) {
		return filter.Decision{Filter: filterByAnnotation, Action: filter.Drop}
	}
	return r.filters.Decide(ev)
}

// shortenBy returns a report as the decision of the filters leaves it.
func shortenBy(decision filter.Decision, report observe.Event) observe.Event {
	if decision.Action == filter.Shorten {
		return report.WithMessageCutTo(decision.Bytes)
	}
	return report
}

// offer offers the reports of an Event that the filters keep, and counts the others.
func (r *eventReporter) offer(ctx context.Context, subject observe.Subject, reports []observe.Event, decision filter.Decision) {
	var kept, dropped []observe.Event
	for _, report := range reports {
		allowed := decision.Action != filter.Drop
		if decision.Action == filter.Limit && !r.sink.Has(report) {
			allowed = r.filters.Allow(decision, report.Workload)
		}
		if allowed {
			kept = append(kept, shortenBy(decision, report))
			continue
		}
		dropped = append(dropped, report)
		if r.sink.Drop(report, decision.Filter) {
			r.filters.Count(decision.Action)
		}
	}
	offerAll(ctx, r.sink, subject, kept, dropped...)
}

// reports returns the reports of an Event, one for each instance.
func (r *eventReporter) reports(name types.NamespacedName, ev *corev1.Event, preexisting bool) []observe.Event {
	return eachInstance(r.sink, r.attributions(name, ev), newEventReport(ev, preexisting))
}

// newEventReport returns a function that makes the report of an Event to an instance.
func newEventReport(ev *corev1.Event, preexisting bool) func(target.Attribution) observe.Event {
	return func(attribution target.Attribution) observe.Event {
		report := observe.NewEvent(ev, attribution)
		report.MayHaveRow = preexisting
		return report
	}
}

// onePerInstance returns the first attribution of each instance, of target.MaxEventInstances instances at most. If there are more, it
// leaves out instances that the control plane has not confirmed, and then others, the latest declared first. Anybody may declare an
// instance that does not exist.
func onePerInstance(ledger Ledger, attributions []target.Attribution) []target.Attribution {
	if len(attributions) <= 1 {
		return attributions
	}
	seen := map[target.Instance]struct{}{}
	var all []target.Attribution
	for _, attribution := range attributions {
		if _, again := seen[attribution.Instance]; !again {
			seen[attribution.Instance] = struct{}{}
			all = append(all, attribution)
		}
	}
	excess := len(all) - target.MaxEventInstances
	if excess <= 0 {
		return all
	}
	for i := len(all) - 1; i >= 0 && excess > 0; i-- {
		if !ledger.IsConfirmed(all[i].Instance) {
			all = slices.Delete(all, i, i+1)
			excess--
		}
	}
	return all[:min(len(all), target.MaxEventInstances)]
}

// eachInstance returns the reports of one Event, one for each instance of onePerInstance. The first one has the row with the
// Event's UID, and the others have rows of their own. An instance keeps the row that it has, also if it becomes the first one.
func eachInstance(ledger Ledger, attributions []target.Attribution, report func(target.Attribution) observe.Event) []observe.Event {
	chosen := onePerInstance(ledger, attributions)
	out := make([]observe.Event, len(chosen))
	for i := range chosen {
		out[i] = reportOf(ledger, chosen, i, report)
	}
	return out
}

// reportTo returns the report of one Event to one instance, as eachInstance does; false if it has none. first is the result of
// onePerInstance.
func reportTo(
	instance target.Instance, ledger Ledger, first []target.Attribution, report func(target.Attribution) observe.Event,
) (observe.Event, bool) {
	i := slices.IndexFunc(first, func(a target.Attribution) bool { return a.Instance == instance })
	if i < 0 {
		return observe.Event{}, false
	}
	return reportOf(ledger, first, i, report), true
}

func reportOf(ledger Ledger, first []target.Attribution, i int, report func(target.Attribution) observe.Event) observe.Event {
	ev := report(first[i])
	if own := ev.WithOwnRow(); i > 0 || ledger.Knows(own.Key()) {
		return own
	}
	return ev
}

// offerAll offers the reports of a subject. It forgets those of all other instances, except the instances of the dropped reports.
func offerAll(ctx context.Context, sink Sink, subject observe.Subject, reports []observe.Event, dropped ...observe.Event) {
	var keys []observe.Key
	var instances []target.Instance
	for _, ev := range slices.Concat(reports, dropped) {
		keys, instances = append(keys, ev.Key()), append(instances, ev.Workload)
	}
	for _, ev := range reports {
		offer(ctx, sink, ev)
	}
	if len(keys) > 0 { // else nothing is known of the instances
		sink.DropRejected(subject, instances...)
	}
	sink.ForgetExcept(subject, keys...)
}

// forget forgets an Event that is deleted. Its row in the control plane stays.
func (r *eventReporter) forget(uid types.UID) {
	r.aboutUnknown.remove(uid)
	r.sink.ForgetExcept(observe.EventSubject(uid))
}

// forgetExpired forgets the Events that no cache has: they expired while no informer watched them. It returns false if not all
// Events are listed yet.
func (r *eventReporter) forgetExpired() bool {
	// The known ones are read before the caches, which have all that still exist.
	expired, ok := r.informers.ExpiredEvents(r.sink.Events(), slices.Values(r.aboutUnknown.uids()))
	for _, uid := range expired {
		r.forget(uid)
	}
	return ok
}

// reassessWarned queues the object of a Warning after the status delay, in which further Warnings may come.
func (r *eventReporter) reassessWarned(ev *corev1.Event) {
	if ev.Type != corev1.EventTypeWarning {
		return
	}
	known, ok := r.targets.Object(ev.InvolvedObject.UID)
	if !ok || !observe.IsAbout(ev, known.Identity) {
		return
	}
	if r.targets.IsListed(known.Ref) || health.CountsAsDependent(known.GroupKind()) && len(r.targets.Attributions(known.Identity)) > 0 {
		r.queues.objects.AddAfter(known.Ref, r.queues.statusDelay)
	}
}

// attributions returns the workloads that an Event is reported to, as far as they are known yet:
//
//	known object, and the Event matches it     those of the object; none until its owners are looked up
//	… below a listed resource that is unknown  none while the kind of the resource is Pending
//	known object, and the Event does not       none
//	unknown object of another namespace        none
//	listed resource by name                    its workloads; none while the kind is Pending
//	any other object without a UID             none
//	any other object                           the owner that its name implies, if the Event is older than inferAge and the
//	                                           base kinds have synced; its owners are looked up meanwhile
//
// An Event without any stays in the cache: see reconcile. One with some may be left out by decide.
func (r *eventReporter) attributions(name types.NamespacedName, ev *corev1.Event) []target.Attribution {
	involved := observe.InvolvedObject(ev)
	known, ok := r.targets.Object(involved.UID)
	switch {
	case ok && observe.IsAbout(ev, known.Identity):
		return r.attributionsOfKnown(name, known.Identity)
	case ok, !observe.InNamespaceOfObject(ev):
		return nil
	}
	byName := slices.DeleteFunc(r.targets.AttributionsByName(involved, ev.CreationTimestamp.Time), r.isPending)
	if len(byName) > 0 || involved.UID == "" {
		return byName
	}
	r.informers.LookUpOwners([]target.Identity{involved})
	if inferred, ok := r.inferOwner(name, ev); ok {
		return []target.Attribution{inferred}
	}
	return nil
}

func (r *eventReporter) attributionsOfKnown(name types.NamespacedName, id target.Identity) []target.Attribution {
	attributions := r.targets.Attributions(id)
	if len(attributions) == 0 {
		r.informers.LookUpOwners(r.targets.UnresolvedOwners(id))
	}
	if slices.ContainsFunc(attributions, r.isPending) {
		r.queues.events.AddAfter(name, inferAge) // the resource may not exist, and so queue nothing when its kind has synced
		attributions = slices.DeleteFunc(attributions, r.isPending)
	}
	return attributions
}

// isPending reports whether the listed resource of an attribution is still to be seen. Another object may have its name, and its
// annotation may drop the Event.
func (r *eventReporter) isPending(a target.Attribution) bool {
	if a.Resource == (target.Resource{}) { // by label
		return false
	}
	_, exists := r.targets.ExistingObject(a.Resource.Ref)
	return !exists && r.informers.ResourceStatus(a.Resource).State == target.Pending
}

// inferAge is the minimum age of an Event whose owner is inferred. A younger Event may have come before its object, whose
// owner references are better evidence than its name.
const inferAge = 2 * time.Second

// inferOwner attributes an Event by the name of its object, if the object was deleted before any informer saw it.
func (r *eventReporter) inferOwner(name types.NamespacedName, ev *corev1.Event) (target.Attribution, bool) {
	involved := observe.InvolvedObject(ev)
	if _, known := r.targets.Object(involved.UID); known || !r.informers.BaseKindsSynced(involved.Namespace) {
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
