package informers

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

func withData(name string, data any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "uid": name, "resourceVersion": "1"}, "data": data,
	}}
}

func TestIsLarge(t *testing.T) {
	const many = listedBytes / minLarge
	long, short := strings.Repeat("x", maxLarge), strings.Repeat("x", minLarge)
	for name, tt := range map[string]struct {
		object runtime.Object
		listed int
		want   bool
	}{
		"a small object":      {withData("a", map[string]any{"key": "value", "n": int64(1), "list": []any{true, nil}}), 1, false},
		"a long text":         {withData("a", map[string]any{"key": long}), 1, true},
		"a long name":         {withData("a", map[string]any{long: ""}), 1, true},
		"many small values":   {withData("a", []any{make([]any, maxLarge/sizePerValue)}), 1, true},
		"metadata":            {&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, 1, false},
		"a long annotation":   {&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"a": long}}}, 1, true},
		"a Pod with a script": {&corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Command: []string{long}}}}}, 1, true},
		"a text of few":       {withData("a", map[string]any{"key": short}), many / 4, false},
		"a text of many":      {withData("a", map[string]any{"key": short}), many, true},
		"a small one of many": {withData("a", map[string]any{"key": "value"}), 100 * many, false},
	} {
		if got := isLarge(tt.object, tt.listed); got != tt.want {
			t.Errorf("%s: it is large: %t, want %t", name, got, tt.want)
		}
	}
}

// The large objects that the cache keeps have a bound together. Others stay.
func TestObjectCache_LargeObjects_AreBounded(t *testing.T) {
	const size = maxLargeFetched / 4
	c := &objectCache{
		count: prometheus.NewCounter(prometheus.CounterOpts{Name: "fetches"}), objects: map[types.UID]fetchedObject{},
		listed: func() int { return 1 },
		fetch: func(_ context.Context, _ schema.GroupVersionResource, ref target.Ref) (runtime.Object, error) {
			if ref.Name == "small" {
				return withData(ref.Name, map[string]any{"key": "value"}), nil
			}
			return withData(ref.Name, map[string]any{"key": strings.Repeat("x", size)}), nil
		},
	}
	s := &Informers{fetched: c}
	get := func(name string) WholeObject {
		t.Helper()
		id := target.Identity{Ref: target.Ref{Kind: "ConfigMap", Name: name}, UID: types.UID(name)}
		whole, ok, err := s.WholeObject(t.Context(), id, CachedObject{Object: newStub(withData(name, nil))})
		if err != nil || !ok || whole.ResourceVersion != "1" {
			t.Fatalf("%s is %v, %t, %v", name, whole, ok, err)
		}
		return whole
	}
	get("small")
	for i := range 20 {
		get(fmt.Sprint("large-", i))
		if c.large > maxLargeFetched || c.large < size {
			t.Fatalf("the large objects take %d bytes, want at most %d", c.large, maxLargeFetched)
		}
	}
	// A body that was dropped for others is not read again until it is needed.
	for _, tt := range []struct {
		name  string
		loads float64
	}{{"small", 0}, {"large-19", 0}, {"large-0", 1}} {
		name, loads := tt.name, tt.loads
		before := testutil.ToFloat64(c.count)
		whole := get(name)
		if reads := testutil.ToFloat64(c.count) - before; reads > 0 {
			t.Errorf("%s was read again", name)
		}
		if whole.Source == nil {
			if name != "small" || whole.Body == nil {
				t.Errorf("%s has no source, and the body %v", name, whole.Body)
			}
			continue
		}
		if body, err := whole.Source.Load(t.Context()); err != nil || body == nil || name == "small" {
			t.Errorf("the source of %s loads %v, %v", name, body, err)
		}
		if reads := testutil.ToFloat64(c.count) - before; reads != loads {
			t.Errorf("loading %s took %v reads, want %v", name, reads, loads)
		}
	}
	for i := range 20 {
		c.forget(types.UID(fmt.Sprint("large-", i)))
	}
	if c.large != 0 || c.size() != 1 {
		t.Errorf("after all large ones were forgotten, they take %d bytes, and %d objects are kept", c.large, c.size())
	}
}
