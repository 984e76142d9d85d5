package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/target"
)

// reconcileStatus writes a workload's status if it changed: at once if a resource's state did, else not more
// often than statusInterval allows.
func (r *Reconciler) reconcileStatus(ctx context.Context, wl *v1alpha1.ThreeportWorkload) (ctrl.Result, error) {
	progress := r.delivery.Progress(instanceOf(wl))
	status := r.status(wl, progress)
	next := ctrl.Result{RequeueAfter: resyncInterval}
	if progress.Pending > 0 {
		next.RequeueAfter = statusInterval
	}
	if equality.Semantic.DeepEqual(status, wl.Status) {
		return next, nil
	}
	if wait := r.writable(wl.Name); wait > 0 && sameStates(status.Resources, wl.Status.Resources) {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	before := wl.DeepCopy()
	wl.Status = status
	if err := r.client.Status().Patch(ctx, wl, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("write status of ThreeportWorkload %s: %w", wl.Name, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.written[wl.Name] = r.now()
	return next, nil
}

// writable returns how long the next write of a status has to wait.
func (r *Reconciler) writable(name string) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.written[name].Add(statusInterval).Sub(r.now())
}

func sameStates(a, b []v1alpha1.ResourceStatus) bool {
	return slices.EqualFunc(a, b, func(a, b v1alpha1.ResourceStatus) bool { return a.State == b.State && a.Message == b.Message })
}

// status returns what is known of a workload.
func (r *Reconciler) status(wl *v1alpha1.ThreeportWorkload, progress Progress) v1alpha1.ThreeportWorkloadStatus {
	status := v1alpha1.ThreeportWorkloadStatus{
		ObservedGeneration: wl.Generation,
		Conditions:         slices.Clone(wl.Status.Conditions),
	}
	health, reason, message := r.watcher.Health(wl.Name)
	status.Health, status.Reason = health, shorten(strings.Trim(reason+": "+message, ": "), 1)
	sights := r.watcher.Sights(wl.Name)
	for _, s := range sights {
		status.Resources = append(status.Resources, v1alpha1.ResourceStatus{
			Group: s.Group, Version: s.Version, Kind: s.Kind, Namespace: s.Namespace, Name: s.Name,
			State: v1alpha1.ResourceState(s.State), Message: shorten(s.Message, len(sights)), Health: s.Health, Reason: cut(s.Reason, mostReason),
		})
	}
	meta.SetStatusCondition(&status.Conditions, watching(wl.Generation, sights, r.watcher.Troubles()))
	status.Delivery = r.deliveryStatus(progress)
	meta.SetStatusCondition(&status.Conditions, delivered(wl.Generation, status.Delivery))
	return status
}

// watching tells whether every listed resource is watched, and what comes of them.
func watching(generation int64, sights []target.Sight, troubles []string) metav1.Condition {
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

// behind is how old the oldest pending report may be before delivery counts as behind: a report that is
// just on its way is not worth two writes of the status.
const behind = 5 * time.Second

// deliveryStatus tells how far the control plane is behind, in steps that do not change all the time.
func (r *Reconciler) deliveryStatus(p Progress) v1alpha1.DeliveryStatus {
	d := v1alpha1.DeliveryStatus{Rejected: p.Rejected}
	for _, rejection := range p.Rejections {
		rejection.Reason = shorten(rejection.Reason, 1)
		d.Rejections = append(d.Rejections, rejection)
	}
	if p.Pending > 0 && r.now().Sub(p.Since) > behind {
		since := metav1.NewTime(p.Since.Truncate(time.Second))
		d.Pending, d.PendingSince, d.LastError = int64(p.Pending), &since, shorten(p.LastError, 1)
	}
	return d
}

func delivered(generation int64, d v1alpha1.DeliveryStatus) metav1.Condition {
	c := metav1.Condition{
		Type: v1alpha1.ConditionDelivered, Status: metav1.ConditionTrue, ObservedGeneration: generation,
		Reason: "Delivered", Message: "the control plane has what was seen",
	}
	switch {
	case d.Pending > 0:
		c.Status, c.Reason = metav1.ConditionFalse, "Pending"
		c.Message = fmt.Sprintf("%d reports are not accepted yet: %s", d.Pending, d.LastError)
	case d.Rejected > 0:
		c.Status, c.Reason = metav1.ConditionFalse, "Rejected"
		c.Message = fmt.Sprintf("%d reports were refused for good; see delivery.rejections", d.Rejected)
	}
	return c
}

// mostReason bounds a reason, which is meant to be a word. That of a custom resource may be anything.
const mostReason = 64

// shorten cuts a message so that those of all resources together stay far below what the API server stores
// of one object (1.5 MiB by default), whatever the API server and admission webhooks put into their errors.
func shorten(message string, resources int) string {
	const all, least, most = 200_000, 40, 512 // bytes
	return cut(message, min(max(all/max(resources, 1), least), most))
}

// cut returns the beginning of a text, without what is not UTF-8.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return strings.ToValidUTF8(text, "")
	}
	return strings.ToValidUTF8(text[:limit], "") + "…"
}

// summary joins sentences, as many as fit a condition's message.
func summary(sentences []string) string {
	const shown = 5
	if more := len(sentences) - shown; more > 0 {
		sentences = append(slices.Clone(sentences[:shown]), fmt.Sprintf("and %d more", more))
	}
	return shorten(strings.Join(sentences, "; "), 1)
}
