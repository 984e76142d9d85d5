package world

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/threeport/threeport-agent/internal/e2e/oracle"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
)

// Limits that only a test that hangs exceeds, on a slow and busy machine.
const (
	Timeout   = 5 * time.Minute // of one condition
	TestLimit = 20 * time.Minute
)

// poll is the interval of Eventually. A check that takes long, such as a process, has pauses that are four times as long, so that it
// leaves the processor to other tests.
const poll = 50 * time.Millisecond

// World is the environment of one test.
type World struct {
	*testing.T
	Ctx       context.Context //nolint:containedctx // the test's own, which ends with it
	Namespace string
	Cluster   *Cluster
	Client    kubernetes.Interface
	Upstream  *upstream.Upstream // its API is the control plane of the test's own requests
	Oracle    *oracle.Oracle
}

// New returns a world with a new namespace, which is deleted at the end of the test. The world has no control plane and no
// oracle: see StartControlPlane and StartOracle.
func New(t *testing.T, c *Cluster) *World {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), TestLimit)
	t.Cleanup(cancel)
	w := &World{T: t, Ctx: ctx, Namespace: namespaceOf(t), Cluster: c}
	config := rest.CopyConfig(c.Config())
	var err error
	w.Upstream, err = upstream.New(config, upstream.API{})
	w.Must(err)
	config.ContentType, config.QPS = runtime.ContentTypeProtobuf, -1
	w.Client, err = kubernetes.NewForConfig(config)
	w.Must(err)
	w.Create("{apiVersion: v1, kind: Namespace, metadata: {name: " + w.Namespace + "}}")
	t.Cleanup(func() {
		err := w.Client.CoreV1().Namespaces().Delete(context.WithoutCancel(ctx), w.Namespace, metav1.DeleteOptions{})
		if err != nil {
			t.Errorf("delete the test's namespace: %v", err)
		}
	})
	return w
}

// StartOracle starts an oracle of the whole cluster.
func (w *World) StartOracle() {
	w.Helper()
	var err error
	w.Oracle, err = oracle.Watch(w.Ctx, w.Cluster.Config())
	w.Must(err)
}

// worlds counts the worlds of a process, so that each namespace is new.
var worlds atomic.Int64

// namespaceOf returns a new namespace for a test. The name of a namespace has at most 63 bytes.
func namespaceOf(t *testing.T) string {
	t.Helper()
	name := "t-" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(strings.TrimPrefix(t.Name(), "Test")))
	return fmt.Sprintf("%s-%d", name[:min(len(name), 56)], worlds.Add(1))
}

// Must fails the test on an error.
func (w *World) Must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// Eventually repeats a check until it returns no error. The condition completes the sentence "the test waited for".
func (w *World) Eventually(condition string, check func() error) {
	w.Helper()
	w.EventuallyWithin(Timeout, condition, check)
}

// EventuallyWithin is Eventually with a limit that the agent has to keep. Both fail at once if a component of the cluster has died. Both
// also work in a cleanup.
func (w *World) EventuallyWithin(limit time.Duration, condition string, check func() error) {
	w.Helper()
	for end := time.Now().Add(limit); ; {
		begin := time.Now()
		err := check()
		if err == nil {
			return
		}
		if w.Cluster != nil && w.Cluster.Err() != nil {
			w.Fatalf("the test waited for %s: %v", condition, w.Cluster.Err())
		}
		if time.Now().After(end) {
			w.Fatalf("the test waited %s for %s: %v", limit, condition, err)
		}
		<-time.After(max(poll, 4*min(time.Since(begin), time.Second)))
	}
}

// Pause lets time pass, as the duration of a fault or a measurement.
func (w *World) Pause(d time.Duration) {
	w.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.Ctx.Done():
		w.Fatal(w.Ctx.Err())
	}
}

// Repeat calls a function at an interval until stop is called, or the test ends. An error fails the test.
func (w *World) Repeat(interval time.Duration, call func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(w.Ctx)
	var calls sync.WaitGroup
	calls.Go(func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			if err := call(ctx); err != nil && ctx.Err() == nil {
				w.Error(err)
				return
			}
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
		}
	})
	stop = func() {
		cancel()
		calls.Wait()
	}
	w.Cleanup(stop)
	return stop
}
