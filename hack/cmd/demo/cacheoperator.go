package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/threeport/threeport-agent/internal/e2e/image"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
)

// cacheKind is the custom kind of the workload "custom".
var cacheKind = schema.GroupVersionKind{Group: "demo.threeport.io", Version: "v1alpha1", Kind: "Cache"}

// Reasons of a Cache's condition Ready and of its Events.
const (
	reasonStarting = "Starting"
	reasonReady    = "Ready"
)

// cacheOperator is a small operator: it creates a Deployment for each Cache, and sets the condition Ready from it.
type cacheOperator struct {
	upstream *upstream.Upstream
	typed    kubernetes.Interface
}

func newCacheOperator(config *rest.Config, up *upstream.Upstream) (*cacheOperator, error) {
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client of the operator: %w", err)
	}
	return &cacheOperator{upstream: up, typed: typed}, nil
}

// install creates the CRD of Caches and the ClusterRole for the agent, and waits until Caches are served.
func (o *cacheOperator) install(ctx context.Context) error {
	text, err := manifests.ReadFile("manifests/operator/cache.yaml")
	if err != nil {
		return fmt.Errorf("read the manifests of the operator: %w", err)
	}
	objects, err := upstream.Parse(string(text))
	if err != nil {
		return err
	}
	for _, obj := range objects {
		if _, err := o.upstream.Create(ctx, obj); err != nil {
			return err
		}
	}
	sample := &unstructured.Unstructured{}
	sample.SetGroupVersionKind(cacheKind)
	return awaitServed(ctx, o.upstream, sample)
}

// reconcile reconciles every Cache.
func (o *cacheOperator) reconcile(ctx context.Context) error {
	sample := &unstructured.Unstructured{}
	sample.SetGroupVersionKind(cacheKind)
	sample.SetNamespace(namespace)
	caches, err := o.upstream.Resource(sample)
	if err != nil {
		return err
	}
	list, err := caches.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list %s: %w", cacheKind.Kind, err)
	}
	for i := range list.Items {
		cache := &list.Items[i]
		if cache.GetDeletionTimestamp() != nil {
			continue
		}
		deployment, err := o.deployment(ctx, cache)
		if err != nil {
			return err
		}
		if !setReady(cache, deployment) {
			continue
		}
		if _, err := caches.UpdateStatus(ctx, cache, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("update status of %s %s: %w", cacheKind.Kind, cache.GetName(), err)
		}
		if err := o.createEvent(ctx, cache); err != nil {
			return err
		}
	}
	return nil
}

// deployment returns the Deployment of a Cache, and creates it if necessary.
func (o *cacheOperator) deployment(ctx context.Context, cache *unstructured.Unstructured) (*appsv1.Deployment, error) {
	deployments := o.typed.AppsV1().Deployments(cache.GetNamespace())
	name := cache.GetName() + "-server"
	deployment, err := deployments.Get(ctx, name, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		return deployment, err
	}
	number, _, _ := unstructured.NestedInt64(cache.Object, "spec", "replicas")
	replicas := int32(max(0, min(number, 100)))
	labels := map[string]string{"app": name}
	return deployments.Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Name:            name,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(cache, cacheKind)},
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: new(int64(1)),
					Containers:                    []corev1.Container{cacheServer()},
				},
			},
		},
	}, metav1.CreateOptions{})
}

// cacheServer is the container of a Cache's pods.
func cacheServer() corev1.Container {
	return corev1.Container{
		Name: "cache", Image: image.Behave, ImagePullPolicy: corev1.PullNever, Args: []string{"--listen=:6379"},
		ReadinessProbe: &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/readyz", Port: intstr.FromInt32(6379)}},
			PeriodSeconds: 1,
		},
	}
}

// setReady writes the condition into a Cache, and reports whether that changed it.
func setReady(cache *unstructured.Unstructured, deployment *appsv1.Deployment) bool {
	condition := map[string]any{"type": "Ready", "status": "False", "reason": reasonStarting}
	if deployment.Status.ObservedGeneration == deployment.Generation && deployment.Status.AvailableReplicas == *deployment.Spec.Replicas {
		condition["status"], condition["reason"] = "True", reasonReady
	}
	if now := readyCondition(cache); now["reason"] == condition["reason"] {
		return false
	}
	condition["message"] = fmt.Sprintf("%d of %d servers are available", deployment.Status.AvailableReplicas, *deployment.Spec.Replicas)
	condition["lastTransitionTime"] = time.Now().UTC().Format(time.RFC3339)
	cache.Object["status"] = map[string]any{"conditions": []any{condition}}
	return true
}

func readyCondition(cache *unstructured.Unstructured) map[string]any {
	conditions, _, _ := unstructured.NestedSlice(cache.Object, "status", "conditions")
	if len(conditions) == 0 {
		return nil
	}
	condition, _ := conditions[0].(map[string]any)
	return condition
}

// createEvent creates an Event about a Cache's condition by events.k8s.io, so it has no lastTimestamp.
func (o *cacheOperator) createEvent(ctx context.Context, cache *unstructured.Unstructured) error {
	condition := readyCondition(cache)
	reason, _ := condition["reason"].(string)
	note, _ := condition["message"].(string)
	_, err := o.typed.EventsV1().Events(cache.GetNamespace()).Create(ctx, &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{GenerateName: cache.GetName() + "-"},
		EventTime:           metav1.NowMicro(),
		ReportingController: "demo.threeport.io/cache-operator",
		ReportingInstance:   "demo",
		Action:              "Reconcile",
		Type:                corev1.EventTypeNormal,
		Reason:              reason,
		Note:                note,
		Regarding: corev1.ObjectReference{
			APIVersion: cache.GetAPIVersion(), Kind: cache.GetKind(), Namespace: cache.GetNamespace(),
			Name: cache.GetName(), UID: cache.GetUID(), ResourceVersion: cache.GetResourceVersion(),
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("write Event about %s %s: %w", cacheKind.Kind, cache.GetName(), err)
	}
	return nil
}
