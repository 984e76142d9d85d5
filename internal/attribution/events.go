package attribution

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Object identifies one incarnation of an object, independent of the API version.
type Object struct {
	Group, Kind     string
	Namespace, Name string
	UID             types.UID
}

// InNamespaceOfObject reports whether an Event of a namespace is in that of its involved object, or for a cluster-scoped one in
// default or kube-system. For a namespaced object, the API server requires this only of Events without an eventTime
// (k8s.io/kubernetes/pkg/apis/core/validation, legacyValidateEvent). So a user who may create Events in one namespace can
// name an object of another one.
func InNamespaceOfObject(namespace string, involved *corev1.ObjectReference) bool {
	if involved.Namespace != "" {
		return namespace == involved.Namespace
	}
	return namespace == corev1.NamespaceDefault || namespace == metav1.NamespaceSystem
}

// IsAbout reports whether an Event of a namespace is about a known object. Kind, namespace and name have to match, and the group if the
// Event has it. The UID alone is no evidence, because the creator of the Event chooses it.
func IsAbout(namespace string, involved *corev1.ObjectReference, known Object) bool {
	group := known.Group
	if involved.APIVersion != "" {
		group = schema.FromAPIVersionAndKind(involved.APIVersion, involved.Kind).Group
	}
	return known == Object{group, involved.Kind, involved.Namespace, involved.Name, involved.UID} && InNamespaceOfObject(namespace, involved)
}
