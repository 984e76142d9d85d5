package observe

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Trim removes, in place, what never leaves the cluster: managed fields, the copy of the manifest that
// kubectl apply leaves in an annotation, and whatever a Secret contains.
func Trim(obj runtime.Object) {
	if o, err := meta.Accessor(obj); err == nil {
		o.SetManagedFields(nil)
		if annotations := o.GetAnnotations(); annotations[corev1.LastAppliedConfigAnnotation] != "" {
			delete(annotations, corev1.LastAppliedConfigAnnotation)
			if len(annotations) == 0 {
				annotations = nil
			}
			o.SetAnnotations(annotations)
		}
	}
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return
	}
	if gvk := u.GroupVersionKind(); gvk.Group == "" && gvk.Kind == "Secret" {
		delete(u.Object, "data")
		delete(u.Object, "stringData")
	}
}
