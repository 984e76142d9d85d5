package controller

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// watchingCondition is true if every listed resource and every base kind is watched.
func watchingCondition(generation int64, resources []target.ResourceStatus, baseKindErrors []string) metav1.Condition {
	c := metav1.Condition{
		Type: v1alpha1.ConditionWatching, Status: metav1.ConditionTrue, ObservedGeneration: generation,
		Reason: "Watching", Message: sentence(int64(len(resources)), "resource", "is", "are", "watched"),
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
	return c
}

// deliveredCondition is true if no report is pending or rejected. notAssigned gives the reason of pending reports: see
// [target.DeliveryProgress].
func deliveredCondition(generation int64, d v1alpha1.DeliveryStatus, notAssigned bool) metav1.Condition {
	c := metav1.Condition{
		Type: v1alpha1.ConditionDelivered, Status: metav1.ConditionTrue, ObservedGeneration: generation,
		Reason: "Delivered", Message: "all reports are delivered",
	}
	switch {
	case d.Pending > 0:
		c.Status, c.Reason = metav1.ConditionFalse, "Pending"
		if notAssigned {
			c.Reason = "NotAssigned"
		}
		c.Message = sentence(d.Pending, "report", "is", "are", "not delivered yet")
		if d.LastError != "" {
			c.Message += ": " + d.LastError
		}
	case d.Rejected > 0:
		c.Status, c.Reason = metav1.ConditionFalse, "Rejected"
		c.Message = sentence(d.Rejected, "report", "was", "were", "rejected; see delivery.rejections")
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
