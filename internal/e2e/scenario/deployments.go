package scenario

import (
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// deployments are scenarios of running workloads and their changes.
func deployments() []Scenario {
	return []Scenario{
		{
			Name: "healthy",
			Steps: []Step{{
				Moment: "healthy", Doc: "Both pods have passed all probes.", Status: Healthy,
				Reached: all(rolledOut, pods(2, ready(corev1.ConditionTrue))),
			}},
		},
		{
			Name: "rollout",
			Steps: []Step{
				{Reached: rolledOut},
				{
					Moment: "rollout-surging", Status: Reconciling, Reason: "RollingOut",
					Doc: "The first pod of the next version is not ready yet; both of the version before serve.",
					Do:  patch(deploymentResource, "web", nextVersion),
					Reached: all(
						available(2),
						some(2, ready(corev1.ConditionTrue)),
						some(1, ready(corev1.ConditionFalse), container("web", running)),
						repeated(podKind, "Unhealthy", notReady),
					),
				},
				{
					Moment: "rollout-finished", Status: Healthy,
					Doc:     "Both pods are of the next version, and those of the version before are gone.",
					Reached: all(rolledOut, pods(2, ready(corev1.ConditionTrue), deleting(false), containerProbed)),
				},
			},
		},
		{
			Name: "paused",
			Steps: []Step{
				{Reached: rolledOut},
				{
					Moment: "paused", Status: Reconciling,
					Doc: "The next version is declared, and the Deployment is paused: the version before runs.",
					Do:  patch(deploymentResource, "web", pausedVersion),
					Reached: all(
						progressing(corev1.ConditionUnknown, "DeploymentPaused"),
						objects(1, func(d *appsv1.Deployment) error {
							if d.Status.UpdatedReplicas != 0 || d.Status.AvailableReplicas != 1 || d.Status.ObservedGeneration != d.Generation {
								return fmt.Errorf("its status is %+v", d.Status)
							}
							return nil
						}),
					),
				},
			},
		},
		{
			Name: "statefulset",
			Steps: []Step{{
				Moment: "statefulset", Doc: "Both pods run.", Status: Healthy,
				Reached: all(pods(2, ready(corev1.ConditionTrue)), objects(1, func(s *appsv1.StatefulSet) error {
					if s.Status.AvailableReplicas != 2 || s.Status.CurrentRevision != s.Status.UpdateRevision {
						return fmt.Errorf("its status is %+v", s.Status)
					}
					return nil
				})),
			}},
		},
		{
			Name: "statefulset-stuck",
			Steps: []Step{{
				Moment: "statefulset-stuck", Status: Down,
				Doc:     "The first of three pods crashes, and the others wait for it.",
				Reached: all(pods(1, container("db", crashed("Error", 1))), repeated(podKind, "BackOff", "")),
			}},
		},
		{
			Name: "daemonset",
			Steps: []Step{{
				Moment: "daemonset", Doc: "The pod on the real node runs; the fake node has a taint.", Status: Healthy,
				Reached: all(pods(1, ready(corev1.ConditionTrue)), objects(1, func(d *appsv1.DaemonSet) error {
					if d.Status.DesiredNumberScheduled != 1 || d.Status.NumberAvailable != 1 {
						return fmt.Errorf("its status is %+v", d.Status)
					}
					return nil
				})),
			}},
		},
	}
}

// nextVersion takes 30 s to become ready. The first version has no probe, because a probe of a terminating pod may fail.
const nextVersion = `{"spec": {"template": {"spec": {"containers": [{
	"name": "web", "args": ["--listen=:8080", "--ready-after=30s"],
	"readinessProbe": {"httpGet": {"path": "/readyz", "port": 8080}, "initialDelaySeconds": 1, "periodSeconds": 2}
}]}}}}`

const pausedVersion = `{"spec": {"paused": true, "template": {"spec": {"containers": [{"name": "web", "args": ["--listen=:8081"]}]}}}}`

// containerProbed is nil for a pod of the next version.
func containerProbed(pod *corev1.Pod) error {
	if pod.Spec.Containers[0].ReadinessProbe == nil {
		return errors.New("pod " + pod.Name + " has the previous version")
	}
	return nil
}
