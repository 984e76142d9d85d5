package controller

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// watching tells whether every listed resource is watched, and what comes of them.
func watching(generation int64, sights []target.ResourceStatus, troubles []string) metav1.Condition {
	c := metav1.Condition{
		Type: v1alpha1.ConditionWatching, Status: metav1.ConditionTrue, ObservedGeneration: generation,
		Reason: "Watching", Message: fmt.Sprintf("%d resources are watched", len(sights)),
	}
	var unseen []string
	for _, s := range sights {
		if s.State != target.Present && s.State != target.Absent {
			unseen = append(unseen, fmt.Sprintf("%s is %s", s.Ref, s.State))
		}
	}
	unseen = append(unseen, troubles...)
	if len(unseen) > 0 {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, "NotAllWatched", summary(unseen)
	}
	return c
}

func delivered(generation int64, d v1alpha1.DeliveryStatus) metav1.Condition {
	c := metav1.Condition{
		Type: v1alpha1.ConditionDelivered, Status: metav1.ConditionTrue, ObservedGeneration: generation,
		Reason: "Delivered", Message: "the control plane has what was seen",
	}
	switch {
	case d.Pending > 0:
		c.Status, c.Reason = metav1.ConditionFalse, "Pending"
		c.Message = fmt.Sprintf("%d reports are not accepted yet", d.Pending)
		if d.LastError != "" {
			c.Message += ": " + d.LastError
		}
	case d.Rejected > 0:
		c.Status, c.Reason = metav1.ConditionFalse, "Rejected"
		c.Message = fmt.Sprintf("%d reports were refused for good; see delivery.rejections", d.Rejected)
	}
	if d.Dropped > 0 {
		c.Message += fmt.Sprintf("; %d Events were dropped, because no more may be kept", d.Dropped)
	}
	return c
}

// durable tells whether what is pending outlives the agent.
func durable(generation int64, kept bool, err error) metav1.Condition {
	c := metav1.Condition{
		Type: v1alpha1.ConditionDurable, Status: metav1.ConditionTrue, ObservedGeneration: generation,
		Reason: "Kept", Message: "what is not delivered yet outlives the agent",
	}
	switch {
	case err != nil:
		c.Status, c.Reason = metav1.ConditionFalse, "StateFailing"
		c.Message = shorten("what is not delivered yet is in memory only: "+err.Error(), 1)
	case !kept:
		c.Status, c.Reason = metav1.ConditionFalse, "NoStateDir"
		c.Message = "what is not delivered yet is in memory only: the agent runs without --state-dir"
	}
	return c
}

// healthy tells how the workload is. There is no False without a verdict, and no True without a good one.
func healthy(generation int64, v verdict) metav1.Condition {
	c := metav1.Condition{
		Type: v1alpha1.ConditionHealthy, Status: metav1.ConditionFalse, ObservedGeneration: generation,
		Reason: word(v.reason, word(v.status, "NoReason")), Message: v.message,
	}
	switch v.status {
	case "":
		c.Status, c.Reason = metav1.ConditionUnknown, "NotJudged"
		c.Message = "not every listed resource has been seen yet"
	case statusUnknown:
		c.Status = metav1.ConditionUnknown
	case statusHealthy:
		c.Status = metav1.ConditionTrue
		if c.Message == "" {
			c.Message = "the workload is as it is declared"
		}
	}
	return c
}
