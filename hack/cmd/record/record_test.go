package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/threeport/threeport-agent/internal/e2e/scenario"
	"github.com/threeport/threeport-agent/internal/e2e/scenario/recording"
)

func client(t *testing.T, objects ...runtime.Object) dynamic.Interface {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewSimpleDynamicClient(scheme, objects...)
}

func pod() *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "app", Name: "web"}}
}

func event(message string) *corev1.Event {
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "app", Name: "web.1"}, Message: message,
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "web"},
	}
}

func TestSettled_WaitsForLastChange(t *testing.T) {
	tests := []struct {
		reason string
		busy   int // checks at which the moment is not reached
		gone   bool
		want   time.Duration
	}{
		{reason: "nothing changes", want: settleFor},
		{reason: "the moment is gone for a while", busy: 4, gone: true, want: 4*settleEvery + settleFor},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			checks := 0
			step := scenario.Step{Reached: func(recording.Snapshot) error {
				if checks++; checks <= tt.busy && tt.gone {
					return errors.New("it is gone")
				}
				return nil
			}}
			begin := time.Now()
			text, err := settled(t.Context(), scenario.Scenario{}, step, scenario.Env{Client: client(t, pod()), Namespace: "app"})
			if err != nil || !strings.Contains(string(text), "name: web") {
				t.Errorf("%s: the recording is %s, error %v; want Pod web", tt.reason, text, err)
			}
			if got := time.Since(begin); got != tt.want {
				t.Errorf("%s: the recording took %s, want %s", tt.reason, got, tt.want)
			}
		})
	}
}

func TestSettled_TimesOut(t *testing.T) {
	never := func(recording.Snapshot) error { return errors.New("it is gone") }
	there := func(recording.Snapshot) error { return nil }
	tests := []struct {
		reason  string
		objects []runtime.Object
		reached scenario.Check
		want    string
	}{
		{
			reason:  "the moment is over",
			objects: []runtime.Object{pod()},
			reached: never,
			want:    "the objects of the moment kept changing: context deadline exceeded\nit is gone",
		},
		{
			reason:  "the machine is busy",
			objects: []runtime.Object{pod(), event("Error: failed to sync secret cache: timed out")},
			reached: there,
			want:    "the machine is busy",
		},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			_, err := settled(t.Context(), scenario.Scenario{}, scenario.Step{Reached: tt.reached},
				scenario.Env{Client: client(t, tt.objects...), Namespace: "app"})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: settled returned the error %v, want %q", tt.reason, err, tt.want)
			}
		})
	}
}

func TestSettled_ContextEnds_Stops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := settled(ctx, scenario.Scenario{}, scenario.Step{Reached: func(recording.Snapshot) error { return nil }},
		scenario.Env{Client: client(t, pod()), Namespace: "app"})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("settled returned the error %v, want %v", err, context.Canceled)
	}
}
