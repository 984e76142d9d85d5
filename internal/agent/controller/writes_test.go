package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/agent/informers"
	"github.com/threeport/threeport-agent/internal/agent/outbox"
	"github.com/threeport/threeport-agent/internal/agent/reporter"
)

// acceptAll accepts every report of an outbox at once, until the context ends.
func acceptAll(ctx context.Context, box *outbox.Outbox) {
	for {
		items, err := box.NextBatch(ctx, 1)
		if err != nil {
			return
		}
		box.Ack(items[0], outbox.Receipt{RowID: 1})
	}
}

// run runs the reporter, the delivery and the reconciler until the test ends.
func (w *world) run() {
	w.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.Context()))
	var all sync.WaitGroup
	w.Cleanup(func() { cancel(); all.Wait() })
	mgr, err := ctrl.NewManager(shared.api.Config(), ctrl.Options{
		Scheme: shared.scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Cache: w.cacheOptions(),
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	w.must(err)
	clients, err := informers.NewClients(shared.api.Config())
	w.must(err)
	box := outbox.New(outbox.DefaultConfig(), nil)
	w.reconciler = New(cached{w.counting(shared.client), mgr.GetClient()}, mgr.GetAPIReader(), w.lists, w.targets, box, w.delivery)
	reports := reporter.New(reporter.DefaultConfig(), clients, w.targets, box, nil,
		reporter.NewMetrics(prometheus.NewRegistry()), logr.Discard(), w.reconciler.Changed)
	w.reconciler.SetReporter(reports)
	w.must(w.reconciler.SetupWithManager(mgr))
	all.Go(func() { reports.Run(ctx) })
	all.Go(func() { acceptAll(ctx, box) })
	all.Go(func() {
		if err := mgr.Start(ctx); err != nil {
			w.Errorf("the manager ended with %v", err)
		}
	})
}

// rollout is a Deployment with its ReplicaSet and Pods. The test creates them, because no controller manager runs.
type rollout struct {
	core       kubernetes.Interface
	deployment *appsv1.Deployment
	pods       []*corev1.Pod
}

func (w *world) rollout(pods int) *rollout {
	w.Helper()
	core, err := kubernetes.NewForConfig(shared.api.Config())
	w.must(err)
	ctx := w.Context()
	labels := map[string]string{"app": "busy"}
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "example/app:1"}}},
	}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	out := &rollout{core: core}
	out.deployment, err = core.AppsV1().Deployments("default").Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "busy"},
		Spec:       appsv1.DeploymentSpec{Replicas: new(int32(pods)), Selector: selector, Template: template},
	}, metav1.CreateOptions{})
	w.must(err)
	owner := func(o metav1.Object, kind string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: o.GetName(), UID: o.GetUID(), Controller: new(true)}}
	}
	replicaSet, err := core.AppsV1().ReplicaSets("default").Create(ctx, &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: "busy-1", OwnerReferences: owner(out.deployment, "Deployment")},
		Spec:       appsv1.ReplicaSetSpec{Replicas: new(int32(pods)), Selector: selector, Template: template},
	}, metav1.CreateOptions{})
	w.must(err)
	for n := range pods {
		pod, err := core.CoreV1().Pods("default").Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("busy-1-%d", n), Labels: labels, OwnerReferences: owner(replicaSet, "ReplicaSet")},
			Spec:       template.Spec,
		}, metav1.CreateOptions{})
		w.must(err)
		out.pods = append(out.pods, pod)
	}
	return out
}

// remove deletes all objects of the rollout.
func (r *rollout) remove(w *world) {
	ctx, now := context.WithoutCancel(w.Context()), metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	errs := []error{
		client.IgnoreNotFound(r.core.CoreV1().ConfigMaps("default").Delete(ctx, "busy-conf", now)),
		r.core.AppsV1().Deployments("default").Delete(ctx, "busy", now),
		r.core.AppsV1().ReplicaSets("default").Delete(ctx, "busy-1", now),
	}
	for _, pod := range r.pods {
		errs = append(errs, r.core.CoreV1().Pods("default").Delete(ctx, pod.Name, now))
	}
	w.must(errors.Join(errs...))
}

