package health

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/threeport/threeport-agent/internal/testing/cputime"
)

func atTime(now time.Time) func(*unstructured.Unstructured) Context {
	return func(*unstructured.Unstructured) Context { return Context{Now: now} }
}

// shape writes trees as "a(b c(d))".
func shape(nodes []*Node) string {
	var out []string
	for _, n := range nodes {
		text := n.Object.GetName()
		if len(n.Children) > 0 {
			text += "(" + shape(n.Children) + ")"
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

func TestForest(t *testing.T) {
	tests := []struct {
		reason, objects, want string
	}{
		{reason: "no objects"},
		{reason: "objects without owners, in their order", objects: `[{name: b, uid: b}, {name: a, uid: a}]`, want: "b a"},
		{
			reason:  "a dependent comes before its owner",
			objects: `[{name: c, uid: c, ownerReferences: [{uid: b}]}, {name: b, uid: b, ownerReferences: [{uid: a}]}, {name: a, uid: a}]`,
			want:    "a(b(c))",
		},

		{reason: "an owner that is not there", objects: `[{name: a, uid: a, ownerReferences: [{uid: x}]}]`, want: "a"},
		{
			reason:  "the controller before another owner",
			objects: `[{name: a, uid: a}, {name: b, uid: b}, {name: c, uid: c, ownerReferences: [{uid: a}, {uid: b, controller: true}]}]`,
			want:    "a b(c)",
		},
		{
			reason:  "the first of owners that are there",
			objects: `[{name: a, uid: a}, {name: b, uid: b}, {name: c, uid: c, ownerReferences: [{uid: x, controller: true}, {uid: b}, {uid: a}]}]`,
			want:    "a b(c)",
		},

		{reason: "one that owns itself", objects: `[{name: a, uid: a, ownerReferences: [{uid: a}]}]`, want: "a"},
		{
			reason:  "two that own each other",
			objects: `[{name: a, uid: a, ownerReferences: [{uid: b}]}, {name: b, uid: b, ownerReferences: [{uid: a}]}]`,
			want:    "a b",
		},
		{
			reason:  "a dependent of a cycle",
			objects: `[{name: c, uid: c, ownerReferences: [{uid: a}]}, {name: a, uid: a, ownerReferences: [{uid: b}]}, {name: b, uid: b, ownerReferences: [{uid: a}]}]`,
			want:    "a(c) b",
		},
		{reason: "objects without UIDs have no owners", objects: `[{name: a}, {name: b, ownerReferences: [{uid: ""}]}]`, want: "a b"},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			var objects []*unstructured.Unstructured
			if tt.objects != "" {
				list, _, err := unstructured.NestedSlice(parse(t, "{apiVersion: v1, kind: List, list: "+tt.objects+"}").Object, "list")
				if err != nil {
					t.Fatal(err)
				}
				for _, meta := range list {
					objects = append(objects, &unstructured.Unstructured{Object: map[string]any{
						"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta,
					}})
				}
			}
			if got := shape(Forest(objects, atTime(caseTime))); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestForest_EachOwner_IncludesItsDescendants(t *testing.T) {
	deployment := parse(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, uid: d, generation: 1}, spec: {replicas: 1},
  status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1}}`)
	set := parse(t, `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web-78, uid: r, generation: 1, ownerReferences: [{uid: d}]},
  spec: {replicas: 1}, status: {observedGeneration: 1, replicas: 1}}`)
	pod := parse(t, `{apiVersion: v1, kind: Pod, metadata: {name: web-78-x, uid: p, ownerReferences: [{uid: r}]},
  status: {phase: Pending, containerStatuses: [{name: web, image: "example/app:9", state: {waiting: {reason: ErrImagePull}}}]}}`)
	const cause = "Pod web-78-x ImagePullBackOff: image example/app:9 cannot be pulled"
	root := Forest([]*unstructured.Unstructured{pod, set, deployment}, atTime(caseTime))[0]
	for _, want := range []string{
		cause + " → ReplicaSet web-78 → Deployment web has 0 of 1 replicas ready",
		cause + " → ReplicaSet web-78 has 0 of 1 replicas ready",
		"image example/app:9 cannot be pulled",
	} {
		if got := root.Aggregate; got.Status != Down || got.Reason != "ImagePullBackOff" || got.Message != want {
			t.Errorf("got %+v, want %s", got, want)
		}
		if len(root.Children) > 0 {
			if root.Self.Status != Reconciling {
				t.Errorf("the status of the root itself is %+v, want Reconciling", root.Self)
			}
			root = root.Children[0]
		}
	}
}

func TestForest_PodsWithoutUID_AreDistinct(t *testing.T) {
	owner := parse(t, `{apiVersion: example.com/v1, kind: Thing, metadata: {name: t, uid: t}}`)
	a := parse(t, `{apiVersion: v1, kind: Pod, metadata: {name: a, ownerReferences: [{uid: t}]}, status: {phase: Running, conditions: [{type: Ready, status: "True"}]}}`)
	b := parse(t, `{apiVersion: v1, kind: Pod, metadata: {name: b, ownerReferences: [{uid: t}]}, status: {phase: Running, conditions: [{type: Ready, status: "True"}]}}`)
	got := Forest([]*unstructured.Unstructured{owner, a, b}, atTime(caseTime))[0].Aggregate
	if got.Status != Unknown || !strings.HasSuffix(got.Message, "; 2 of 2 pods ready") {
		t.Errorf("the verdict is %+v, want Unknown with both pods ready", got)
	}
}

// TestForest_LongChain_LinearTime assesses an invented chain of owners. The time must not grow with the square of its
// length.
func TestForest_LongChain_LinearTime(t *testing.T) {
	const links = 5_000
	objects := make([]*unstructured.Unstructured, links)
	for i := range objects {
		objects[i] = &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{
				"name": fmt.Sprint("pod-", i), "uid": fmt.Sprint(i), "ownerReferences": []any{map[string]any{"uid": fmt.Sprint(i + 1)}},
			},
		}}
	}
	began := cputime.Used(t)
	roots := Forest(objects, atTime(caseTime))
	if len(roots) != 1 || len(roots[0].Aggregate.Message) > 2000 {
		t.Errorf("%d roots, and a message of %d bytes, want 1", len(roots), len(roots[0].Aggregate.Message))
	}
	if took := cputime.Used(t) - began; took > 20*time.Second { // by the square it would take minutes
		t.Errorf("the tree took %s of CPU time, want at most 20 s", took)
	}
}
