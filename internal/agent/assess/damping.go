package assess

import (
	"encoding/json"
	"hash/fnv"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/threeport/threeport-agent/internal/health"
)

// Note starts the damping of a workload, and records its verdict. It returns after how long the damping may end; zero if the
// verdict is not damped.
func (a *Assessor) Note(workload string) (recheck time.Duration) {
	a.mu.Lock()
	if a.flapping[workload] == nil {
		a.flapping[workload] = &health.Flapping{}
	}
	a.mu.Unlock()
	_, until, ok := a.damped(workload)
	if !ok || until.IsZero() {
		return 0
	}
	return max(until.Sub(a.config.Now()), 1)
}

// damped returns the verdict on a workload, and until when it is damped; zero if it is not. It records each verdict that it
// returns. A short state that a reader sees is a change, even if it is over when [Assessor.Note] is called.
func (a *Assessor) damped(workload string) (v health.Verdict, until time.Time, ok bool) {
	now := a.config.Now() // before the verdict is read, so that a newer one of another reader wins
	v, ok = a.undamped(workload)
	if !ok {
		return v, until, false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if f := a.flapping[workload]; f != nil {
		f.Note(v, now)
		v, until = f.Damp(v, now)
	}
	return v, until, true
}

// restartDamping forgets the changes of a workload, because they are of an earlier version of a listed object.
func (a *Assessor) restartDamping(workload string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.flapping[workload] != nil {
		a.flapping[workload] = &health.Flapping{}
	}
}

// specVersion identifies the spec of a listed object, without the number of replicas: an autoscaler makes no new version.
type specVersion struct {
	generation int64
	hash       uint64
}

// specAfter returns the version of the object's spec, after an earlier one. The hash is computed only for another generation, and once
// for all workloads. Some custom resources have a new generation for each status.
func (o *Judged) specAfter(earlier specVersion) specVersion {
	u, ok := o.whole.(*unstructured.Unstructured)
	if !ok || u.GetGeneration() == earlier.generation {
		return earlier
	}
	if o.spec.generation == u.GetGeneration() {
		return o.spec
	}
	spec, _ := u.Object["spec"].(map[string]any)
	spec = maps.Clone(spec)
	delete(spec, "replicas")
	h := fnv.New64a()
	if err := json.NewEncoder(h).Encode(spec); err != nil {
		return earlier // no object of the API server has such a value
	}
	o.spec = specVersion{u.GetGeneration(), h.Sum64()}
	return o.spec
}
