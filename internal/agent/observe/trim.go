package observe

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// ManifestCopies are the annotations in which tools keep a copy of the applied manifest. That of a Secret has its data.
var ManifestCopies = []string{
	corev1.LastAppliedConfigAnnotation, // kubectl apply
	"kapp.k14s.io/original",
	"objectset.rio.cattle.io/applied", // Fleet and k3s
	"banzaicloud.com/last-applied",
}

// Trim removes, in place, the parts of an object that must not leave the cluster: managed fields, [ManifestCopies], and the
// data of a Secret. It is the last of three barriers for that data. Package informers asks for Secrets as metadata only:
// factory.go for watches, clients.go for single reads. It redacts the manifest copies before they are decoded, in redact.go.
func Trim(obj runtime.Object) {
	switch o := obj.(type) {
	case *unstructured.Unstructured:
		trimUnstructured(o)
		return
	case *corev1.Secret:
		o.Data, o.StringData = nil, nil
	}
	if o, err := meta.Accessor(obj); err == nil {
		o.SetManagedFields(nil)
		annotations := o.GetAnnotations()
		for _, name := range ManifestCopies {
			delete(annotations, name)
		}
		if len(annotations) == 0 {
			o.SetAnnotations(nil)
		}
	}
}

// trimUnstructured does not use the accessors: they return nothing for a map with one malformed value.
func trimUnstructured(u *unstructured.Unstructured) {
	unstructured.RemoveNestedField(u.Object, "metadata", "managedFields")
	for _, name := range ManifestCopies {
		unstructured.RemoveNestedField(u.Object, "metadata", "annotations", name)
	}
	if annotations, ok, _ := unstructured.NestedFieldNoCopy(u.Object, "metadata", "annotations"); ok {
		if m, isMap := annotations.(map[string]any); isMap && len(m) == 0 {
			unstructured.RemoveNestedField(u.Object, "metadata", "annotations")
		}
	}
	if gvk := u.GroupVersionKind(); gvk.Group == "" && gvk.Kind == "Secret" {
		delete(u.Object, "data")
		delete(u.Object, "stringData")
	}
}
