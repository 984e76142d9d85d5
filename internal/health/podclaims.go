package health

import (
	"regexp"

	corev1 "k8s.io/api/core/v1"
)

// unboundClaims matches the scheduler's message about a pod with a claim that is not bound and does not wait for a first consumer.
//
// Source: ErrReasonUnboundImmediatePVC of the plugin VolumeBinding in pkg/scheduler of kubernetes/kubernetes.
var unboundClaims = regexp.MustCompile(`^(?:\d+/\d+ nodes are available: )?(?:\d+ )?pod has unbound immediate PersistentVolumeClaims\b`)

// nameClaims names the claims of a pod in the scheduler's message, which does not. The message does not say either which claim of
// several is not bound.
func nameClaims(pod *corev1.Pod, words string) string {
	claims := claimsOf(pod)
	if len(claims) == 0 || !unboundClaims.MatchString(words) {
		return words
	}
	named := enumerate("PersistentVolumeClaim", claims)
	if len(claims) == 1 {
		return unboundClaims.ReplaceAllLiteralString(words, named+" is not bound")
	}
	return unboundClaims.ReplaceAllLiteralString(words, "not all of "+named+" are bound")
}

// claimsOf returns the names of the claims that the volumes of a pod need. A claim for one pod has the pod's name: the random name of
// a replaceable pod is left out, so that equal pods have equal messages.
//
// Source: spec.volumes[].persistentVolumeClaim and .ephemeral, "the PVC name is <pod name>-<volume name>".
func claimsOf(pod *corev1.Pod) []string {
	var names []string
	for i := range pod.Spec.Volumes {
		switch v := &pod.Spec.Volumes[i]; {
		case v.PersistentVolumeClaim != nil:
			names = append(names, v.PersistentVolumeClaim.ClaimName)
		case v.Ephemeral != nil:
			name := pod.Name + "-" + v.Name
			if pod.GenerateName != "" {
				name = anonymize(pod, name)
			}
			names = append(names, name)
		}
	}
	return names
}
