package reporter

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

// stalls returns the number of restarted informers of a resource, by the metrics.
func (w *world) stalls(resource string) float64 {
	w.Helper()
	families, err := w.registry.Gather()
	w.must(err)
	total := 0.0
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == "threeport_agent_watch_stalls_total" && m.GetLabel()[0].GetValue() == resource {
				total += m.GetCounter().GetValue()
			}
		}
	}
	return total
}

// awaitSync waits until every informer has synced and waits for no answer.
func (w *world) awaitSync() {
	w.Helper()
	w.eventually("every informer is current", func() string {
		sizes := w.reporter.sizes()
		current, all := sizes["current informers"], sizes["informers"]
		return complain(current < all || !w.reporter.Ready(), fmt.Sprintf("%d of %d are", current, all))
	})
}

// expectStalls waits until all informers are current, and expects DetectStalls to restart that many.
func (w *world) expectStalls(stalled int) {
	w.Helper()
	w.awaitSync()
	if got, err := w.reporter.DetectStalls(w.ctx); got != stalled || err != nil {
		w.Errorf("DetectStalls returns %d, %v, want %d stalled informers", got, err, stalled)
	}
}

// A watch that is open and delivers nothing is detected by any kind of change.
func TestInformers_DetectStalls_RestartsStalledWatch(t *testing.T) {
	for reason, c := range map[string]struct {
		change func(*world)
		lives  []string // of the ConfigMaps changed, gone, again, fresh, same
	}{
		"an object is updated": {
			func(w *world) { w.patch(w.parse(configMap("changed")), `{"data": {"key": "news"}}`) },
			[]string{"[1]", "[1]", "[1]", "[]", "[1]"},
		},
		"an object is deleted": {
			func(w *world) { w.remove(w.parse(configMap("gone"))) },
			[]string{"[1]", "[1 1-deleted]", "[1]", "[]", "[1]"},
		},
		"an object is created again": {
			func(w *world) {
				w.remove(w.parse(configMap("again")))
				w.create(configMap("again"))
			},
			[]string{"[1]", "[1]", "[1 1-deleted 2]", "[]", "[1]"},
		},
		"an object is created": {
			func(w *world) { w.create(configMap("fresh")) },
			[]string{"[1]", "[1]", "[1]", "[1]", "[1]"},
		},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, shared.reader, quick())
			for _, name := range []string{"changed", "gone", "again", "same"} {
				w.create(configMap(name))
			}
			wl := w.track("wl", "v1 ConfigMap changed", "v1 ConfigMap gone", "v1 ConfigMap again", "v1 ConfigMap fresh", "v1 ConfigMap same")
			w.expectLives(wl.Resources[4].Ref, "[1]")
			w.expectState(wl, 3, target.Absent, "")
			w.expectStalls(0)
			thaw := w.proxy.freeze("/configmaps")
			defer thaw()
			before := len(w.sink.operations(wl.Resources[0].Ref))
			c.change(w)
			w.expectStalls(1)
			if got := w.stalls("configmaps"); got != 1 {
				t.Errorf("the metric says %v, want 1", got)
			}
			for i, want := range c.lives {
				w.expectLives(wl.Resources[i].Ref, want)
			}
			if reason == "an object is updated" {
				w.eventually("the change is offered", func() string {
					return complain(len(w.sink.operations(wl.Resources[0].Ref)) != before+1, "it is not")
				})
			}
		})
	}
}

func complain(bad bool, complaint string) string {
	if bad {
		return complaint
	}
	return ""
}

// Two listed versions that are served as one resource share an informer, which restarts for both.
func TestInformers_DetectStalls_InformerOfTwoVersions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shared.reader, quick())
	wl := w.track("wl", "autoscaling/v2 HorizontalPodAutoscaler hpa", "autoscaling/v2beta2 HorizontalPodAutoscaler hpa2")
	w.expectState(wl, 0, target.Absent, "")
	w.expectState(wl, 1, target.Absent, "")
	thaw := w.proxy.freeze("/horizontalpodautoscalers")
	for _, name := range []string{"hpa", "hpa2"} {
		w.create(`{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: ` + name + `, namespace: NS},
			spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}`)
	}
	w.expectStalls(1)
	thaw()
	for i := range wl.Resources {
		w.expectState(wl, i, target.Present, "")
		w.expectLives(wl.Resources[i].Ref, "[1]")
	}
	w.eventually("one watch", func() string {
		n, gauge := w.proxy.watches("/horizontalpodautoscalers"), w.gauge()
		return complain(n != 1 || gauge != 5, fmt.Sprintf("%d watches, the metric says %v", n, gauge))
	})
	w.expectStalls(0)
}

