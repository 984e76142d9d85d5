package health

import (
	"math"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// readPod reads only the fields of a pod that its rule needs, so that a malformed field elsewhere does not hide a failure.
func readPod(s *fields) *corev1.Pod {
	pod := &corev1.Pod{}
	s.table("spec")
	s.table("status")
	pod.Name, pod.GenerateName = s.text("metadata", "name"), s.text("metadata", "generateName")
	pod.UID = types.UID(s.text("metadata", "uid"))
	pod.CreationTimestamp = metav1.NewTime(s.created())
	if t := s.time("metadata", "deletionTimestamp"); !t.IsZero() {
		pod.DeletionTimestamp = &metav1.Time{Time: t}
	}
	if n, ok := s.number("metadata", "deletionGracePeriodSeconds"); ok {
		pod.DeletionGracePeriodSeconds = &n
	}
	if revision := s.text("metadata", "labels", appsv1.ControllerRevisionHashLabelKey); revision != "" {
		pod.Labels = map[string]string{appsv1.ControllerRevisionHashLabelKey: revision}
	}
	for _, item := range s.list("metadata", "finalizers") {
		if name, ok := item.(string); ok {
			pod.Finalizers = append(pod.Finalizers, name)
		}
	}
	pod.Spec.RestartPolicy = corev1.RestartPolicy(s.text("spec", "restartPolicy"))
	pod.Spec.InitContainers = s.containers("spec", "initContainers")
	pod.Spec.Containers = s.containers("spec", "containers")
	pod.Spec.Volumes = s.claimVolumes()
	s.podStatus(&pod.Status)
	return pod
}

func (f *fields) podStatus(status *corev1.PodStatus) {
	status.Phase = corev1.PodPhase(f.text("status", "phase"))
	status.Reason, status.Message = f.text("status", "reason"), f.text("status", "message")
	status.NominatedNodeName = f.text("status", "nominatedNodeName")
	if t := f.time("status", "startTime"); !t.IsZero() {
		status.StartTime = &metav1.Time{Time: t}
	}
	f.each(func(c *fields) {
		status.Conditions = append(status.Conditions, corev1.PodCondition{
			Type: corev1.PodConditionType(c.text("type")), Status: corev1.ConditionStatus(c.text("status")),
			Reason: c.text("reason"), Message: c.text("message"), LastTransitionTime: metav1.NewTime(c.time("lastTransitionTime")),
		})
	}, "status", "conditions")
	f.each(func(c *fields) {
		status.InitContainerStatuses = append(status.InitContainerStatuses, c.containerStatus())
	}, "status", "initContainerStatuses")
	f.each(func(c *fields) {
		status.ContainerStatuses = append(status.ContainerStatuses, c.containerStatus())
	}, "status", "containerStatuses")
}

// each calls a function for each item of a list of tables.
func (f *fields) each(read func(*fields), path ...string) {
	for _, item := range f.list(path...) {
		table, ok := item.(map[string]any)
		if !ok {
			f.note(path...)
			continue
		}
		inner := &fields{kind: f.kind, object: table}
		read(inner)
		if inner.malformed != "" {
			f.note(append(slices.Clip(path), inner.malformed)...)
		}
	}
}

// claimVolumes returns the volumes of a pod that are claims.
func (f *fields) claimVolumes() []corev1.Volume {
	var out []corev1.Volume
	f.each(func(v *fields) {
		volume := corev1.Volume{Name: v.text("name")}
		switch {
		case v.table("persistentVolumeClaim") != nil:
			volume.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: v.text("persistentVolumeClaim", "claimName")}
		case v.table("ephemeral") != nil:
			volume.Ephemeral = &corev1.EphemeralVolumeSource{}
		default:
			return
		}
		out = append(out, volume)
	}, "spec", "volumes")
	return out
}

func (f *fields) containers(path ...string) []corev1.Container {
	var out []corev1.Container
	f.each(func(c *fields) {
		container := corev1.Container{Name: c.text("name")}
		if policy := corev1.ContainerRestartPolicy(c.text("restartPolicy")); policy != "" {
			container.RestartPolicy = &policy
		}
		out = append(out, container)
	}, path...)
	return out
}

func (f *fields) containerStatus() corev1.ContainerStatus {
	out := corev1.ContainerStatus{
		Name: f.text("name"), Image: f.text("image"), Ready: f.flag("ready"),
		RestartCount: f.restarts(),
		State:        f.containerState("state"), LastTerminationState: f.containerState("lastState"),
	}
	if f.value("started") != nil {
		started := f.flag("started")
		out.Started = &started
	}
	return out
}

// restarts returns the restart count of a container.
func (f *fields) restarts() int32 {
	n := f.numberOr(0, "restartCount")
	if n >= 0 && n <= math.MaxInt32 {
		return int32(n)
	}
	return math.MaxInt32
}

func (f *fields) containerState(key string) corev1.ContainerState {
	var out corev1.ContainerState
	if f.table(key, "waiting") != nil {
		out.Waiting = &corev1.ContainerStateWaiting{Reason: f.text(key, "waiting", "reason"), Message: f.text(key, "waiting", "message")}
	}
	if f.table(key, "running") != nil {
		out.Running = &corev1.ContainerStateRunning{StartedAt: f.when(key, "running", "startedAt")}
	}
	if f.table(key, "terminated") != nil {
		out.Terminated = &corev1.ContainerStateTerminated{
			ExitCode: f.exitCode(key, "terminated", "exitCode"),
			Reason:   f.text(key, "terminated", "reason"), Message: f.text(key, "terminated", "message"),
			StartedAt: f.when(key, "terminated", "startedAt"), FinishedAt: f.when(key, "terminated", "finishedAt"),
		}
	}
	return out
}

func (f *fields) when(path ...string) metav1.Time { return metav1.Time{Time: f.time(path...)} }

// exitCode returns an exit code, which may be negative.
func (f *fields) exitCode(path ...string) int32 {
	switch n := f.value(path...).(type) {
	case nil:
		return 0
	case int64:
		if n >= math.MinInt32 && n <= math.MaxInt32 {
			return int32(n)
		}
	case float64:
		if n >= math.MinInt32 && n <= math.MaxInt32 && n == math.Trunc(n) {
			return int32(n)
		}
	}
	f.note(path...)
	return 0
}
