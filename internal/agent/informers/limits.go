package informers

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Limits of the cached parts of an object. The API server bounds only the size of the whole object, 1.5 MiB. An author of Pods may
// use all of it for any of these parts. cachedevent.go has further limits for Events.
const (
	maxOwners     = 8       // besides the controller
	maxOwnerBytes = 2 << 10 // of the texts of these owners together
	maxKind       = 63      // in bytes; the limit of custom resources
	maxUID        = 64      // in bytes; the API server's have 36
	maxFinalizers = 16
	maxContainers = 64 // of each type; the control plane shows as many
	maxVolumes    = 64
	maxConditions = 64
	maxImage      = 512     // in bytes; a reference with name, tag and digest has at most 457
	maxStatusText = 4 << 10 // in bytes; the kubelet's limit of a termination message
)

// maxIdentity is the limit of a field of a reference, in bytes. An API version has at most 317, and a name 253.
const maxIdentity = 320

// limitOwners returns the controller and the first maxOwners other owners. It omits references that no object can have.
func limitOwners(refs []metav1.OwnerReference) []metav1.OwnerReference {
	var out []metav1.OwnerReference
	controllers, others, bytes := 0, 0, 0
	for _, ref := range refs {
		size := len(ref.APIVersion) + len(ref.Kind) + len(ref.Name) + len(ref.UID)
		switch {
		case max(len(ref.APIVersion), len(ref.Name)) > maxIdentity, len(ref.Kind) > maxKind, len(ref.UID) > maxUID:
			continue
		case ref.Controller != nil && *ref.Controller:
			if controllers++; controllers > 1 { // the limit of the API server
				continue
			}
		case others == maxOwners, bytes+size > maxOwnerBytes:
			continue
		default:
			others, bytes = others+1, bytes+size
		}
		out = append(out, ref)
	}
	return slices.Clip(out)
}

// firstOf returns the first elements of a list. The copy lets the memory of a longer list go.
func firstOf[T any](list []T, n int) []T {
	if len(list) <= n {
		return list
	}
	return slices.Clone(list[:n])
}

func limitConditions(in []corev1.PodCondition) []corev1.PodCondition {
	in = in[:min(len(in), maxConditions)]
	for i := range in {
		in[i].Reason, in[i].Message = shorten(in[i].Reason, maxStatusText), shorten(in[i].Message, maxStatusText)
	}
	return in
}

func limitState(in corev1.ContainerState) corev1.ContainerState {
	if w := in.Waiting; w != nil {
		w.Reason, w.Message = shorten(w.Reason, maxStatusText), shorten(w.Message, maxStatusText)
	}
	if t := in.Terminated; t != nil {
		t.Reason, t.Message = shorten(t.Reason, maxStatusText), shorten(t.Message, maxStatusText)
	}
	return in
}

// shorten returns the beginning of a text. The copy lets the memory of the whole text go.
func shorten(text string, length int) string {
	if len(text) <= length {
		return text
	}
	return strings.ToValidUTF8(strings.Clone(text[:length]), "")
}
