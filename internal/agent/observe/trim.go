package observe

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/threeport/threeport-agent/internal/redact"
)

// Trim removes, in place, the parts of an object that must not leave the cluster: managed fields, copies of the manifest, and
// the data of a Secret. It redacts the values that the rules name; nil are the built-in rules. Trim is the last barrier in
// the agent for the data of Secrets. Package informers asks for Secrets as metadata only, and redacts the copies of manifests before
// they are decoded: secrets.go.
func Trim(obj runtime.Object, rules *redact.Rules) {
	kind := obj.GetObjectKind().GroupVersionKind()
	switch o := obj.(type) {
	case *unstructured.Unstructured:
		trimUnstructured(o)
		rules.Apply(o.Object)
		return
	case *corev1.Secret:
		o.Data, o.StringData = nil, nil
		kind = corev1.SchemeGroupVersion.WithKind("Secret")
	}
	if o, err := meta.Accessor(obj); err == nil {
		o.SetManagedFields(nil)
		annotations := o.GetAnnotations()
		maps.DeleteFunc(annotations, func(name, _ string) bool { return redact.IsManifestCopy(name) })
		rules.Annotations(kind.Group, kind.Kind, annotations)
		if len(annotations) == 0 {
			o.SetAnnotations(nil)
		}
	}
}

// trimUnstructured does not use the accessors: they return nothing for a map with one malformed value.
func trimUnstructured(u *unstructured.Unstructured) {
	unstructured.RemoveNestedField(u.Object, "metadata", "managedFields")
	if annotations, ok, _ := unstructured.NestedFieldNoCopy(u.Object, "metadata", "annotations"); ok {
		m, isMap := annotations.(map[string]any)
		maps.DeleteFunc(m, func(name string, _ any) bool { return redact.IsManifestCopy(name) })
		if isMap && len(m) == 0 {
			unstructured.RemoveNestedField(u.Object, "metadata", "annotations")
		}
	}
	if gvk := u.GroupVersionKind(); gvk.Group == "" && gvk.Kind == "Secret" {
		delete(u.Object, "data")
		delete(u.Object, "stringData")
	}
}

// trimDefinition trims an object that leaves the cluster. It leaves the identity of a status-only object.
func trimDefinition(obj runtime.Object, rules *redact.Rules) {
	Trim(obj, rules)
	switch o := obj.(type) {
	case *unstructured.Unstructured:
		rules.Definition(o.Object)
	case *metav1.PartialObjectMetadata:
		if kind := o.GroupVersionKind(); rules.IsStatusOnly(kind.Group, kind.Kind) {
			o.ObjectMeta = metav1.ObjectMeta{
				Name: o.Name, Namespace: o.Namespace, UID: o.UID, ResourceVersion: o.ResourceVersion, Generation: o.Generation,
				CreationTimestamp: o.CreationTimestamp, DeletionTimestamp: o.DeletionTimestamp,
			}
		}
	}
}