// setReady makes every pod ready, or crash-looping, and updates the status of the Deployment accordingly.
func (r *rollout) setReady(ctx context.Context, ready bool) error {
	status, count, waits := corev1.ConditionTrue, int32(len(r.pods)), corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	if !ready {
		status, count, waits = corev1.ConditionFalse, 0, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	}
	for i, pod := range r.pods {
		pod.Status = corev1.PodStatus{
			Phase:      corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: status}, {Type: corev1.PodScheduled, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{
				Name: "app", Image: "example/app:1", State: waits, Ready: ready, Started: new(ready), RestartCount: 1,
			}},
		}
		updated, err := r.core.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
		if err != nil {
			return err
		}
		r.pods[i] = updated
	}
	available := corev1.ConditionTrue
	if !ready {
		available = corev1.ConditionFalse
	}
	r.deployment.Status = appsv1.DeploymentStatus{
		ObservedGeneration: r.deployment.Generation, Replicas: int32(len(r.pods)), UpdatedReplicas: int32(len(r.pods)),
		ReadyReplicas: count, AvailableReplicas: count, UnavailableReplicas: int32(len(r.pods)) - count,
		Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: available},
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
		},
	}
	updated, err := r.core.AppsV1().Deployments("default").UpdateStatus(ctx, r.deployment, metav1.UpdateOptions{})
	r.deployment = updated
	return err
}

// A Deployment and its pods change as fast as the API server permits, and a listed ConfigMap is created and deleted. The
// test counts the status writes by the versions of the ThreeportWorkload.
func TestReconcile_BusyWorkload_BoundsStatusWrites(t *testing.T) {
	const busy = 12 * time.Second
	round := time.NewTicker(100 * time.Millisecond) // 70 changes a second
	defer round.Stop()
	w := newWorld(t)
	r := w.rollout(5)
	w.Cleanup(func() { r.remove(w) })
	w.must(r.setReady(t.Context(), true))
	w.run()
	wl := workload("busy", "busy-conf")
	wl.Spec.WorkloadResourceInstances = append(wl.Spec.WorkloadResourceInstances, v1alpha1.WorkloadResourceInstance{
		Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "default", Name: "busy", ThreeportID: 7,
	})
	versions, caughtUp := w.versions(wl.Name)
	w.create(wl)

	w.eventually(eventuallyTimeout, "a verdict", func() string {
		if s := w.stored(wl.Name).Status; s.Health == "" || s.PodsReady != "5/5" {
			return fmt.Sprintf("health is %s, pods are %s", s.Health, s.PodsReady)
		}
		return ""
	})
	caughtUp()
	before := versions.Load()
	began, changes := time.Now(), 0
	for ready := false; time.Since(began) < busy || changes < 200; ready = !ready { // fewer changes are no load
		w.must(r.setReady(t.Context(), ready))
		conf := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "busy-conf", Namespace: "default"}}
		if ready {
			w.must(r.core.CoreV1().ConfigMaps("default").Delete(t.Context(), conf.Name, metav1.DeleteOptions{}))
		} else {
			_, err := r.core.CoreV1().ConfigMaps("default").Create(t.Context(), conf, metav1.CreateOptions{})
			w.must(err)
		}
		changes += len(r.pods) + 2
		<-round.C
	}
	caughtUp()
	took := time.Since(began)
	writes := int(versions.Load() - before)
	most := writeBurst + int(took/statusInterval)
	t.Logf("%d changes in %s: %d writes, limit %d; %d before", changes, took.Round(time.Millisecond), writes, most, before)
	if writes > most || writes < 2 {
		t.Errorf("the status was written %d times in %s for %d changes, want 2 to %d", writes, took, changes, most)
	}

	// Delayed writes need no further trigger.
	w.must(r.setReady(t.Context(), true))
	w.eventually(eventuallyTimeout, "the last state", func() string {
		s := w.stored(wl.Name).Status
		deployment := s.Resources[1]
		if s.PodsReady != "5/5" || deployment.ReportedResourceVersion != r.deployment.ResourceVersion || deployment.LastOperation != "MODIFIED" {
			return fmt.Sprintf("pods are %s, the Deployment is %+v, want version %s", s.PodsReady, deployment, r.deployment.ResourceVersion)
		}
		return ""
	})
}

// versions counts the versions of a workload at the API server, from now on. The returned function waits until the current
// version is counted.
func (w *world) versions(name string) (versions *atomic.Int64, caughtUp func()) {
	w.Helper()
	changes, err := shared.client.Watch(w.Context(), &v1alpha1.ThreeportWorkloadList{}, client.MatchingFields{"metadata.name": name})
	w.must(err)
	var count atomic.Int64
	var latest atomic.Pointer[string]
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for change := range changes.ResultChan() {
			count.Add(1)
			if wl, ok := change.Object.(*v1alpha1.ThreeportWorkload); ok {
				latest.Store(&wl.ResourceVersion)
			}
		}
	}()
	w.Cleanup(func() { changes.Stop(); <-ended })
	return &count, func() {
		w.Helper()
		w.eventually(eventuallyTimeout, "the current version to be counted", func() string {
			stored, last := w.stored(name).ResourceVersion, latest.Load()
			if last == nil || *last != stored {
				return fmt.Sprintf("the version is %s", stored)
			}
			return ""
		})
	}
}