// A watch that lags for less than the tolerance has not stalled.
func TestInformers_DetectStalls_ToleratesLag(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shared.reader, quick())
	w.create(configMap("conf"))
	wl := w.track("wl", "v1 ConfigMap conf")
	w.expectLives(wl.Resources[0].Ref, "[1]")
	w.awaitSync()
	thaw := w.proxy.freeze("/configmaps")
	w.patch(w.parse(configMap("conf")), `{"data": {"key": "news"}}`)
	w.create(configMap("fresh"))
	time.AfterFunc(500*time.Millisecond, thaw)
	w.expectStalls(0)
}

// DetectStalls returns the errors of informers that it cannot compare, and does not restart them.
func TestInformers_DetectStalls_ReturnsErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shared.reader, quick())
	w.create(configMap("conf"))
	wl := w.track("wl", "v1 ConfigMap conf", "apps/v1 Deployment none")
	w.expectLives(wl.Resources[0].Ref, "[1]")
	w.expectState(wl, 1, target.Absent, "")
	w.awaitSync()
	w.proxy.failWith(func(r *http.Request) int {
		if strings.HasSuffix(r.URL.Path, "/configmaps") {
			return 500
		}
		return 0
	})
	if n, err := w.reporter.DetectStalls(w.ctx); n != 0 || err == nil || !strings.Contains(err.Error(), "configmaps") {
		t.Errorf("DetectStalls returns %d, %v while a list fails, want its error", n, err)
	}
	thaw := w.proxy.freeze("/deployments") // an independent watch
	defer thaw()
	w.create(deployment("none"))
	if n, err := w.reporter.DetectStalls(w.ctx); n != 1 || err == nil {
		t.Errorf("DetectStalls returns %d, %v, want one stalled watch and the error of the other", n, err)
	}
	w.expectLives(wl.Resources[1].Ref, "[1]")
	ctx, cancel := context.WithCancel(w.ctx)
	cancel()
	if n, err := w.reporter.DetectStalls(ctx); n != 0 || err == nil {
		t.Errorf("DetectStalls returns %d, %v after the end of its context, want its error", n, err)
	}
}

// DetectStalls finds no stall while thousands of Events are created, updated and deleted.
func TestInformers_DetectStalls_NoFalseStallUnderLoad(t *testing.T) {
	w := newWorld(t, shared.reader, quick())
	conf := w.create(configMap("conf"))
	wl := w.track("wl", "v1 ConfigMap conf")
	w.expectLives(wl.Resources[0].Ref, "[1]")
	config := shared.api.Config()
	config.QPS, config.ContentType = -1, "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	w.must(err)
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	var requests atomic.Int64
	var writers sync.WaitGroup
	for n := range 16 {
		writers.Go(func() {
			events := client.CoreV1().Events(w.namespace)
			for i := 0; ctx.Err() == nil; i++ {
				ev := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("e-%d-%d", n, i)}, Reason: "Churn"}
				ev.InvolvedObject = corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: w.namespace, Name: conf.GetName(), UID: conf.GetUID()}
				created, err := events.Create(ctx, ev, metav1.CreateOptions{})
				requests.Add(1)
				if err == nil && i%3 == 1 {
					created.Count = 2
					_, err = events.Update(ctx, created, metav1.UpdateOptions{})
					requests.Add(1)
				}
				if err == nil && i%2 == 1 {
					err = events.Delete(ctx, created.Name, metav1.DeleteOptions{})
					requests.Add(1)
				}
				if err != nil && ctx.Err() == nil {
					t.Error(err)
					return
				}
			}
		})
	}
	begin, audits := time.Now(), 0
	for ; time.Since(begin) < 6*time.Second; audits++ {
		w.expectStalls(0)
	}
	t.Logf("%d calls while %.0f requests a second changed Events", audits, float64(requests.Load())/time.Since(begin).Seconds())
	// To show that the check can fail: a frozen watch is detected.
	thaw := w.proxy.freeze("/events")
	defer thaw()
	w.eventually("the frozen watch is detected", func() string {
		n, err := w.reporter.DetectStalls(w.ctx)
		w.must(err)
		return complain(n != 1, fmt.Sprintf("DetectStalls returns %d", n))
	})
	cancel()
	writers.Wait()
}
