package cluster

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// podTemplate is a pod with one container "app" with the given behaviour.
func podTemplate(name, behaviour string, restart corev1.RestartPolicy) corev1.PodTemplateSpec {
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{
			RestartPolicy: restart,
			Containers:    []corev1.Container{{Name: "app", Image: "registry.example/app:1"}},
		},
	}
	if behaviour != "" {
		template.Annotations = map[string]string{BehaviourAnnotation: behaviour}
	}
	return template
}

func createDeployment(t *testing.T, client kubernetes.Interface, name, behaviour string, replicas int32) {
	t.Helper()
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
			Template: podTemplate(name, behaviour, corev1.RestartPolicyAlways),
		},
	}
	if _, err := client.AppsV1().Deployments("default").Create(t.Context(), deployment, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// onlyPod is the one pod of an app.
func onlyPod(ctx context.Context, client kubernetes.Interface, app string) (*corev1.Pod, error) {
	pods, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=" + app})
	if err != nil {
		return nil, err
	}
	if len(pods.Items) != 1 || len(pods.Items[0].Status.ContainerStatuses) != 1 {
		return nil, fmt.Errorf("%d pods, want 1 with the status of 1 container", len(pods.Items))
	}
	return &pods.Items[0], nil
}

// kubeletEvents of a pod by type, reason and message.
func kubeletEvents(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod) (map[string]corev1.Event, error) {
	list, err := client.CoreV1().Events("default").List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(pod.UID)})
	if err != nil {
		return nil, err
	}
	events := map[string]corev1.Event{}
	for i := range list.Items {
		e := list.Items[i]
		if e.Source.Component == "kubelet" && e.Source.Host == pod.Spec.NodeName && e.InvolvedObject.FieldPath == "spec.containers{app}" {
			events[e.Type+" "+e.Reason+" "+e.Message] = e
		}
	}
	return events, nil
}

func condition(pod *corev1.Pod, want corev1.PodConditionType) corev1.ConditionStatus {
	for _, c := range pod.Status.Conditions {
		if c.Type == want {
			return c.Status
		}
	}
	return corev1.ConditionUnknown
}

func TestPods(t *testing.T) {
	c := startCluster(t, Options{Nodes: 2})
	client := kubernetes.NewForConfigOrDie(c.Config())
	t.Run("group", func(t *testing.T) { // parallel tests end before the cluster does
		t.Run("healthy", func(t *testing.T) { t.Parallel(); testHealthy(t, client) })
		t.Run("jobs", func(t *testing.T) { t.Parallel(); testJobs(t, client) })
		t.Run("failing", func(t *testing.T) { t.Parallel(); testFailing(t, client) })
		t.Run("service account", func(t *testing.T) { t.Parallel(); testServiceAccount(t, c) })
	})
	// The other components get over a crash of the API server without a restart of their own.
	if err := c.Kill(APIServer); err != nil {
		t.Fatal(err)
	}
	if err := c.Restart(t.Context(), APIServer); err != nil {
		t.Fatal(err)
	}
	createDeployment(t, client, "after-crash", "", 2)
	awaitAvailable(t, client, "after-crash", 2)
	if err := c.Err(); err != nil {
		t.Error(err)
	}
}

func awaitAvailable(t *testing.T, client kubernetes.Interface, name string, replicas int32) {
	t.Helper()
	eventually(t, waitLimit, func(ctx context.Context) error {
		d, err := client.AppsV1().Deployments("default").Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if d.Status.AvailableReplicas != replicas {
			return fmt.Errorf("%d of %d replicas are available", d.Status.AvailableReplicas, replicas)
		}
		return nil
	})
}

func testHealthy(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	createDeployment(t, client, "healthy", "", 3)
	awaitAvailable(t, client, "healthy", 3)
	// Foreground deletion ends when the garbage collector and the fake kubelet have done their work.
	foreground := metav1.DeletePropagationForeground
	err := client.AppsV1().Deployments("default").Delete(t.Context(), "healthy", metav1.DeleteOptions{PropagationPolicy: &foreground})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, waitLimit, func(ctx context.Context) error {
		pods, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=healthy"})
		if err != nil {
			return err
		}
		if len(pods.Items) > 0 {
			return fmt.Errorf("%d pods are left", len(pods.Items))
		}
		return nil
	})
}

