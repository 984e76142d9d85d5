package observe

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// object decodes JSON as the dynamic client does: whole numbers are int64.
func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return u
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestTrim(t *testing.T) {
	const applied = `"kubectl.kubernetes.io/last-applied-configuration":"{\"data\":\"hush\"}"`
	meta := metav1.ObjectMeta{
		Name:          "x",
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "hush"}},
		Annotations:   map[string]string{corev1.LastAppliedConfigAnnotation: "hush", "keep": "me"},
	}
	tests := []struct {
		reason string
		in     runtime.Object
		want   string
	}{
		{
			"managed fields and the applied manifest, other annotations stay",
			object(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","managedFields":[{"manager":"hush"}],"annotations":{"keep":"me",`+applied+`}},"data":{"k":"v"}}`),
			`{"apiVersion":"v1","data":{"k":"v"},"kind":"ConfigMap","metadata":{"annotations":{"keep":"me"},"name":"x"}}`,
		},
		{
			"no annotation is left",
			object(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","annotations":{`+applied+`}}}`),
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}}`,
		},
		{
			"the copies that other tools keep",
			object(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","annotations":{"keep":"me","kapp.k14s.io/original":"hush","objectset.rio.cattle.io/applied":"hush","banzaicloud.com/last-applied":"hush"}}}`),
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"annotations":{"keep":"me"},"name":"x"}}`,
		},
		{
			"the annotations of a Secret, but for some",
			object(t, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x","annotations":{"helm.sh/chart":"web","kapp.k14s.io/original":"hush","example.com/copy":"hush"}}}`),
			`{"apiVersion":"v1","kind":"Secret","metadata":{"annotations":{"example.com/copy":"[redacted]","helm.sh/chart":"web"},"name":"x"}}`,
		},
		{
			"environment variables whose names look like credentials",
			object(t, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"},"spec":{"containers":[{"env":[{"name":"DB_PASSWORD","value":"hush"}]}]}}`),
			`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"},"spec":{"containers":[{"env":[{"name":"DB_PASSWORD","value":"[redacted]"}]}]}}`,
		},
		{
			"annotations are removed despite a malformed one",
			object(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","annotations":{"odd":1,`+applied+`}}}`),
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"annotations":{"odd":1},"name":"x"}}`,
		},
		{
			"metadata of another type than expected",
			&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": "odd"}},
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":"odd"}`,
		},
		{
			"a Secret's data and stringData; its type stays",
			object(t, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x"},"type":"Opaque","data":{"k":"aHVzaA=="},"stringData":{"k":"hush"}}`),
			`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x"},"type":"Opaque"}`,
		},
		{
			"another group's Secret is no Secret",
			object(t, `{"apiVersion":"example.com/v1","kind":"Secret","metadata":{"name":"x"},"data":{"k":"v"}}`),
			`{"apiVersion":"example.com/v1","data":{"k":"v"},"kind":"Secret","metadata":{"name":"x"}}`,
		},
		{
			"a typed Secret",
			&corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"k": []byte("hush")}, StringData: map[string]string{"k": "hush"}},
			`{"metadata":{"name":"x","annotations":{"keep":"[redacted]"}}}`,
		},
		{
			"metadata only",
			&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
				Name: "x", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "hush"}},
				Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: "hush"},
			}},
			`{"metadata":{"name":"x"}}`,
		},
		{
			"metadata of a Secret",
			&metav1.PartialObjectMetadata{
				TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
				ObjectMeta: metav1.ObjectMeta{Name: "x", Annotations: map[string]string{"example.com/copy": "hush", "helm.sh/chart": "web"}},
			},
			`{"kind":"Secret","apiVersion":"v1","metadata":{"name":"x","annotations":{"example.com/copy":"[redacted]","helm.sh/chart":"web"}}}`,
		},
		{"nothing to remove", &metav1.PartialObjectMetadata{}, `{"metadata":{}}`},
		{"no metadata at all", &metav1.Status{}, `{"metadata":{}}`},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			Trim(tt.in, nil)
			got := encoded(t, tt.in)
			if strings.Contains(got, "hush") || strings.Contains(got, "aHVzaA") {
				t.Errorf("something leaves the cluster: %s", got)
			}
			if u, ok := tt.in.(*unstructured.Unstructured); ok {
				got = encoded(t, u.Object)
			}
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			Trim(tt.in, nil)
			if _, ok := tt.in.(*unstructured.Unstructured); !ok && encoded(t, tt.in) != tt.want {
				t.Error("a second time changes something")
			}
		})
	}
}
