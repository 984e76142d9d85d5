package scenario

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// containers are scenarios of failing programs and of containers that cannot be started.
func containers() []Scenario {
	const (
		noKey    = "couldn't find key greeting in ConfigMap"
		noSecret = "couldn't find key password in Secret"
	)
	return []Scenario{
		{
			Name: "crash-at-once",
			Steps: []Step{
				{
					Moment: "crash-at-once", Doc: "It has failed three times.", Status: Down,
					Reached: all(available(0), pods(1, container("web", crashed("Error", 1))), repeated(podKind, "BackOff", "")),
				},
				{
					Moment: "crash-at-once-backing-off", Doc: "It has failed six times.", Status: Down, Reason: "CrashLoopBackOff",
					Reached: all(available(0), pods(1, container("web", backingOff("Error", 1))), repeated(podKind, "BackOff", "")),
					Within:  20 * time.Minute,
				},
			},
		},
		{
			Name: "crash-later",
			Steps: []Step{
				{
					Moment: "crash-later-running", Status: Unhealthy,
					Doc:     "It has failed twice, and runs again.",
					Reached: all(available(1), pods(1, ready(corev1.ConditionTrue), container("web", running, restarts(2)))),
				},
				{
					Moment: "crash-later-backing-off", Doc: "It has failed three times.", Status: Down,
					Reached: all(available(0), pods(1, container("web", crashed("Error", 3))), repeated(podKind, "BackOff", "")),
				},
			},
		},
		{
			Name: "oom-at-once",
			Steps: []Step{{
				Moment: "oom-at-once", Doc: "It was killed three times.", Status: Down,
				Reached: all(available(0), pods(1, container("web", crashed("OOMKilled", 137))), repeated(podKind, "BackOff", "")),
			}},
		},
		{
			Name: "oom-recovers",
			Steps: []Step{
				{
					Moment: "oom-recovers-running", Status: Unhealthy,
					Doc: "It was killed twice, and runs again.",
					Reached: all(available(1), pods(1, ready(corev1.ConditionTrue),
						container("web", running, restarts(2), lastTerminated("OOMKilled", 137)))),
				},
				{
					Moment: "oom-recovers-backing-off", Doc: "It was killed three times.", Status: Down,
					Reached: all(available(0), pods(1, container("web", crashed("OOMKilled", 137))), repeated(podKind, "BackOff", "")),
				},
			},
		},
		{
			// The status is one sync of the kubelet behind: first it shows the back-off after the first attempt, and after
			// the second attempt has failed, that failure.
			Name: "image-pull",
			Steps: []Step{
				{
					Moment: "image-pull-backing-off", Status: Down, Reason: "ImagePullBackOff",
					Doc: "The second try to pull it has failed; what shows is the back-off after the first.",
					Reached: all(pods(1, container("web", waiting("ImagePullBackOff", "connection refused"))),
						exactly(2, "Pulling"), exactly(1, "BackOff")),
				},
				{
					Moment: "image-pull-failing", Status: Down, Reason: "ImagePullBackOff",
					Doc: "The next try is some seconds away; what shows is the failure of the second.",
					Reached: all(pods(1, container("web", waiting("ErrImagePull", "connection refused"))),
						exactly(2, "Pulling"), exactly(2, "BackOff")),
				},
			},
		},
		{
			Name: "image-name",
			Steps: []Step{{
				Moment: "image-name", Doc: "There is no such image name.", Status: Down, Reason: "InvalidImageName",
				Reached: all(pods(1, container("web", waiting("InvalidImageName", "must be lowercase"))),
					repeated(podKind, "InspectFailed", ""), repeated(podKind, "Failed", "")),
			}},
		},
		{
			Name: "config-map-key",
			Steps: []Step{{
				Moment: "config-map-key", Doc: "The container cannot be made.", Status: Down, Reason: "CreateContainerConfigError",
				Reached: all(pods(1, container("web", waiting("CreateContainerConfigError", noKey))), repeated(podKind, "Failed", noKey), repeated(podKind, "Pulled", "")),
			}},
		},
		{
			Name: "secret-key",
			Steps: []Step{{
				Moment: "secret-key", Doc: "The container cannot be made.", Status: Down, Reason: "CreateContainerConfigError",
				Reached: all(pods(1, container("web", waiting("CreateContainerConfigError", noSecret))), repeated(podKind, "Failed", noSecret), repeated(podKind, "Pulled", "")),
			}},
		},
		{
			Name: "config-map-volume",
			Steps: []Step{{
				Moment: "config-map-volume", Doc: "The volume cannot be mounted, and the kubelet tries again.", Status: Down,
				Reached: all(pods(1, container("web", waiting("ContainerCreating", ""))), repeated(podKind, "FailedMount", `configmap "absent" not found`)),
			}},
		},
		{
			Name: "bad-command",
			Steps: []Step{{
				Moment: "bad-command", Doc: "The container could not be started three times.", Status: Down, Reason: "RunContainerError",
				Reached: all(pods(1, container("web", restarts(2), waiting("RunContainerError", "no such file or directory"), lastTerminated("StartError", 128))), repeated(podKind, "BackOff", "")),
			}},
		},
		{
			Name: "init-failing",
			Steps: []Step{{
				Moment: "init-failing", Doc: "The init container has failed three times.", Status: Down,
				Reached: all(pods(1, inPhase(corev1.PodPending), container("init", crashed("Error", 1))), repeated(podKind, "BackOff", "")),
			}},
		},
		{
			Name: "init-endless",
			Steps: []Step{
				{
					Moment: "init-endless-running", Doc: "The init container runs, and may still end.", Status: Reconciling,
					Reached: all(pods(1, container("init", running)), progressing(corev1.ConditionTrue, "ReplicaSetUpdated")),
				},
				{
					Moment: "init-endless-deadline", Doc: "The Deployment's deadline for progress is over.", Status: Down, Reason: "ProgressDeadlineExceeded",
					Reached: all(pods(1, container("init", running)), progressing(corev1.ConditionFalse, "ProgressDeadlineExceeded")),
				},
			},
		},
		{
			Name: "sidecar-failing",
			Steps: []Step{{
				Moment: "sidecar-failing", Status: Down,
				Doc: "The sidecar has failed three times; the server runs, and its pod is not ready.",
				Reached: all(pods(1, container("sidecar", crashed("Error", 1)), container("web", running), ready(corev1.ConditionFalse)),
					repeated(podKind, "BackOff", ""), available(0)),
			}},
		},
	}
}
