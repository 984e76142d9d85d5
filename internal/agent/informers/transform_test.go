package informers

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/health"
)

// TestATrimmedPodIsJudgedLikeTheWholeOne judges all pods of package health's tests as they are, and as the cache keeps
// them. It also compares the container terminations that both forms of a pod report.
func TestATrimmedPodIsJudgedLikeTheWholeOne(t *testing.T) {
	pods := casesOfPods(t)
	files, err := filepath.Glob("../../health/testdata/recorded/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		pods = append(pods, recordedPods(t, file)...)
	}
	if len(pods) < 100 {
		t.Fatalf("only %d pods were found", len(pods))
	}
	now := time.Date(2026, 1, 1, 10, 1, 0, 0, time.UTC)
	warnings := []health.Warning{
		{},
		{Reason: "FailedMount", Message: "there is no volume", Time: now},
		{Reason: "Unhealthy", Message: "Readiness probe failed: 500", Time: now},
		{Reason: "Unhealthy", Message: "Liveness probe failed: 500", Time: now},
	}
	for _, whole := range pods {
		cached, err := newCachedPod(whole.DeepCopy())
		if err != nil {
			t.Fatal(err)
		}
		if want, got := trimmed(whole), cached.pod(); !apiequality.Semantic.DeepEqual(got, want) {
			t.Errorf("the cached pod is\n     %+v, want\n     %+v", got, want)
		}
		if want, got := terminations(whole), terminations(trimmed(whole)); !reflect.DeepEqual(got, want) {
			t.Errorf("the trimmed pod %s reports the terminations\n     %+v, the whole pod\n     %+v", whole.Name, got, want)
		}
		if want, got := terminations(whole), terminations(trimmed(trimmed(whole))); !reflect.DeepEqual(got, want) {
			t.Errorf("the pod %s, trimmed twice, reports the terminations\n     %+v, want\n     %+v", whole.Name, got, want)
		}
		if want, got := observe.NewPodFacts(withSpecImages(whole)), observe.NewPodFacts(trimmed(trimmed(whole))); !got.Equal(want) {
			t.Errorf("the trimmed pod %s has the facts\n     %+v, the whole pod\n     %+v", whole.Name, got, want)
		}
		for _, w := range warnings {
			context := health.Context{Now: now, Warning: w}
			want, got := health.Pod(whole, context), health.Pod(trimmed(whole), context)
			if got != want {
				t.Errorf("pod %s with Warning %q is judged\n     %+v, as a whole\n     %+v", whole.Name, w.Reason, got, want)
			}
			if again := health.Pod(trimmed(trimmed(whole)), context); again != want {
				t.Errorf("pod %s, trimmed twice, is judged %+v", whole.Name, again)
			}
		}
	}
}

// The cache keeps the IDs of a container only if they decide which restart follows its termination.
func TestTrimPod_ContainerIDs_AreKeptOfWaitingContainers(t *testing.T) {
	ended := func(id string) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, ContainerID: id}}
	}
	waiting := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	for _, test := range []struct {
		name          string
		now, last     corev1.ContainerState
		id, ended, of string // the IDs that are kept: of the container, of its state, of its last state
		restart       int32
	}{
		{name: "running", now: running},
		{name: "running again", now: running, last: ended("first"), restart: 4},
		{name: "terminated", now: ended("second")},
		{name: "terminated again", now: ended("second"), last: ended("first"), restart: 4},
		{name: "waiting for its first start", now: waiting},
		{name: "waiting, not counted", now: waiting, last: ended("second"), id: "second", of: "second", restart: 5},
		{name: "waiting, counted", now: waiting, last: ended("first"), id: "second", of: "first", restart: 4},
		{name: "without a state", last: ended("first"), restart: 4},
	} {
		pod := &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
			Name: "web", ContainerID: "second", RestartCount: 4, State: test.now, LastTerminationState: test.last,
		}}}}
		trimmed := trimmed(pod)
		status := trimmed.Status.ContainerStatuses[0]
		var inState, inLast string
		if status.State.Terminated != nil {
			inState = status.State.Terminated.ContainerID
		}
		if status.LastTerminationState.Terminated != nil {
			inLast = status.LastTerminationState.Terminated.ContainerID
		}
		if status.ContainerID != test.id || inState != test.ended || inLast != test.of {
			t.Errorf("%s: the cache keeps the IDs %q, %q and %q, want %q, %q and %q", test.name,
				status.ContainerID, inState, inLast, test.id, test.ended, test.of)
		}
		for form, pod := range map[string]*corev1.Pod{"whole": pod, "trimmed": trimmed} {
			var restart int32
			for _, t := range observe.ContainerTerminations(pod) {
				restart = t.Restart
			}
			if restart != test.restart {
				t.Errorf("%s: restart %d follows the termination of the %s Pod, want %d", test.name, restart, form, test.restart)
			}
		}
	}
}

