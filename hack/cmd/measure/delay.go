package main

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/e2e/upstream"
)

// delays are times since an Event was sent to the API server, in milliseconds.
type delays struct {
	// watched is the lower bound: the arrival at a plain watch in this process.
	watched []float64
	// reported is the creation of its row in the control plane.
	reported []float64
}

// measureDelay creates Events about a pod of a workload at a constant rate.
func (s *stack) measureDelay(ctx context.Context, d upstream.Deployed, size size) (delays, error) {
	pods, err := s.client.CoreV1().Pods(d.Name).List(ctx, metav1.ListOptions{})
	if err != nil {
		return delays{}, fmt.Errorf("list pods of %s: %w", d.Name, err)
	}
	if len(pods.Items) == 0 {
		return delays{}, fmt.Errorf("%s has no pods", d.Name)
	}
	pod := pods.Items[0]
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watch, err := s.client.CoreV1().Events(d.Name).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return delays{}, fmt.Errorf("watch events: %w", err)
	}
	defer watch.Stop()
	seen := map[types.UID]time.Time{}
	var watching sync.WaitGroup
	watching.Go(func() {
		for change := range watch.ResultChan() {
			if ev, ok := change.Object.(*corev1.Event); ok && ev.Reason == "Measured" {
				seen[ev.UID] = time.Now()
			}
			if len(seen) == size.events {
				return
			}
		}
	})

	written := map[types.UID]time.Time{}
	ticker := time.NewTicker(time.Second / time.Duration(size.rate))
	defer ticker.Stop()
	for i := range size.events {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return delays{}, ctx.Err()
		}
		at := time.Now()
		ev, err := s.client.CoreV1().Events(d.Name).Create(ctx, &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Name: fmt.Sprintf("measured-%d", i), Namespace: d.Name},
			InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: d.Name, Name: pod.Name, UID: pod.UID},
			Reason:         "Measured", Message: "event " + strconv.Itoa(i), Type: corev1.EventTypeNormal,
			FirstTimestamp: metav1.NewTime(at), LastTimestamp: metav1.NewTime(at), Count: 1,
		}, metav1.CreateOptions{})
		if err != nil {
			return delays{}, fmt.Errorf("write event: %w", err)
		}
		written[ev.UID] = at
	}
	timeout := time.AfterFunc(time.Minute, cancel) // this ends the watch
	watching.Wait()
	timeout.Stop()
	if len(seen) < len(written) {
		return delays{}, fmt.Errorf("the plain watch received %d of %d Events", len(seen), len(written))
	}
	return s.collectDelays(ctx, d, written, seen)
}

// collectDelays waits for the rows of all Events, and compares their times.
func (s *stack) collectDelays(ctx context.Context, d upstream.Deployed, written, seen map[types.UID]time.Time) (delays, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	filter := url.Values{"workloadinstanceid": {strconv.FormatInt(d.InstanceID, 10)}}
	for {
		rows, err := s.upstream.API.Events(ctx, filter)
		if err != nil {
			return delays{}, err
		}
		var out delays
		for _, row := range rows {
			uid := types.UID(*row.RuntimeEventUID)
			if at, ok := written[uid]; ok {
				out.reported = append(out.reported, milliseconds(row.CreatedAt.Sub(at)))
				out.watched = append(out.watched, milliseconds(seen[uid].Sub(at)))
			}
		}
		if len(out.reported) == len(written) {
			return out, nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return delays{}, fmt.Errorf("%d of %d events have a row: %w", len(out.reported), len(written), ctx.Err())
		}
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
