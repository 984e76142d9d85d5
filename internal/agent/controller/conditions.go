package controller

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// reasonTooManyResources is the reason of an excluded workload.
const reasonTooManyResources = "TooManyResources"

// watchingCondition is true if every listed resource and every base kind is watched. Its message also says where the label of
// the workload counts, if that needs attention. An excluded workload has the cause of that.
func watchingCondition(
	generation int64, exclusion string, resources []target.ResourceStatus, baseKindErrors []string, labels target.LabelUse,
) metav1.Condition {
	c := metav1.Condition{
		Type: v1alpha1.ConditionWatching, Status: metav1.ConditionTrue, ObservedGeneration: generation,
		Reason: "Watching", Message: sentence(int64(len(resources)), "resource", "is", "are", "watched"),
	}
	if exclusion != "" {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, reasonTooManyResources, exclusion
		return c
	}
	var unwatched []string
	for _, r := range resources {
		if r.State != target.Present && r.State != target.Absent {
			unwatched = append(unwatched, fmt.Sprintf("%s is %s", r.Ref, r.State))
		}
	}
	unwatched = append(unwatched, baseKindErrors...)
	if len(unwatched) > 0 {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, "NotAllWatched", summarize(unwatched)
	}
	c.Message = joinUnique(c.Message, labelMessage(labels))
	return c
}

// labelMessage says that the label of a workload counts everywhere, or names objects on which it does not count.
func labelMessage(labels target.LabelUse) string {
	const remedy = "the annotation " + v1alpha1.AnnotationNamespaces
	if labels.Everywhere {
		return "the label of the workload counts in all namespaces, because no resource names one; " + remedy + " names them"
	}
	if len(labels.Ignored) == 0 {
		return ""
	}
	var names []string
	for _, ref := range labels.Ignored {
		names = append(names, ref.String())
	}
	atLeast := ""
	if labels.More {
		atLeast = "at least "
	}
	return truncateMessage(atLeast+sentence(int64(len(names)), "object", "has", "have", "the label of the workload in a namespace where it "+
		"does not count; "+remedy+" adds namespaces: "+summarize(names)), 1)
}

// Reasons of the condition Delivered.
const (
	reasonDelivered = "Delivered"
	reasonPending   = "Pending" // for the first answer of the control plane, or during an outage
)

// removedRow is a row of a workload that the control plane had and removed. The zero value is none.
type removedRow struct{ reason, message string }

// findRemoved returns the first removed row of an instance or of its resources. Only listed resources count.
func findRemoved(instance target.Instance, resources []target.ResourceStatus, removed []int64) removedRow {
	const message = "the control plane removed %s %d, so that reports about it are discarded: %s"
	if slices.Contains(removed, 0) {
		return removedRow{"InstanceRemoved", fmt.Sprintf(message, instance.Type, instance.ID, "delete the ThreeportWorkload, or name another instance")}
	}
	for _, r := range resources {
		if r.ID != 0 && slices.Contains(removed, r.ID) {
			return removedRow{"ResourceRemoved", fmt.Sprintf(message, "WorkloadResourceInstance", r.ID, "remove "+r.String()+" from the list, or change its threeportID")}
		}
	}
	return removedRow{}
}

// deliveredCondition is true if no report is overdue, rejected or discarded. The refusal, if any, is the reason of pending reports.
func deliveredCondition(generation int64, d v1alpha1.DeliveryStatus, refusal target.Refusal, removed removedRow) metav1.Condition {
	c := metav1.Condition{
		Type: v1alpha1.ConditionDelivered, Status: metav1.ConditionTrue, ObservedGeneration: generation,
		Reason: reasonDelivered, Message: "all reports are delivered",
	}
	switch {
	case removed.reason != "":
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, removed.reason, removed.message
	case d.Pending > 0:
		c.Status, c.Reason = metav1.ConditionFalse, reasonPending
		if refusal != "" {
			c.Reason = string(refusal)
		}
		c.Message = sentence(d.Pending, "report", "is", "are", "not delivered yet")
		if d.LastError != "" {
			c.Message += ": " + d.LastError
		}
	case d.Rejected > 0:
		c.Status, c.Reason = metav1.ConditionFalse, "Rejected"
		c.Message = sentence(d.Rejected, "report", "was", "were", "rejected; see delivery.rejections")
		if len(d.Rejections) > 0 {
			c.Message = truncateMessage(c.Message+": "+d.Rejections[0].Report+": "+d.Rejections[0].Reason, 1)
		}
	}
	if d.Dropped > 0 {
		c.Message += "; " + sentence(d.Dropped, "Event", "was", "were", "dropped, because the agent's queue was full")
	}
	return c
}

