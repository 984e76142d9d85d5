package scenario

import (
	"context"
	"errors"
	"slices"
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

// after returns a check that passes at its n-th call.
func after(n int) Check {
	return func(recording.Snapshot) error {
		if n--; n >= 0 {
			return errors.New("not yet")
		}
		return nil
	}
}

func TestPlay_StepsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log []string
		do := func(what string) func(context.Context, Env) error {
			return func(context.Context, Env) error { log = append(log, what); return nil }
		}
		s := Scenario{Name: "test", Steps: []Step{
			{Reached: after(3)},
			{Moment: "a", Do: do("do a"), Reached: after(0)},
			{Moment: "b", Reached: after(2)},
			{Do: do("do c"), Reached: after(0)},
		}}
		begin := time.Now()
		err := s.Play(t.Context(), Env{Client: client(t), Namespace: "app"}, func(_ context.Context, step Step, _ recording.Snapshot) error {
			log = append(log, "seen "+step.Moment)
			return nil
		})
		if want := []string{"do a", "seen a", "seen b", "do c"}; err != nil || !slices.Equal(log, want) {
			t.Errorf("got %v, %v, want %v", log, err, want)
		}
		if took := time.Since(begin); took != 5*pollInterval {
			t.Errorf("Play took %s, want %s for five checks", took, 5*pollInterval)
		}
	})
}

func TestPlay_Timeout_NamesMissing(t *testing.T) {
	boom := errors.New("boom")
	never := func(recording.Snapshot) error { return errors.New("the pod is not Ready") }
	tests := []struct {
		reason string
		step   Step
		seen   error
		want   string
	}{
		{
			reason: "the action fails",
			step:   Step{Moment: "a", Do: func(context.Context, Env) error { return boom }, Reached: after(0)},
			want:   "scenario test, a: boom",
		},
		{
			reason: "the moment never comes",
			step:   Step{Moment: "a", Reached: never, Within: time.Minute},
			want:   "wait for a: the moment was not observed: context deadline exceeded; last: the pod is not Ready",
		},
		{
			reason: "a moment without a name never comes",
			step:   Step{Reached: never},
			want:   "wait for step 1: the moment was not observed: context deadline exceeded; last: the pod is not Ready",
		},
		{
			reason: "the observer returns an error",
			step:   Step{Moment: "a", Reached: after(0)},
			seen:   boom,
			want:   "scenario test, at a: boom",
		},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				err := Scenario{Name: "test", Steps: []Step{tt.step}}.Play(t.Context(), Env{Client: client(t), Namespace: "app"},
					func(context.Context, Step, recording.Snapshot) error { return tt.seen })
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("got %v, want %q", err, tt.want)
				}
				if notObserved := strings.Contains(tt.want, "was not observed"); errors.Is(err, ErrNotObserved) != notObserved {
					t.Errorf("got %v, want ErrNotObserved: %t", err, notObserved)
				}
				if took := time.Since(begin); took > pollTimeout || tt.step.Within > 0 && took != tt.step.Within {
					t.Errorf("Play took %s, want at most %s and exactly Within, if set", took, pollTimeout)
				}
			})
		})
	}
}

func TestAwaitSecond(t *testing.T) {
	tests := []struct {
		reason       string
		second, from int
		want         time.Duration
	}{
		{reason: "a scenario without a second", from: 42},
		{reason: "the second is still to come in this minute", second: 3, from: 1, want: 2 * time.Second},
		{reason: "the second is over in this minute", second: 3, from: 10, want: 53 * time.Second},
		{reason: "the second is now", second: 3, from: 3, want: time.Minute},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			start := time.NewTimer(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute + time.Duration(tt.from)*time.Second)))
			<-start.C
			begin := time.Now()
			if err := (Scenario{Second: tt.second}).AwaitSecond(t.Context()); err != nil {
				t.Error(err)
			}
			if got := time.Since(begin); got != tt.want {
				t.Errorf("%s: AwaitSecond waited for %s, want %s", tt.reason, got, tt.want)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (Scenario{Second: 1}).AwaitSecond(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("AwaitSecond with a cancelled context returns %v, want the context's error", err)
	}
}

// kubelet counts its stops and starts.
type kubelet struct{ stopped, started int }

func (*kubelet) Name() string                         { return "node-real" }
func (k *kubelet) StopKubelet(context.Context) error  { k.stopped++; return nil }
func (k *kubelet) StartKubelet(context.Context) error { k.started++; return nil }

func TestCatalogue_NodeScenariosActOnNode(t *testing.T) {
	for _, s := range node() {
		k := &kubelet{}
		env := Env{Client: client(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-real"}}), Namespace: "app", Node: k}
		for _, step := range s.Steps {
			if step.Do == nil {
				continue
			}
			if err := step.Do(t.Context(), env); err != nil {
				t.Error(err)
			}
		}
		if k.stopped != 1 || k.started != 1 {
			t.Errorf("%s: the kubelet was stopped %d times and started %d times", s.Name, k.stopped, k.started)
		}
		at, err := s.Take(t.Context(), env)
		if err != nil || len(at.Objects) != 1 {
			t.Errorf("%s: the snapshot has %d objects, want the node: %v", s.Name, len(at.Objects), err)
		}
	}
}
