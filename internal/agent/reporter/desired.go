package reporter

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/filter"
	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// syntheticRetention is how long the synthetic Events about terminations and transitions belong to the desired state: as
// long as an API server keeps Events by default.
const syntheticRetention = time.Hour

// Instances returns the declared instances.
func (r *Reporter) Instances() []target.Instance { return r.targets.Instances() }

// DesiredState returns the state that the control plane is to hold of an instance. It returns false if the instance is not
// declared, while its kinds have not been listed, and while a change of one of its objects arrives. An error means that
// the agent could not read an object that the cache keeps only in part.
//
// The agent keeps what it reads of such objects. After readUntil, unless it is zero, DesiredState reads no further one and returns false.
// It reads one in any case, so that repeated calls come to an end.
func (r *Reporter) DesiredState(
	ctx context.Context, instance target.Instance, readUntil time.Time,
) (observe.DesiredState, bool, error) {
	workloads := r.targets.WorkloadsOf(instance)
	if len(workloads) == 0 || !r.informers.Complete(workloads) {
		return observe.DesiredState{}, false, nil
	}
	var out observe.DesiredState
	done := map[target.Ref]struct{}{}
	for _, workload := range workloads {
		for _, resource := range workload.Resources {
			if _, ok := done[resource.Ref]; ok {
				continue
			}
			done[resource.Ref] = struct{}{}
			added, err := r.addDesired(ctx, instance, resource, &out)
			if err != nil || !added.complete || added.fetched && isOver(readUntil) {
				return observe.DesiredState{}, false, err
			}
		}
	}
	related := r.targets.ObjectsOf(instance)
	out.Events = append(r.events.desired(ctx, instance, related), r.objects.desiredTerminations(ctx, instance, related)...)
	if ctx.Err() != nil {
		return observe.DesiredState{}, false, context.Cause(ctx)
	}
	out.Events = append(out.Events, r.transitions.after(r.config.now().Add(-syntheticRetention), instance)...)
	out.Status, _ = r.assessor.Status(instance)
	return out, true, nil
}

// isOver reports whether a time has passed; false for the zero time.
func isOver(until time.Time) bool { return !until.IsZero() && time.Now().After(until) }

// addedResource says how a resource was added to a desired state.
type addedResource struct {
	complete bool // false while a change of the object arrives
	fetched  bool // the object was read from the API server for this
}

// addDesired adds a listed resource to a desired state: as an operation if it exists, else as absent. It leaves out a
// resource that the agent cannot see.
func (r *Reporter) addDesired(
	ctx context.Context, instance target.Instance, resource target.Resource, out *observe.DesiredState,
) (added addedResource, err error) {
	switch r.informers.ResourceStatus(resource).State {
	case target.Absent, target.KindNotInstalled:
		if _, exists := r.targets.ExistingObject(resource.Ref); exists {
			return added, nil
		}
		out.Absent = append(out.Absent, r.listings(instance, target.Identity{Ref: resource.Ref})...)
	case target.Present:
		current, exists := r.targets.ExistingObject(resource.Ref)
		if !exists {
			return added, nil
		}
		for _, attribution := range r.listings(instance, current) {
			op, err := r.objects.operation(ctx, current, attribution)
			if op.cached == nil {
				return added, err
			}
			added.fetched = added.fetched || op.fetched
			out.Operations = append(out.Operations, op.Operation)
		}
	case target.Pending, target.Forbidden, target.Unavailable:
	}
	added.complete = true
	return added, nil
}

// listings returns the attributions by which an instance lists an object, one for each row of the control plane.
func (r *Reporter) listings(instance target.Instance, id target.Identity) []target.Attribution {
	var out []target.Attribution
	rows := map[int64]struct{}{}
	for _, attribution := range r.targets.Attributions(id) {
		if _, done := rows[attribution.Resource.ID]; attribution.Instance == instance && attribution.Listed && !done {
			rows[attribution.Resource.ID] = struct{}{}
			out = append(out, attribution)
		}
	}
	return out
}

// desired returns the reports of the cached Events of an instance: those about the related objects, and those about
// objects that the registry does not know. It returns a part if the context ends.
func (r *eventReporter) desired(ctx context.Context, instance target.Instance, related []target.Identity) []observe.Event {
	var out []observe.Event
	done := map[types.NamespacedName]struct{}{}
	add := func(name types.NamespacedName, firstOf func(*corev1.Event) []target.Attribution) {
		if _, again := done[name]; again || ctx.Err() != nil {
			return
		}
		done[name] = struct{}{}
		ev, ok := r.informers.Event(name)
		if !ok || ev.Shortened { // a comparison does not read an Event whole: that is a request for each
			return
		}
		report, ok := reportTo(instance, r.sink, firstOf(ev.Event), newEventReport(ev.Event, ev.Preexisting))
		if !ok {
			return
		}
		if decision := r.decide(ev.Event); decision.Action != filter.Drop {
			out = append(out, shortenBy(decision, report))
		}
	}
	for _, name := range r.aboutUnknown.of(instance) {
		add(name, func(ev *corev1.Event) []target.Attribution {
			return onePerInstance(r.sink, r.attributions(name, ev))
		})
	}
	// The Events of a name include those of its objects, so the identities without a UID come last.
	slices.SortFunc(related, func(a, b target.Identity) int { return cmp.Compare(b.UID, a.UID) })
	for _, id := range related {
		// Thousands of Events may be about an object of a thousand instances.
		ofObject := sync.OnceValue(func() []target.Attribution { return onePerInstance(r.sink, r.targets.Attributions(id)) })
		for _, name := range r.informers.EventsAbout(id) {
			add(name, func(ev *corev1.Event) []target.Attribution {
				if observe.IsAbout(ev, id) {
					return ofObject()
				}
				return onePerInstance(r.sink, r.attributions(name, ev))
			})
		}
	}
	return out
}

// desiredTerminations returns the reports of the latest termination of each container of an instance's pods. It returns a part if
// the context ends.
func (r *objectReporter) desiredTerminations(ctx context.Context, instance target.Instance, related []target.Identity) []observe.Event {
	var out []observe.Event
	since := r.now().Add(-syntheticRetention)
	for _, id := range related {
		pod, ok := r.pod(id)
		if !ok || ctx.Err() != nil {
			continue
		}
		latest := map[string]observe.ContainerTermination{}
		for _, termination := range observe.ContainerTerminations(pod) {
			if termination.Time.After(since) {
				latest[termination.Container] = termination
			}
		}
		if len(latest) == 0 {
			continue
		}
		attributions := onePerInstance(r.sink, r.targets.Attributions(id))
		for _, termination := range latest {
			if report, ok := reportTo(instance, r.sink, attributions, newTermination(id, termination)); ok {
				out = append(out, report)
			}
		}
	}
	return out
}
