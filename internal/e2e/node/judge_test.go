package node

import (
	"context"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/threeport/threeport-agent/internal/e2e/image"
	"github.com/threeport/threeport-agent/internal/e2e/world"
	"github.com/threeport/threeport-agent/internal/health"
)

// A pod of a Job that succeeds is Reconciling until it is Healthy, in each status that the kubelet writes. It writes that the
// containers have completed before it writes the phase Succeeded.
func TestHealth_PodOfSuccessfulJob_IsNeverUnhealthy(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), world.Timeout)
	defer cancel()
	namespace, err := shared.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "job-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pods := shared.client.CoreV1().Pods(namespace.Name)
	watch, err := pods.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	_, err = shared.client.BatchV1().Jobs(namespace.Name).Create(ctx, &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "report"},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "a", Image: image.Behave, ImagePullPolicy: corev1.PullNever, Args: []string{"--exit-after=1s"}}},
		}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for {
		select {
		case <-ctx.Done():
			t.Fatal("the pod did not succeed")
		case event, open := <-watch.ResultChan():
			pod, ok := event.Object.(*corev1.Pod)
			if !open || !ok {
				t.Fatalf("the watch ended with %v", event.Object)
			}
			got := health.Pod(pod, health.Context{Now: time.Now()})
			if got.Status != health.Reconciling && got.Status != health.Healthy {
				t.Errorf("the verdict is %s in the phase %s with the conditions %v", got.Verdict, pod.Status.Phase, pod.Status.Conditions)
			}
			if pod.Status.Phase == corev1.PodSucceeded {
				return
			}
		}
	}
}
