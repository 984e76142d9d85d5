package health

import (
	"math"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// complete has Healthy objects. Every field in them counts.
var complete = map[string]string{
	"Deployment": `
apiVersion: apps/v1
kind: Deployment
metadata: {generation: 2}
spec: {replicas: 3}
status:
  observedGeneration: 2
  replicas: 3
  updatedReplicas: 3
  availableReplicas: 3
  conditions: [{type: Progressing, status: "True"}]`,
	"StatefulSet": `
apiVersion: apps/v1
kind: StatefulSet
metadata: {generation: 2}
spec: {replicas: 3, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 1}}}
status: {observedGeneration: 2, replicas: 3, updatedReplicas: 2, readyReplicas: 3}`,
	"DaemonSet": `
apiVersion: apps/v1
kind: DaemonSet
metadata: {generation: 2}
status: {observedGeneration: 2, desiredNumberScheduled: 1, numberReady: 1, updatedNumberScheduled: 1}`,
	"Job":     `{apiVersion: batch/v1, kind: Job, status: {conditions: [{type: Complete, status: "True"}]}}`,
	"Service": `{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}, status: {loadBalancer: {ingress: [{ip: 192.0.2.1}]}}}`,
	"Ingress": `{apiVersion: networking.k8s.io/v1, kind: Ingress, status: {loadBalancer: {ingress: [{hostname: lb.example.com}]}}}`,
	"Slice":   `{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {ownerReferences: [{kind: Service}]}, endpoints: [{conditions: {ready: true}}]}`,
	"Gateway": `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {generation: 2}
status:
  conditions: [{type: Accepted, status: "True", observedGeneration: 2}, {type: Programmed, status: "True", observedGeneration: 2}]
  listeners: [{conditions: [{type: Accepted, status: "True"}, {type: Programmed, status: "True"}, {type: ResolvedRefs, status: "True"}]}]`,
	"Route": `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {generation: 2}
spec: {parentRefs: [{name: edge}]}
status: {parents: [{conditions: [{type: Accepted, status: "True", observedGeneration: 2}, {type: ResolvedRefs, status: "True", observedGeneration: 2}]}]}`,
	"Claim": `
apiVersion: v1
kind: PersistentVolumeClaim
spec: {resources: {requests: {storage: 2Gi}}}
status: {phase: Bound, capacity: {storage: 2Gi}}`,
	"Volume":     `{apiVersion: v1, kind: PersistentVolume, status: {phase: Bound}}`,
	"Attachment": `{apiVersion: storage.k8s.io/v1, kind: VolumeAttachment, status: {attached: true}}`,
	"Snapshot":   `{apiVersion: snapshot.storage.k8s.io/v1, kind: VolumeSnapshot, status: {readyToUse: true}}`,
	"Autoscaler": `
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {generation: 1}
status: {observedGeneration: 1, conditions: [{type: AbleToScale, status: "True"}, {type: ScalingActive, status: "True"}]}`,
	"Budget": `
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {generation: 1}
status: {observedGeneration: 1, currentHealthy: 2, desiredHealthy: 2}`,
	"Node":       `{apiVersion: v1, kind: Node, status: {conditions: [{type: Ready, status: "True"}]}}`,
	"Definition": `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, status: {conditions: [{type: Established, status: "True"}]}}`,
	"APIService": `{apiVersion: apiregistration.k8s.io/v1, kind: APIService, status: {conditions: [{type: Available, status: "True"}]}}`,
	"Migration":  `{apiVersion: storagemigration.k8s.io/v1, kind: StorageVersionMigration, status: {conditions: [{type: Succeeded, status: "True"}]}}`,
	"Signing":    `{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, status: {certificate: LS0t}}`,
	"Custom": `
apiVersion: example.com/v1
kind: Thing
metadata: {generation: 3}
status: {conditions: [{type: Ready, status: "True", observedGeneration: 3}]}`,
}

// oddValues has values of every JSON type, none of which is valid in any field.
var oddValues = []any{
	"three", "-1", "", int64(-1), -1.0, 2.5, 1e300, math.NaN(), true,
	[]any{},
	[]any{nil},
	[]any{"x"},
	[]any{[]any{}},
	map[string]any{},
	map[string]any{"a": "b"},
	[]any{map[string]any{"type": int64(1)}},
	[]any{map[string]any{"type": "Ready"}},
}

// Where an empty value says as much as none, and where any text is well-formed.
var (
	mayBeEmpty = []string{
		"metadata", "spec", "spec.updateStrategy", "spec.updateStrategy.rollingUpdate", "status.conditions", "spec.resources",
		"spec.resources.requests", "status.capacity", "endpoints.[]", "endpoints.[].conditions",
	}
	mayBeText = []string{
		"spec.updateStrategy.type", "spec.type", "status.loadBalancer.ingress.[].ip", "status.loadBalancer.ingress.[].hostname",
		"status.conditions.[].type", "status.certificate", "status.capacity.storage", "spec.resources.requests.storage",
	}
	mayBeTrue = []string{"status.attached", "status.readyToUse", "endpoints.[].conditions.ready"}
	notRead   = []string{"spec.parentRefs.", "metadata.ownerReferences"} // but for how many there are
)

func TestObject_MalformedValue_IsNeverHealthy(t *testing.T) {
	for name, text := range complete {
		t.Run(name, func(t *testing.T) {
			whole := parse(t, text)
			if got := Object(kindOf(whole), whole, Context{}); got.Status != Healthy {
				t.Fatalf("the unchanged object: got %+v, want Healthy", got)
			}
			kind := kindOf(whole)
			replaceEach(whole.Object, nil, func(path []string, put func(any)) {
				for _, value := range oddValues {
					put(value)
					if got := Object(kind, whole, Context{}); got.Status == Healthy && !isValidAt(path, value) {
						t.Errorf("the object is Healthy with %s = %T %v", strings.Join(path, "."), value, value)
					}
				}
			})
			if got := Object(kind, whole, Context{}); got.Status != Healthy {
				t.Fatalf("the restored object: got %+v, want Healthy", got)
			}
		})
	}
}

// replaceEach calls try with a replaced value for each field of an object, and restores the field.
func replaceEach(in map[string]any, path []string, try func(path []string, put func(any))) {
	for key, old := range in {
		at := append(slices.Clone(path), key)
		if key == "apiVersion" || key == "kind" {
			continue
		}
		try(at, func(v any) { in[key] = v })
		in[key] = old
		replaceIn(old, at, try)
	}
}

func replaceIn(v any, path []string, try func(path []string, put func(any))) {
	switch v := v.(type) {
	case map[string]any:
		replaceEach(v, path, try)
	case []any:
		for i, item := range v {
			try(append(slices.Clone(path), "[]"), func(x any) { v[i] = x })
			v[i] = item
			replaceIn(item, append(slices.Clone(path), "[]"), try)
		}
	}
}

// isValidAt reports whether a value is valid in a field.
func isValidAt(path []string, value any) bool {
	text := strings.Join(path, ".")
	if text == "status" && value == true || strings.HasSuffix(text, "conditions.[].observedGeneration") || value == true && strings.HasSuffix(text, "conditions.[].status") {
		return true // some controllers write a hash, or a boolean
	}
	if value == true && slices.Contains(mayBeTrue, text) ||
		slices.ContainsFunc(notRead, func(prefix string) bool { return strings.HasPrefix(text+".", prefix) }) {
		return true
	}
	switch v := value.(type) {
	case map[string]any:
		return slices.Contains(mayBeEmpty, text)
	case []any:
		if text == "endpoints" || text == "status.listeners" { // a list of tables is one; a Gateway may have no listener
			return len(v) == 0 || isTable(v[0])
		}
		if text != "status.conditions" || len(v) == 0 {
			return text == "status.conditions"
		}
		c, ok := v[0].(map[string]any) // of a type that does not count for the kind
		return ok && c["type"] == "Ready"
	case string:
		return slices.Contains(mayBeText, text)
	}
	return false
}

func isTable(v any) bool {
	_, ok := v.(map[string]any)
	return ok
}

func TestObject_MalformedConditions(t *testing.T) {
	condition := func(fields ...any) map[string]any {
		c := map[string]any{"type": "Ready", "status": "True"}
		for i := 0; i < len(fields); i += 2 {
			c[fields[i].(string)] = fields[i+1]
		}
		return c
	}
	tests := []struct {
		reason     string
		conditions any
		want       Status
		why        string
	}{
		{reason: "a valid condition", conditions: []any{condition()}, want: Healthy},
		{reason: "no conditions", want: Unknown, why: "NoSignal"},
		{reason: "no list", conditions: "Ready", want: Unknown, why: "NoSignal"},
		{
			reason:     "a status that is no string, beside a good one",
			conditions: []any{condition(), condition("type", "Synced", "status", int64(1))},
			want:       Unknown, why: "Malformed",
		},
		{reason: "a status that is true", conditions: []any{condition("status", true)}, want: Healthy},
		{reason: "a status that is false", conditions: []any{condition("status", false)}, want: Unhealthy, why: "NotReady"},
		{reason: "a status in lower case", conditions: []any{condition("status", "true")}, want: Healthy},
		{
			reason:     "a status that is no word of the three",
			conditions: []any{condition(), condition("type", "Synced", "status", "sometimes")},
			want:       Unknown, why: "Malformed",
		},
		{reason: "a time without a colon", conditions: []any{condition("lastTransitionTime", "2026-01-01T09:00:00+0000")}, want: Healthy},
		{reason: "a time that is none", conditions: []any{condition("lastTransitionTime", "yesterday")}, want: Healthy},

		{reason: "an item that is no condition, beside a valid one", conditions: []any{condition(), "Ready"}, want: Unknown, why: "Malformed"},
		{
			reason: "a type that is no string, beside a valid one", conditions: []any{condition(), condition("type", int64(1))},
			want: Unknown, why: "Malformed",
		},

		{
			reason: "a duplicate type with another status", conditions: []any{condition("status", "False"), condition()},
			want: Unknown, why: "Malformed",
		},
		{reason: "a duplicate type with the same status", conditions: []any{condition(), condition()}, want: Healthy},

		{reason: "a generation that is a hash", conditions: []any{condition("observedGeneration", "8f3c")}, want: Healthy},
		{reason: "a generation that is a text", conditions: []any{condition("observedGeneration", "3")}, want: Healthy},
		{
			reason:     "a fault counts also in a malformed object",
			conditions: []any{condition("status", "False", "reason", int64(1)), "odd"},
			want:       Unhealthy, why: "NotReady",
		},
	}
	for _, tt := range tests {
		u := parse(t, "{apiVersion: example.com/v1, kind: Thing, metadata: {generation: 3}, status: {}}")
		u.Object["status"].(map[string]any)["conditions"] = tt.conditions
		if got := Object(kindOf(u), u, Context{}); got.Status != tt.want || got.Reason != tt.why {
			t.Errorf("%s: got %+v, want %s %s", tt.reason, got, tt.want, tt.why)
		}
	}
}

func TestObject_MalformedDeletionTimestamp_IsNotHealthy(t *testing.T) {
	for _, value := range []any{"soon", int64(5), map[string]any{}} {
		u := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"deletionTimestamp": value},
		}}
		if got := Object(kindOf(u), u, Context{}); got.Status == Healthy {
			t.Errorf("%v: got %+v, want another status than Healthy", value, got)
		}
	}
}