// durableCondition is true if undelivered reports survive the end of the process.
func durableCondition(generation int64, durable bool, err error) metav1.Condition {
	c := metav1.Condition{
		Type: v1alpha1.ConditionDurable, Status: metav1.ConditionTrue, ObservedGeneration: generation,
		Reason: "Kept", Message: "undelivered reports survive a restart",
	}
	switch {
	case err != nil:
		c.Status, c.Reason = metav1.ConditionFalse, "StateFailing"
		c.Message = truncateMessage("undelivered reports are lost on restart: "+err.Error(), 1)
	case !durable:
		c.Status, c.Reason = metav1.ConditionFalse, "NoStateDir"
		c.Message = "undelivered reports are lost on restart; set --state-dir"
	}
	return c
}

// healthyCondition is the verdict on the workload. It is Unknown without a verdict, and for the verdict Unknown.
func healthyCondition(generation int64, v verdict) metav1.Condition {
	c := metav1.Condition{
		Type: v1alpha1.ConditionHealthy, Status: metav1.ConditionFalse, ObservedGeneration: generation,
		Reason: conditionReason(v.reason, conditionReason(v.status, "NoReason")), Message: v.message,
	}
	switch v.status {
	case "":
		c.Status, c.Reason = metav1.ConditionUnknown, "NotJudged"
		c.Message = "not every listed resource has been observed yet"
	case statusUnknown:
		c.Status = metav1.ConditionUnknown
	case statusHealthy:
		c.Status = metav1.ConditionTrue
		if c.Message == "" {
			c.Message = "every listed resource is Healthy"
		}
	}
	return c
}

// setShared sets the conditions about other workloads that have the same instance or list the same resources. A condition is
// removed if there are none.
func setShared(
	conditions *[]metav1.Condition, wl *v1alpha1.ThreeportWorkload, sameInstance []string, resources []target.SharedResource,
) {
	var others []string
	for _, name := range sameInstance {
		if name != wl.Name {
			others = append(others, "ThreeportWorkload "+name)
		}
	}
	setIfAny(conditions, others, metav1.Condition{
		Type: v1alpha1.ConditionInstanceShared, Status: metav1.ConditionTrue, ObservedGeneration: wl.Generation, Reason: "SameInstance",
		Message: fmt.Sprintf("the control plane shows one workload for this and for others with %s: ", instanceOf(wl)),
	})
	var shared []string
	for _, r := range resources {
		others := strings.Join(r.Workloads, ", ")
		if r.More > 0 {
			others += fmt.Sprintf(" and %d more", r.More)
		}
		shared = append(shared, fmt.Sprintf("%s is also listed by %s; through v0 only %s gets its Events", r.Ref, others, r.First))
	}
	setIfAny(conditions, shared, metav1.Condition{
		Type: v1alpha1.ConditionResourcesShared, Status: metav1.ConditionTrue, ObservedGeneration: wl.Generation, Reason: "SameResource",
		Message: fmt.Sprintf("other instances list the same resources; in report sets up to %d instances get their Events: ", target.MaxEventInstances),
	})
}

// setIfAny sets a condition about some findings, which end its message, or removes it if there are none.
func setIfAny(conditions *[]metav1.Condition, findings []string, c metav1.Condition) {
	if len(findings) == 0 {
		meta.RemoveStatusCondition(conditions, c.Type)
		return
	}
	c.Message = truncateMessage(c.Message+summarize(findings), 1)
	meta.SetStatusCondition(conditions, c)
}