// testServiceAccount uses a token of the default ServiceAccount, as a pod would.
func testServiceAccount(t *testing.T, c *Cluster) {
	t.Helper()
	accounts := kubernetes.NewForConfigOrDie(c.Config()).CoreV1().ServiceAccounts("default")
	token, err := accounts.CreateToken(t.Context(), "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(c.Config())
	config.BearerToken = token.Status.Token
	review, err := kubernetes.NewForConfigOrDie(config).AuthenticationV1().SelfSubjectReviews().
		Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := review.Status.UserInfo.Username, "system:serviceaccount:default:default"; got != want {
		t.Errorf("the token is of %q, want %q", got, want)
	}
}

func testJobs(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	tests := map[string]struct {
		behaviour string
		want      batchv1.JobConditionType
	}{
		"good":   {behaviour: "", want: batchv1.JobComplete},
		"bad":    {behaviour: CrashLoop, want: batchv1.JobFailed},
		"hungry": {behaviour: OOM, want: batchv1.JobFailed},
	}
	var backoffLimit int32
	for name, tt := range tests {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: batchv1.JobSpec{
			BackoffLimit: &backoffLimit,
			Template:     podTemplate(name, tt.behaviour, corev1.RestartPolicyNever),
		}}
		if _, err := client.BatchV1().Jobs("default").Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range tests {
		eventually(t, waitLimit, func(ctx context.Context) error {
			job, err := client.BatchV1().Jobs("default").Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			for _, c := range job.Status.Conditions {
				if c.Type == tt.want && c.Status == corev1.ConditionTrue {
					return nil
				}
			}
			return fmt.Errorf("job %s: want %s, got %v", name, tt.want, job.Status.Conditions)
		})
	}
}

func testFailing(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	const image = "registry.example/app:1"
	tests := []struct {
		behaviour string
		phase     corev1.PodPhase
		state     func(corev1.ContainerStatus) bool // of the container, at some time
		events    func(ref string) []string         // that are there by then
		repeated  string                            // the reason of an Event that is repeated
	}{
		{
			behaviour: CrashLoop,
			phase:     corev1.PodRunning,
			state:     func(s corev1.ContainerStatus) bool { return backingOff(s, 1, "Error") },
			events:    crashEvents,
			repeated:  "BackOff",
		},
		{
			behaviour: OOM,
			phase:     corev1.PodRunning,
			state:     func(s corev1.ContainerStatus) bool { return backingOff(s, 137, "OOMKilled") },
			events:    crashEvents,
			repeated:  "BackOff",
		},
		{
			behaviour: ImagePull,
			phase:     corev1.PodPending,
			state: func(s corev1.ContainerStatus) bool {
				return s.State.Waiting != nil && s.State.Waiting.Reason == "ImagePullBackOff" && s.RestartCount == 0
			},
			events: func(string) []string {
				return []string{
					`Normal Pulling Pulling image "` + image + `"`,
					`Warning Failed Error: ErrImagePull`,
					`Warning Failed Error: ImagePullBackOff`,
					`Normal BackOff Back-off pulling image "` + image + `"`,
				}
			},
			repeated: "Pulling",
		},
		{
			behaviour: NotReady,
			phase:     corev1.PodRunning,
			state:     func(s corev1.ContainerStatus) bool { return s.State.Running != nil && !s.Ready },
			events: func(string) []string {
				return []string{
					"Normal Started Container started",
					"Warning Unhealthy Readiness probe failed: HTTP probe failed with statuscode: 503",
				}
			},
			repeated: "Unhealthy",
		},
	}
	for _, tt := range tests {
		t.Run(tt.behaviour, func(t *testing.T) {
			t.Parallel()
			createDeployment(t, client, tt.behaviour, tt.behaviour, 1)
			eventually(t, waitLimit, func(ctx context.Context) error {
				pod, err := onlyPod(ctx, client, tt.behaviour)
				if err != nil {
					return err
				}
				if status := pod.Status.ContainerStatuses[0]; pod.Status.Phase != tt.phase || !tt.state(status) {
					return fmt.Errorf("phase %s, container %+v", pod.Status.Phase, status)
				}
				if ready := condition(pod, corev1.PodReady); ready != corev1.ConditionFalse {
					return fmt.Errorf("condition Ready is %s", ready)
				}
				events, err := kubeletEvents(ctx, client, pod)
				if err != nil {
					return err
				}
				for _, want := range tt.events(pod.Name + "_default(" + string(pod.UID) + ")") {
					if _, ok := events[want]; !ok {
						return fmt.Errorf("no event %q in %v", want, events)
					}
				}
				for _, e := range events {
					if e.Reason == tt.repeated && e.Count > 1 && e.FirstTimestamp.Before(&e.LastTimestamp) {
						return nil
					}
				}
				return fmt.Errorf("no repeated event %s in %v", tt.repeated, events)
			})
		})
	}
}

// backingOff reports whether a container is between two crashes, with the status that a kubelet writes.
func backingOff(s corev1.ContainerStatus, exitCode int32, reason string) bool {
	last := s.LastTerminationState.Terminated
	return s.State.Waiting != nil && s.State.Waiting.Reason == "CrashLoopBackOff" && !s.Ready && s.RestartCount >= 2 &&
		last != nil && last.ExitCode == exitCode && last.Reason == reason
}

func crashEvents(ref string) []string {
	return []string{
		"Normal Created Container created",
		"Normal Started Container started",
		"Warning BackOff Back-off restarting failed container app in pod " + ref,
	}
}
