package assess

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/health"
)

var (
	podKind     = schema.GroupKind{Kind: "Pod"}
	serviceKind = schema.GroupKind{Kind: "Service"}
)

// assessments caches the assessments of listed resources and of their descendants, by workload and resource. The zero
// reference holds the objects that belong to a workload by their label only.
type assessments struct {
	mu        sync.Mutex
	workloads map[string]map[target.Ref]*resourceHealth
}

// resourceHealth holds the assessments of one listed resource and of its descendants.
type resourceHealth struct {
	uid         types.UID
	self        health.Assessment
	assessed    bool // self is set
	labels      health.PodLabels
	spec        specVersion
	descendants health.Dependents
	verdict     *resourceVerdict // nil if an assessment has changed since it was computed
	pods        map[types.UID]*observe.PodFacts
}

// resourceVerdict is the health of a resource together with its descendants.
type resourceVerdict struct {
	health.Verdict
	since time.Time // when the status began; zero if the cluster does not record that
	pods  target.Count
}

func newAssessments() *assessments {
	return &assessments{workloads: map[string]map[target.Ref]*resourceHealth{}}
}

// set stores the assessment of an object, and reports whether it has changed. via is the owner path from the resource to
// the object.
func (s *assessments) set(attribution target.Attribution, id target.Identity, via health.OwnerPath, a health.Assessment) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.resource(attribution)
	changed := false
	if attribution.Listed {
		changed = !r.assessed || r.self.Verdict != a.Verdict || r.self.Phase != a.Phase || r.uid != id.UID
		r.self, r.uid, r.assessed = a, id.UID, true
	} else {
		changed = r.descendants.Set(health.Dependent{UID: id.UID, Kind: id.Kind, Name: id.Name, Via: via, Assessment: a})
	}
	if changed {
		r.verdict = nil
	}
	return changed
}

// setPod stores the facts of a Pod that is assessed, and reports whether they have changed.
func (s *assessments) setPod(attribution target.Attribution, pod types.UID, facts *observe.PodFacts) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.resource(attribution)
	if facts.Equal(r.pods[pod]) {
		return false
	}
	if r.pods == nil {
		r.pods = map[types.UID]*observe.PodFacts{}
	}
	r.pods[pod] = r.shareContainers(facts)
	return true
}

// shareContainers returns the facts of a Pod with the containers of another Pod if they are the same, as those of most replicas are. A
// map begins with another Pod each time.
func (r *resourceHealth) shareContainers(facts *observe.PodFacts) *observe.PodFacts {
	for _, sibling := range r.pods {
		if sibling != nil && facts != nil && slices.Equal(sibling.Containers, facts.Containers) {
			return &observe.PodFacts{Node: facts.Node, Containers: sibling.Containers}
		}
		break
	}
	return facts
}

// setSpec stores what a listed object declares. It reports whether the labels of its Pods have changed, and whether the same object
// has a new spec.
func (s *assessments) setSpec(attribution target.Attribution, o *Judged) (newLabels, newSpec bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.resource(attribution)
	spec := o.specAfter(r.spec)
	newLabels = !o.labels.Equal(r.labels)
	newSpec = r.assessed && r.uid == o.UID && spec.hash != r.spec.hash
	r.labels, r.spec = o.labels, spec
	return newLabels, newSpec
}

// remove removes an object that is deleted, or that no longer belongs to the workload.
func (s *assessments) remove(attribution target.Attribution, id target.Identity) {
	s.mu.Lock()
	defer s.mu.Unlock()
	resources := s.workloads[attribution.Workload]
	r := resources[attribution.Resource.Ref]
	switch {
	case r == nil:
		return
	case attribution.Listed:
		if r.uid == id.UID {
			r.assessed = false
		}
	default:
		r.descendants.Remove(id.UID)
	}
	r.verdict = nil
	delete(r.pods, id.UID)
	if r.assessed || r.descendants.Len() > 0 {
		return
	}
	delete(resources, attribution.Resource.Ref)
	if len(resources) == 0 {
		delete(s.workloads, attribution.Workload)
	}
}

func (s *assessments) resource(attribution target.Attribution) *resourceHealth {
	resources := s.workloads[attribution.Workload]
	if resources == nil {
		resources = map[target.Ref]*resourceHealth{}
		s.workloads[attribution.Workload] = resources
	}
	r := resources[attribution.Resource.Ref]
	if r == nil {
		r = &resourceHealth{}
		resources[attribution.Resource.Ref] = r
	}
	return r
}

func (s *assessments) forget(workload string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.workloads, workload)
}

// verdicts returns the verdicts on the resources of a workload.
func (s *assessments) verdicts(workload string) map[target.Ref]resourceVerdict {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[target.Ref]resourceVerdict, len(s.workloads[workload]))
	s.setExpected(workload)
	for ref, r := range s.workloads[workload] {
		out[ref] = *r.combined(ref)
	}
	return out
}

// setExpected sets the verdict on the empty EndpointSlices of the Services of a workload; with mu held.
func (s *assessments) setExpected(workload string) {
	var creators []health.PodCreator
	for ref, r := range s.workloads[workload] {
		if !r.assessed || ref.GroupKind() == serviceKind {
			continue
		}
		creators = append(creators, health.PodCreator{Labels: r.labels, Verdict: r.combined(ref).Verdict})
	}
	for ref, r := range s.workloads[workload] {
		if ref.GroupKind() != serviceKind || r.descendants.Len() == 0 {
			continue
		}
		if r.descendants.SetExpected(health.ExpectedVerdict(r.labels, creators)) {
			r.verdict = nil
		}
	}
}

// descendants returns the assessed objects that descend from a workload's resources.
func (s *assessments) descendants(workload string) map[types.UID]health.Dependent {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[types.UID]health.Dependent{}
	s.setExpected(workload)
	for _, r := range s.workloads[workload] {
		r.descendants.Each(func(d health.Dependent) { out[d.UID] = d })
	}
	return out
}

// podFacts returns the facts of the Pods of a workload.
func (s *assessments) podFacts(workload string) map[types.UID]*observe.PodFacts {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[types.UID]*observe.PodFacts{}
	for _, r := range s.workloads[workload] {
		maps.Copy(out, r.pods)
	}
	return out
}

// size returns the number of workloads.
func (s *assessments) size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.workloads)
}

// combined returns the verdict on a resource, and computes it if it may have changed.
func (r *resourceHealth) combined(ref target.Ref) *resourceVerdict {
	if r.verdict == nil {
		r.verdict = r.combine(ref)
	}
	return r.verdict
}

// combine computes the verdict on a resource. A resource that is not assessed yet has no status.
func (r *resourceHealth) combine(ref target.Ref) *resourceVerdict {
	out := &resourceVerdict{pods: target.Count(r.descendants.Pods())}
	self := r.self
	switch {
	case ref == (target.Ref{}):
		self = health.Assessment{Verdict: health.Verdict{Status: health.Healthy}}
	case !r.assessed:
		return out
	case ref.GroupKind() == podKind && !self.HasCompleted():
		out.pods.Total++
		if self.Status == health.Healthy {
			out.pods.Healthy++
		}
	}
	combined := r.descendants.Combine(ref.GroupKind(), self)
	out.Verdict, out.since = combined.Verdict, combined.Since
	return out
}
