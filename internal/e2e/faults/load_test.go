package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/e2e/world"
)

const (
	podTemplate = "selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: example.com/web}]}}"
	deployment  = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {" + podTemplate + "}}"
	replicaSet  = "{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web-66c6ccd947}, spec: {" + podTemplate + "}}"
	pod         = "{apiVersion: v1, kind: Pod, metadata: {name: web-66c6ccd947-bh2rs}, spec: {containers: [{name: main, image: example.com/web}]}}"
)

// deployWeb deploys two ConfigMaps and a Deployment, and creates the Deployment's ReplicaSet and Pod, because no controller
// manager runs. It returns all objects, the Pod last.
func (w *faultWorld) deployWeb() []*unstructured.Unstructured {
	w.Helper()
	d := w.deploy("web", world.ConfigMap("conf"), world.ConfigMap("more"), deployment)
	var out []*unstructured.Unstructured
	for _, obj := range d.Objects {
		out = append(out, w.Get(obj))
	}
	set := w.CreateOwned(replicaSet, out[2])
	return append(out, set, w.CreateOwned(pod, set))
}

// newEvent returns the first occurrence of an Event about an object.
func newEvent(about *unstructured.Unstructured, name, eventType string, at time.Time) *corev1.Event {
	when := metav1.NewTime(at.Truncate(time.Second))
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: about.GetNamespace(), Name: name},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: about.GetAPIVersion(), Kind: about.GetKind(), Namespace: about.GetNamespace(), Name: about.GetName(), UID: about.GetUID(),
		},
		Type: eventType, Reason: "Tested", Message: "Event " + name, Count: 1, FirstTimestamp: when, LastTimestamp: when,
	}
}

// createEvent creates an Event about an object.
func (w *faultWorld) createEvent(about *unstructured.Unstructured, name string) *corev1.Event {
	w.Helper()
	ev, err := w.Client.CoreV1().Events(w.Namespace).Create(w.Ctx, newEvent(about, name, corev1.EventTypeNormal, time.Now()), metav1.CreateOptions{})
	w.Must(err)
	return ev
}

// load changes objects, and creates and repeats Events about them, until it is stopped.
type load struct {
	w       *faultWorld
	random  *rand.Rand
	objects []*unstructured.Unstructured
	events  []*corev1.Event // the latest version of each
	turn    int
	failed  int
	paused  atomic.Bool
	cancel  context.CancelFunc
	done    sync.WaitGroup
}

// startLoad starts a load with a number of actions a second.
func (w *faultWorld) startLoad(random *rand.Rand, perSecond int, objects []*unstructured.Unstructured) *load {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Ctx)
	l := &load{w: w, random: random, objects: objects, cancel: cancel}
	l.done.Go(func() {
		ticker := time.NewTicker(time.Second / time.Duration(perSecond))
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
			if l.paused.Load() {
				continue
			}
			l.turn++
			if err := l.act(ctx); err != nil && ctx.Err() == nil {
				l.failed++ // such as while the API server is away; the oracle expects no report of a failed change
			}
		}
	})
	w.Cleanup(l.stop)
	return l
}

// stop ends the load and logs its totals. Further calls have no effect.
func (l *load) stop() {
	l.cancel()
	l.done.Wait()
}

// act executes one random action.
func (l *load) act(ctx context.Context) error {
	about := l.objects[l.random.IntN(len(l.objects))]
	switch l.random.IntN(4) {
	case 0:
		resource, err := l.w.Upstream.Resource(about)
		if err != nil {
			return err
		}
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"example.com/turn":"%d"}}}`, l.turn)
		_, err = resource.Patch(ctx, about.GetName(), types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err
	case 1:
		if len(l.events) == 0 {
			return nil
		}
		i := l.random.IntN(len(l.events))
		ev := l.events[i].DeepCopy()
		ev.Count++
		ev.LastTimestamp = metav1.NewTime(ev.LastTimestamp.Add(time.Second))
		ev, err := l.w.Client.CoreV1().Events(ev.Namespace).Update(ctx, ev, metav1.UpdateOptions{})
		if err == nil {
			l.events[i] = ev
		}
		return err
	default:
		eventType := corev1.EventTypeNormal
		if l.random.IntN(3) == 0 {
			eventType = corev1.EventTypeWarning
		}
		ev := newEvent(about, fmt.Sprintf("load-%d", l.turn), eventType, time.Now())
		ev, err := l.w.Client.CoreV1().Events(ev.Namespace).Create(ctx, ev, metav1.CreateOptions{})
		if err == nil {
			l.events = append(l.events, ev)
		}
		return err
	}
}
