package informers

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/health"
)

// board holds the verdicts on listed resources and on what descends from them, so that a change of one pod
// does not read the others. What they come to is worked out when somebody asks.
type board struct {
	mu        sync.Mutex
	workloads map[string]map[target.Ref]*standing
}

// standing is how one listed resource stands. The zero reference is what belongs to a workload by its label alone.
type standing struct {
	uid    types.UID
	own    health.Assessment
	judged bool
	family health.Dependents // what descends from it
	joint  *judgement        // nil if something has changed since
}

// judgement is what is known of the health of a resource together with what descends from it.
type judgement struct {
	health.Verdict
	pods target.Count
}

func newBoard() *board { return &board{workloads: map[string]map[target.Ref]*standing{}} }

// assess puts in the verdict on an object, and reports whether it is news. Via is what stands between the object and the
// resource that it descends from.
func (b *board) assess(claim target.Attribution, id target.Identity, via health.OwnerPath, a health.Assessment) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.standing(claim)
	news := false
	if claim.Listed {
		news = !s.judged || s.own.Verdict != a.Verdict || s.own.Phase != a.Phase || s.uid != id.UID
		s.own, s.uid, s.judged = a, id.UID, true
	} else {
		news = s.family.Set(health.Dependent{UID: id.UID, Kind: id.Kind, Name: id.Name, Via: via, Assessment: a})
	}
	if news {
		s.joint = nil
	}
	return news
}

// drop removes an object that is gone, or that is the workload's no more.
func (b *board) drop(claim target.Attribution, id target.Identity) {
	b.mu.Lock()
	defer b.mu.Unlock()
	resources := b.workloads[claim.Workload]
	s := resources[claim.Resource.Ref]
	switch {
	case s == nil:
		return
	case claim.Listed:
		if s.uid == id.UID {
			s.judged = false
		}
	default:
		s.family.Remove(id.UID)
	}
	s.joint = nil
	if s.judged || s.family.Len() > 0 {
		return
	}
	delete(resources, claim.Resource.Ref)
	if len(resources) == 0 {
		delete(b.workloads, claim.Workload)
	}
}

func (b *board) standing(claim target.Attribution) *standing {
	resources := b.workloads[claim.Workload]
	if resources == nil {
		resources = map[target.Ref]*standing{}
		b.workloads[claim.Workload] = resources
	}
	s := resources[claim.Resource.Ref]
	if s == nil {
		s = &standing{}
		resources[claim.Resource.Ref] = s
	}
	return s
}

func (b *board) forget(workload string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.workloads, workload)
}

// judgements returns how the resources of a workload stand.
func (b *board) judgements(workload string) map[target.Ref]judgement {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make(map[target.Ref]judgement, len(b.workloads[workload]))
	for ref, s := range b.workloads[workload] {
		if s.joint == nil {
			s.joint = s.join(ref)
		}
		out[ref] = *s.joint
	}
	return out
}

// members returns what is judged of the objects that descend from a workload's resources.
func (b *board) members(workload string) map[types.UID]health.Dependent {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := map[types.UID]health.Dependent{}
	for _, s := range b.workloads[workload] {
		s.family.Each(func(m health.Dependent) { out[m.UID] = m })
	}
	return out
}

// join works out what a resource comes to. One that is not judged yet has no status.
func (s *standing) join(ref target.Ref) *judgement {
	out := &judgement{pods: target.Count(s.family.Count(podKind.Kind))}
	own := s.own
	switch {
	case ref == (target.Ref{}):
		own = health.Assessment{Verdict: health.Verdict{Status: health.Healthy}}
	case !s.judged:
		return out
	case ref.GroupKind() == podKind.GroupKind():
		out.pods.Total++
		if own.Status == health.Healthy {
			out.pods.Healthy++
		}
	}
	out.Verdict = s.family.Combine(ref.GroupKind(), own).Verdict
	return out
}
