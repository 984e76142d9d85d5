package scenario

import (
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/threeport/threeport-agent/internal/e2e/scenario/recording"
)

// all combines checks: all must pass.
func all(checks ...Check) Check {
	return func(at recording.Snapshot) error {
		for _, check := range checks {
			if err := check(at); err != nil {
				return err
			}
		}
		return nil
	}
}

// objects checks the number of objects of a type, and each of them.
func objects[T any](n int, tests ...func(*T) error) Check {
	return func(at recording.Snapshot) error {
		found, err := recording.Of[T](at)
		if err != nil {
			return err
		}
		if len(found) != n {
			return fmt.Errorf("the snapshot has %d %T, want %d", len(found), *new(T), n)
		}
		for i := range found {
			for _, test := range tests {
				if err := test(&found[i]); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

// pods checks the number of pods, and each of them.
func pods(n int, tests ...func(*corev1.Pod) error) Check { return objects(n, tests...) }

// some checks that exactly n pods pass all checks.
func some(n int, tests ...func(*corev1.Pod) error) Check {
	return func(at recording.Snapshot) error {
		found, err := recording.Of[corev1.Pod](at)
		if err != nil {
			return err
		}
		var missing []error
		passed := 0
		for i := range found {
			var failed []error
			for _, test := range tests {
				failed = append(failed, test(&found[i]))
			}
			if err := errors.Join(failed...); err != nil {
				missing = append(missing, err)
			} else {
				passed++
			}
		}
		if passed != n {
			return fmt.Errorf("%d pods pass the checks, want %d: %w", passed, n, errors.Join(missing...))
		}
		return nil
	}
}

// container checks a container of a pod.
func container(name string, tests ...func(*corev1.ContainerStatus) error) func(*corev1.Pod) error {
	return func(pod *corev1.Pod) error {
		for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
			for i := range list {
				if list[i].Name != name {
					continue
				}
				for _, test := range tests {
					if err := test(&list[i]); err != nil {
						return fmt.Errorf("pod %s, container %s: %w", pod.Name, name, err)
					}
				}
				return nil
			}
		}
		return fmt.Errorf("pod %s has no status of container %s", pod.Name, name)
	}
}

func waiting(reason, message string) func(*corev1.ContainerStatus) error {
	return func(c *corev1.ContainerStatus) error {
		if w := c.State.Waiting; w == nil || w.Reason != reason || !strings.Contains(w.Message, message) {
			return fmt.Errorf("the container is %s, want waiting %s %q", state(c), reason, message)
		}
		return nil
	}
}

func running(c *corev1.ContainerStatus) error {
	if c.State.Running == nil {
		return fmt.Errorf("the container is %s, want running", state(c))
	}
	return nil
}

func terminated(reason string, code int32) func(*corev1.ContainerStatus) error {
	return func(c *corev1.ContainerStatus) error { return ended("the container", c.State.Terminated, reason, code) }
}

func lastTerminated(reason string, code int32) func(*corev1.ContainerStatus) error {
	return func(c *corev1.ContainerStatus) error {
		return ended("the last container", c.LastTerminationState.Terminated, reason, code)
	}
}

func ended(which string, t *corev1.ContainerStateTerminated, reason string, code int32) error {
	if t == nil || t.Reason != reason || t.ExitCode != code {
		return fmt.Errorf("%s ended with %+v, want %s, exit code %d", which, t, reason, code)
	}
	return nil
}

func restarts(n int32) func(*corev1.ContainerStatus) error {
	return func(c *corev1.ContainerStatus) error {
		if c.RestartCount != n {
			return fmt.Errorf("the kubelet restarted the container %d times, want %d", c.RestartCount, n)
		}
		return nil
	}
}

func state(c *corev1.ContainerStatus) string {
	switch {
	case c.State.Waiting != nil:
		return fmt.Sprintf("waiting %s %q after %d restarts", c.State.Waiting.Reason, c.State.Waiting.Message, c.RestartCount)
	case c.State.Terminated != nil:
		return fmt.Sprintf("terminated %s after %d restarts", c.State.Terminated.Reason, c.RestartCount)
	case c.State.Running != nil:
		return fmt.Sprintf("running after %d restarts", c.RestartCount)
	}
	return "in no state"
}

// crashed checks the state during the back-off of 20 s to 30 s before the third restart: the termination of the container.
// The kubelet sets CrashLoopBackOff only at its next sync of the pod. That happens after the back-off, unless the back-off is
// longer than a minute (see backingOff) or another change causes a sync.
func crashed(reason string, code int32) func(*corev1.ContainerStatus) error {
	return func(c *corev1.ContainerStatus) error {
		return errors.Join(restarts(2)(c), terminated(reason, code)(c))
	}
}

// backingOff checks the state at the end of a back-off of 160 s, the first one that is long enough for a sync of the kubelet
// in any case. It lasts for at least 70 s.
func backingOff(reason string, code int32) func(*corev1.ContainerStatus) error {
	return func(c *corev1.ContainerStatus) error {
		return errors.Join(restarts(5)(c), waiting("CrashLoopBackOff", "back-off 2m40s")(c), lastTerminated(reason, code)(c))
	}
}

// killed checks the state during the back-off of 20 s before the fourth restart of a container that the kubelet has killed.
// The kubelet syncs the pod twice then, so CrashLoopBackOff appears at once.
func killed(reason string, code int32) func(*corev1.ContainerStatus) error {
	return func(c *corev1.ContainerStatus) error {
		return errors.Join(restarts(3)(c), waiting("CrashLoopBackOff", "back-off 20s")(c), lastTerminated(reason, code)(c))
	}
}

func inPhase(phase corev1.PodPhase) func(*corev1.Pod) error {
	return func(pod *corev1.Pod) error {
		if pod.Status.Phase != phase {
			return fmt.Errorf("pod %s is %s, want %s", pod.Name, pod.Status.Phase, phase)
		}
		return nil
	}
}

func ready(status corev1.ConditionStatus) func(*corev1.Pod) error {
	return podCondition(corev1.PodReady, status, "")
}

// podCondition checks a condition of a pod, and its reason unless it is empty.
func podCondition(name corev1.PodConditionType, status corev1.ConditionStatus, reason string) func(*corev1.Pod) error {
	return func(pod *corev1.Pod) error {
		for _, c := range pod.Status.Conditions {
			if c.Type == name && c.Status == status && (reason == "" || c.Reason == reason) {
				return nil
			}
		}
		return fmt.Errorf("pod %s is not %s=%s %s", pod.Name, name, status, reason)
	}
}

func deleting(yes bool) func(*corev1.Pod) error {
	return func(pod *corev1.Pod) error {
		if (pod.DeletionTimestamp != nil) != yes {
			return fmt.Errorf("pod %s is being deleted: %t, want %t", pod.Name, !yes, yes)
		}
		return nil
	}
}

// available checks the replicas of the only Deployment.
func available(n int32) Check {
	return objects(1, func(d *appsv1.Deployment) error {
		if d.Status.ObservedGeneration != d.Generation || d.Status.AvailableReplicas != n {
			return fmt.Errorf("%d replicas are available, want %d", d.Status.AvailableReplicas, n)
		}
		return nil
	})
}

// rolledOut checks that the rollout of the only Deployment is complete.
func rolledOut(at recording.Snapshot) error {
	return objects(1, func(d *appsv1.Deployment) error {
		want := appsv1.DeploymentStatus{
			ObservedGeneration: d.Generation, Replicas: *d.Spec.Replicas, UpdatedReplicas: *d.Spec.Replicas,
			ReadyReplicas: *d.Spec.Replicas, AvailableReplicas: *d.Spec.Replicas,
			Conditions: d.Status.Conditions, CollisionCount: d.Status.CollisionCount, TerminatingReplicas: d.Status.TerminatingReplicas,
		}
		if !apiequality.Semantic.DeepEqual(d.Status, want) {
			return fmt.Errorf("the Deployment's status is %+v, want %+v", d.Status, want)
		}
		return nil
	})(at)
}

// progressing checks the condition Progressing of the only Deployment.
func progressing(status corev1.ConditionStatus, reason string) Check {
	return objects(1, func(d *appsv1.Deployment) error {
		for _, c := range d.Status.Conditions {
			if c.Type == appsv1.DeploymentProgressing && c.Status == status && c.Reason == reason {
				return nil
			}
		}
		return fmt.Errorf("the Deployment is not Progressing=%s %s", status, reason)
	})
}

func jobCondition(name batchv1.JobConditionType, reason string) func(*batchv1.Job) error {
	return func(job *batchv1.Job) error {
		for _, c := range job.Status.Conditions {
			if c.Type == name && c.Status == corev1.ConditionTrue && c.Reason == reason {
				return nil
			}
		}
		return fmt.Errorf("job %s is not %s %s: %+v", job.Name, name, reason, job.Status.Conditions)
	}
}

// happened checks that there is an Event about an object of a kind, with a reason and a text in its message.
func happened(kind, reason, message string) Check {
	return counts(kind, reason, message, "at least once", func(n int32) bool { return n >= 1 })
}

// repeated checks that each such Event happened more than once. The exact count depends on the time.
func repeated(kind, reason, message string) Check {
	return counts(kind, reason, message, "more than once", func(n int32) bool { return n > 1 })
}

// exactly checks the count of each Event about a pod with a reason.
func exactly(times int32, reason string) Check {
	return counts(podKind, reason, "", fmt.Sprint(times, " times"), func(n int32) bool { return n == times })
}

func counts(kind, reason, message, want string, enough func(int32) bool) Check {
	return func(at recording.Snapshot) error {
		events, err := recording.Of[corev1.Event](at)
		if err != nil {
			return err
		}
		found := false
		for _, e := range events {
			if e.InvolvedObject.Kind != kind || e.Reason != reason || !strings.Contains(e.Message, message) {
				continue
			}
			if found = true; !enough(max(e.Count, 1)) { // those of the scheduler have no count
				return fmt.Errorf("the Event %s %q happened %d times, want %s", e.Reason, e.Message, e.Count, want)
			}
		}
		if !found {
			return fmt.Errorf("the snapshot has no Event %s %q about a %s", reason, message, kind)
		}
		return nil
	}
}

// givenUp checks that the kubelet has finished a terminating pod. It then deletes the pod without a grace period, which sets
// the deletionTimestamp to that moment.
func givenUp(pod *corev1.Pod) error {
	if grace := pod.DeletionGracePeriodSeconds; grace == nil || *grace != 0 {
		return fmt.Errorf("pod %s is not finished by the kubelet", pod.Name)
	}
	return nil
}

// graceOver is the minimum time for which a pod is overdue.
const graceOver = time.Second

// overdue checks that a pod still exists after its grace period.
func overdue(at recording.Snapshot) error {
	return some(1, func(pod *corev1.Pod) error {
		if pod.DeletionTimestamp == nil || at.Taken.Sub(pod.DeletionTimestamp.Time) < graceOver {
			return fmt.Errorf("the grace period of pod %s ends at %v, and it is %v", pod.Name, pod.DeletionTimestamp, at.Taken)
		}
		return nil
	})(at)
}
