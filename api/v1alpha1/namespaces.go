package v1alpha1

import "strings"

// LabelNamespaces returns the namespaces in the annotation [AnnotationNamespaces].
func (w *ThreeportWorkload) LabelNamespaces() []string {
	return strings.FieldsFunc(w.Annotations[AnnotationNamespaces], func(r rune) bool { return r == ',' || r == ' ' })
}
