package health

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// parse decodes YAML as the dynamic client decodes JSON: whole numbers are int64.
func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(strings.ReplaceAll(text, "\t", "  ")))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return u
}

// parseFloats decodes YAML with every number a float64.
func parseFloats(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

func kindOf(u *unstructured.Unstructured) schema.GroupKind { return u.GroupVersionKind().GroupKind() }

type objectCase struct {
	reason string
	object string
	want   Status
	why    string // the verdict's reason
}

func runObjectCases(t *testing.T, tests []objectCase) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			t.Helper()
			for name, u := range map[string]*unstructured.Unstructured{
				"whole numbers": parse(t, tt.object), "floats": parseFloats(t, tt.object),
			} {
				got := Object(kindOf(u), u, Context{})
				if got.Status != tt.want || got.Reason != tt.why {
					t.Errorf("%s: got %+v, want %s %s", name, got, tt.want, tt.why)
				}
				if (got.Message == "") != (got.Status == Healthy && !got.idle()) {
					t.Errorf("%s: the status is %s with the message %q, want a message exactly if not Healthy or idle", name, got.Status, got.Message)
				}
			}
		})
	}
}
