package health

import (
	"fmt"
	"maps"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// rule assesses an object of one kind.
type rule func(*fields, Context) Assessment

// builtin are the rules of the built-in kinds.
var builtin = func() map[schema.GroupKind]rule {
	all := map[schema.GroupKind]rule{}
	for _, group := range []map[schema.GroupKind]rule{
		workloadRules, batchRules, networkRules, gatewayRules, storageRules, autoscalingRules, policyRules, clusterRules,
		apiextensionsRules, existenceRules,
	} {
		maps.Copy(all, group)
	}
	return all
}()

// Object assesses an object by itself. A kind without a rule is assessed by the API conventions. An object without a
// signal is Unknown. An object that looks Healthy is Unknown too if a field that was read is malformed.
//
// Source: https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md
func Object(kind schema.GroupKind, obj runtime.Object, ctx Context) Assessment {
	o, ok := obj.(metav1.Object)
	if !ok {
		return verdict(Unknown, "NoSignal", kind.Kind+" cannot be read")
	}
	subject := strings.TrimSpace(kind.Kind + " " + o.GetName())
	var a Assessment
	if u, ok := obj.(runtime.Unstructured); ok {
		a = assessUnstructured(kind, &unstructured.Unstructured{Object: u.UnstructuredContent()}, ctx)
	} else {
		a = assessMetadata(kind, subject, o, ctx)
	}
	a.Subject = subject
	return a.bounded()
}

// The bounds of an assessment's texts, in bytes. A caller keeps them as long as the object exists, whose keys may have a megabyte each.
const (
	maxReason     = 256 // as a report has
	maxAssessment = 4 << 10
)

// bounded returns an assessment with short texts. It leaves out a start outside of the years that RFC 3339 can write, because nothing
// could encode it. The API server accepts the last second of 9999 west of Greenwich, which is in the year 10000 in UTC.
func (a Assessment) bounded() Assessment {
	a.Reason, a.Message = truncate(a.Reason, maxReason), truncate(a.Message, maxAssessment)
	if year := a.Since.UTC().Year(); year < 1 || year > 9999 {
		a.Since = time.Time{}
	}
	return a
}

func assessUnstructured(kind schema.GroupKind, o *unstructured.Unstructured, ctx Context) Assessment {
	s := &fields{kind: kind, object: o.Object}
	s.checkIdentity()
	s.trace = ctx.Trace
	if o.GetDeletionTimestamp() != nil {
		ctx.Trace.decidedBy("metadata.deletionTimestamp of ", kind)
		return terminating(s, ctx)
	}
	if s.value("metadata", "deletionTimestamp") != nil {
		s.note("metadata", "deletionTimestamp") // the accessor could not parse it
	}
	if ctx.Rules != nil {
		if a, ok := ctx.Rules.Judge(kind, o.Object, ctx.Now); ok {
			if rules, can := ctx.Rules.(Explainer); can && ctx.Trace != nil {
				ctx.Trace.By = rules.Explain(kind, o.Object, ctx.Now)
			}
			if a.idle() {
				a = suspended(s, ctx, a)
			}
			return s.unlessMalformed(a)
		}
	}
	judge, ok := builtin[kind]
	ctx.Trace.decidedBy("the built-in rule for ", kind)
	if !ok {
		judge = byConventions
		ctx.Trace.decidedBy("the conventions, because there is no rule for ", kind)
	}
	return s.unlessMalformed(judge(s, ctx))
}

// unlessMalformed makes a Healthy object Unknown if a field that was read is malformed.
func (f *fields) unlessMalformed(a Assessment) Assessment {
	if a.Status == Healthy && f.malformed != "" {
		return malformed(f)
	}
	return a
}

func malformed(s *fields) Assessment {
	return verdict(Unknown, "Malformed", s.subject()+" has a malformed "+s.malformed)
}

// checkIdentity notes a malformed name or namespace. They may be absent: a manifest may have a generateName only.
func (f *fields) checkIdentity() {
	if f.table("metadata") == nil {
		return
	}
	f.text("metadata", "name")
	f.text("metadata", "namespace")
}

// assessMetadata assesses an object whose metadata alone is watched.
func assessMetadata(kind schema.GroupKind, subject string, o metav1.Object, ctx Context) Assessment {
	if deleted := o.GetDeletionTimestamp(); deleted != nil {
		return terminatingMetadata(subject, deleted.Time, o.GetFinalizers(), ctx)
	}
	if _, ok := existenceRules[kind]; ok {
		return healthy
	}
	return verdict(Unknown, "NoSignal", subject+" is watched by its metadata only")
}

// terminating assesses an object that is being deleted.
func terminating(s *fields, ctx Context) Assessment {
	switch s.kind {
	case podKind:
		return podFields(s, ctx) // a pod has a grace period
	case schema.GroupKind{Kind: "Namespace"}:
		return namespaceTerminating(s, ctx)
	}
	var finalizers []string
	for _, item := range s.list("metadata", "finalizers") {
		if name, ok := item.(string); ok {
			finalizers = append(finalizers, name)
		}
	}
	return terminatingMetadata(s.subject(), s.time("metadata", "deletionTimestamp"), finalizers, ctx)
}

// terminatingMetadata assesses an object that is being deleted: the API server removes it after its last finalizer.
//
// Source: metadata.deletionTimestamp and metadata.finalizers,
// https://kubernetes.io/docs/concepts/overview/working-with-objects/finalizers/
func terminatingMetadata(subject string, since time.Time, finalizers []string, ctx Context) Assessment {
	message := subject + " is being deleted"
	if len(finalizers) > 0 {
		message += ", and waits for " + enumerate("finalizer", finalizers)
	}
	a := pending(ctx, since, deletion, Unhealthy, "Terminating", message)
	if a.Status == Unhealthy {
		a.Reason = "DeletionStuck"
	}
	return a
}

// enumerate lists names behind a noun: "finalizers a, b and 3 more".
func enumerate(sort string, names []string) string {
	if len(names) == 1 {
		return sort + " " + brief(names[0])
	}
	const most = 5
	more := ""
	if len(names) > most {
		names, more = names[:most], fmt.Sprintf(" and %d more", len(names)-most)
	}
	return sort + "s " + brief(strings.Join(names, ", ")) + more
}

var healthy = Assessment{Verdict: Verdict{Status: Healthy}}

func verdict(status Status, reason, message string) Assessment {
	return Assessment{Verdict: Verdict{status, reason, message}}
}

// unlessBehind returns a rule for objects whose controller has observed the latest spec. Others are Reconciling.
//
// Source: metadata.generation and status.observedGeneration, API conventions, "Typical status properties".
func unlessBehind(judge rule) rule {
	return func(s *fields, ctx Context) Assessment {
		observed, ok := s.generation("status", "observedGeneration")
		if !ok && isBlank(s.value("status")) {
			return neverObserved(s, ctx)
		}
		if !ok || observed < s.numberOr(0, "metadata", "generation") {
			return notObserved(s)
		}
		a := judge(s, ctx)
		if v := s.value("spec", "replicas"); v != nil && !worse(a.Status, Reconciling) {
			if _, ok := whole(v); !ok {
				return malformed(s) // the desired state is unknown
			}
		}
		return a
	}
}

// isBlank reports whether a status is as the API server defaults it: required counts are 0, and other fields are absent.
func isBlank(status any) bool {
	table, ok := status.(map[string]any)
	for _, v := range table {
		if n, isCount := whole(v); v != nil && (!isCount || n != 0) {
			return false
		}
	}
	return ok || status == nil
}

// neverObserved assesses an object without a status. After the startup limit, no controller seems to run for it.
func neverObserved(s *fields, ctx Context) Assessment {
	a := notObserved(s)
	if late := pending(ctx, s.created(), startup, Unhealthy, "NotObserved", "no controller has seen "+s.subject()); late.Status == Unhealthy {
		return late
	}
	if created := s.created(); !created.IsZero() {
		a.Since, a.Recheck = created, created.Add(startup)
	}
	return a
}

func notObserved(s *fields) Assessment {
	return verdict(Reconciling, "SpecNotObserved", "the controller of "+s.subject()+" has not seen the latest spec yet")
}
