package assess

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/health"
)

// Object is the newest version of an object.
type Object struct {
	target.Identity
	// Cached is the object from the cache. Health judges Pods, and derived objects, by this version.
	Cached any
	// Whole is a listed object with all its fields; nil for a derived object.
	Whole runtime.Object
	// Warning is the latest Event of type Warning about the object.
	Warning health.Warning
}

// Judged is the verdict on an object, without its dependents, and what else the assessor keeps of it. It is the same for all workloads
// that list the object, or for all that it descends from.
type Judged struct {
	target.Identity
	// Recheck is when the verdict ends without a change of the object; zero if it does not.
	Recheck time.Time

	assessment health.Assessment
	whole      runtime.Object // as in Object
	labels     health.PodLabels
	facts      *observe.PodFacts // nil if it is no Pod
	spec       specVersion       // of whole; zero until a workload needs it
}

// Change says what an object changed in a workload.
type Change struct {
	// Assessment is true if the assessment differs from the one before.
	Assessment bool
	// Facts is true if the facts of a Pod differ from those before. Only the tree has them.
	Facts bool
}

// Judge judges an object. It returns nil for derived objects of kinds that health judges by their own dependents, such as
// ReplicaSets.
func (a *Assessor) Judge(o Object, listed bool) *Judged {
	if !listed && !health.CountsAsDependent(o.GroupKind()) {
		return nil
	}
	assessment := a.judge(o, health.Context{Now: a.config.Now(), Warning: o.Warning, Rules: a.config.Rules})
	a.metrics.assessments.Inc()
	out := &Judged{Identity: o.Identity, Recheck: assessment.Recheck, assessment: assessment, whole: o.Whole}
	if listed {
		out.labels = health.PodLabelsOf(o.GroupKind(), o.Whole)
	}
	if pod, ok := o.Cached.(*corev1.Pod); ok {
		out.facts = observe.NewPodFacts(pod)
	}
	return out
}

// Keep keeps the verdict on an object for a workload.
func (a *Assessor) Keep(attribution target.Attribution, o *Judged) Change {
	var via health.OwnerPath
	var newLabels, newSpec bool
	if attribution.Listed {
		newLabels, newSpec = a.assessments.setSpec(attribution, o)
	} else {
		via = a.ownerPath(o.Identity, attribution)
	}
	changed := a.assessments.set(attribution, o.Identity, via, o.assessment)
	if newSpec {
		a.restartDamping(attribution.Workload)
	}
	out := Change{Assessment: changed || newLabels || newSpec}
	if o.facts != nil {
		out.Facts = a.assessments.setPod(attribution, o.UID, o.facts)
	}
	return out
}

// Remove drops the assessment of an object that is deleted, or that no longer belongs to the workload.
func (a *Assessor) Remove(attribution target.Attribution, id target.Identity) {
	a.assessments.remove(attribution, id)
}

// judge judges an object. A panic costs the verdict on this object, and not the process. The log names the object; the value of
// the panic may have content of it, so only its type is logged.
func (a *Assessor) judge(o Object, context health.Context) (assessment health.Assessment) {
	defer func() {
		value := recover()
		if value == nil {
			return
		}
		a.metrics.panics.Inc()
		a.panicLog.Do(func() {
			a.log.Error(errPanic, "The health of an object is Unknown: please report this", "object", o.String(),
				"panic", fmt.Sprintf("%T", value), "stack", string(debug.Stack()))
		})
		assessment = health.Assessment{Verdict: health.Verdict{
			Status: health.Unknown, Reason: "InternalError", Message: "the agent failed to assess " + o.String() + ": its log has the cause",
		}}
	}()
	return judgeObject(o, context)
}

var errPanic = errors.New("the assessment panicked")

func judgeObject(o Object, context health.Context) health.Assessment {
	pod, isPod := o.Cached.(*corev1.Pod)
	if isPod {
		if out, ok := judgePodByRules(pod, o.Whole, context); ok {
			return out
		}
		return health.Pod(pod, context)
	}
	body := o.Whole
	if cached, ok := o.Cached.(runtime.Object); ok && body == nil {
		body = cached
	}
	return health.Object(o.GroupKind(), body, context)
}

// judgePodByRules judges a Pod by the user's rules. They see a derived Pod as the cache keeps it.
func judgePodByRules(pod *corev1.Pod, whole runtime.Object, context health.Context) (health.Assessment, bool) {
	if context.Rules == nil || pod.DeletionTimestamp != nil || !context.Rules.Covers(podKind) {
		return health.Assessment{}, false
	}
	if whole == nil {
		whole = pod
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(whole)
	if err != nil {
		return health.Assessment{}, false
	}
	object["apiVersion"], object["kind"] = "v1", podKind.Kind
	return context.Rules.Judge(podKind, object, context.Now)
}

// ownerPath returns the owners between an object and the resource of an attribution.
func (a *Assessor) ownerPath(id target.Identity, attribution target.Attribution) health.OwnerPath {
	var path health.OwnerPath
	for _, owner := range a.targets.OwnerPath(id.UID, attribution.Resource.Ref) {
		path = path.Append(health.ObjectRef{Kind: owner.Kind, Name: owner.Name})
	}
	return path
}
