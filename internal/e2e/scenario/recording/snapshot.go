package recording

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Snapshot has the objects and Events of a namespace at one time.
type Snapshot struct {
	Namespace string
	// Taken gives the time of reading, and so of the moment.
	Taken time.Time
	// Objects are all objects except Events.
	Objects []*unstructured.Unstructured
	Events  []*unstructured.Unstructured
}

// replace replaces texts in objects and Events.
func (s Snapshot) replace(texts map[string]string) {
	var pairs []string
	for _, old := range slices.Sorted(maps.Keys(texts)) {
		pairs = append(pairs, old, texts[old])
	}
	rewrite := strings.NewReplacer(pairs...).Replace
	for _, obj := range slices.Concat(s.Objects, s.Events) {
		obj.Object = rewriteMap(obj.Object, rewrite)
	}
}

// Of returns the objects of a type, such as Of[corev1.Pod]. The name of the type is the kind.
func Of[T any](s Snapshot) ([]T, error) {
	kind := reflect.TypeFor[T]().Name()
	from := s.Objects
	if kind == eventKind {
		from = s.Events
	}
	var out []T
	for _, obj := range from {
		if obj.GetKind() != kind {
			continue
		}
		var typed T
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(obj.Object, &typed, true); err != nil {
			return nil, fmt.Errorf("read %s %s: %w", kind, obj.GetName(), err)
		}
		out = append(out, typed)
	}
	return out, nil
}

// Listed reports whether an object was deployed, and not created for another one.
func Listed(obj *unstructured.Unstructured) bool {
	return len(obj.GetOwnerReferences()) == 0 && obj.GetKind() != nodeKind
}