// terminations returns the reports of the terminations of a pod's containers.
func terminations(pod *corev1.Pod) (out []observe.Event) {
	id := identityOf(podKind.GroupKind(), pod)
	for _, t := range observe.ContainerTerminations(pod) {
		out = append(out, observe.NewTermination(id, t, target.Attribution{}))
	}
	return out
}

// withSpecImages returns a pod whose statuses have the images of its spec.
func withSpecImages(pod *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	images := map[string]string{}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		images[c.Name] = c.Image
	}
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			statuses[i].Image = cmp.Or(images[statuses[i].Name], statuses[i].Image)
		}
	}
	return pod
}

// The container runtime names an image by another tag, or by its digest.
func TestTrimPod_Image_IsThatOfTheSpec(t *testing.T) {
	pod := &corev1.Pod{
		Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{{Name: "setup", Image: "setup:1"}}, Containers: []corev1.Container{{Name: "app", Image: "shop:1"}},
		},
		Status: corev1.PodStatus{
			InitContainerStatuses:      []corev1.ContainerStatus{{Name: "setup", Image: "sha256:1"}},
			ContainerStatuses:          []corev1.ContainerStatus{{Name: "app", Image: "registry.example.com/shop:latest"}},
			EphemeralContainerStatuses: []corev1.ContainerStatus{{Name: "shell", Image: "busybox:1"}},
		},
	}
	var images []string
	for _, c := range observe.NewPodFacts(trimmed(trimmed(pod))).Containers {
		images = append(images, c.Image)
	}
	if want := []string{"setup:1", "shop:1", "busybox:1"}; !slices.Equal(images, want) {
		t.Errorf("the images are %q, want %q", images, want)
	}
}

func casesOfPods(t *testing.T) []*corev1.Pod {
	t.Helper()
	data, err := os.ReadFile("../../health/testdata/cases/pod.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct{ Object map[string]any }
	if err := yaml.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	var out []*corev1.Pod
	for _, c := range cases {
		pod := &corev1.Pod{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(c.Object, pod); err == nil { // some are malformed
			out = append(out, pod)
		}
	}
	return out
}

func recordedPods(t *testing.T, file string) []*corev1.Pod {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }() // it was only read
	var out []*corev1.Pod
	for decoder := yaml.NewYAMLOrJSONDecoder(f, 4096); ; {
		u := &unstructured.Unstructured{}
		err := decoder.Decode(u)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if u.GetKind() != "Pod" {
			continue
		}
		pod := &corev1.Pod{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, pod); err != nil {
			t.Fatal(err)
		}
		out = append(out, pod)
	}
}

// Health judges a trimmed EndpointSlice like the whole one, whatever the number of its endpoints.
func TestTrimSlice_IsJudgedLikeTheWholeOne(t *testing.T) {
	ready := func(value any) any {
		return map[string]any{"addresses": []any{"10.0.0.1"}, "conditions": map[string]any{"ready": value}}
	}
	terminating := map[string]any{"addresses": []any{"10.0.0.1"}, "conditions": map[string]any{"ready": false, "terminating": true}}
	bare := map[string]any{"addresses": []any{"10.0.0.1"}} // it is ready
	for _, endpoints := range [][]any{
		nil,
		{},
		{ready(true)},
		{ready(false)},
		{ready(false), ready(true)},
		{ready(true), ready(false)},
		{ready(false), bare},
		{bare},
		{ready(nil)},
		{ready("no")},
		{ready(false), "no"},
		{map[string]any{"conditions": "no"}},
		{ready(false), ready(false), ready(false)},
		{terminating},
		{terminating, ready(false)},
		{terminating, terminating, ready(true)},
		{ready(false), terminating},
	} {
		whole := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "endpoints": endpoints,
			"metadata": map[string]any{"name": "web-x", "namespace": "ns", "uid": "x", "ownerReferences": []any{map[string]any{
				"apiVersion": "v1", "kind": "Service", "name": "web", "uid": "s",
			}}},
		}}
		trimmed := trimSlice(whole.DeepCopy())
		if kept, _ := trimmed.Object["endpoints"].([]any); len(kept) > 1 || strings.Contains(fmt.Sprint(kept), "10.0.0.1") {
			t.Errorf("of %v the cache keeps %v, want at most the conditions of one", endpoints, kept)
		}
		context := health.Context{Now: time.Now()}
		if want, got := health.Object(sliceKind, whole, context), health.Object(sliceKind, trimmed, context); got.Verdict != want.Verdict {
			t.Errorf("with the endpoints %v the trimmed EndpointSlice is %v, the whole one %v", endpoints, got.Verdict, want.Verdict)
		}
	}
}

func trimmed(pod *corev1.Pod) *corev1.Pod {
	out := trimPod(pod.DeepCopy())
	return &out
}
