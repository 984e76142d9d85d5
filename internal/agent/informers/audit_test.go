package informers

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

// stalls returns how many informers of a resource were restarted, by the watcher's metrics.
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

// awaitSync waits until everything has been seen for the first time, and every informer works.
func (w *world) awaitSync() {
	w.Helper()
	w.eventually("every informer to work", func() string {
		all := w.watcher.pool.all(func(*informer) bool { return true })
		works := w.watcher.pool.all((*informer).works)
		return complain(len(works) < len(all) || !w.watcher.Ready(), fmt.Sprintf("%d of %d do", len(works), len(all)))
	})
}

// expectAudit audits once everything works.
func (w *world) expectAudit(stalled int) {
	w.Helper()
	w.awaitSync()
	if got, err := w.watcher.DetectStalls(w.ctx); got != stalled || err != nil {
		w.Errorf("the audit says %d, %v, expected %d stalled informers", got, err, stalled)
	}
}

// A watch that is open, and tells nothing, is found out by what it does not tell of, whatever that is.
func TestStalledWatchBeginsAgain(t *testing.T) {
	for reason, c := range map[string]struct {
		change func(*world)
		lives  []string // of the ConfigMaps changed, gone, again, fresh, same
	}{
		"an object is changed": {
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
			w.expectAudit(0)
			thaw := w.proxy.freeze("/configmaps")
			defer thaw()
			before := len(w.sink.operations(wl.Resources[0].Ref))
			c.change(w)
			w.expectAudit(1)
			if got := w.stalls("configmaps"); got != 1 {
				t.Errorf("the metric says %v, expected 1", got)
			}
			for i, want := range c.lives {
				w.expectLives(wl.Resources[i].Ref, want)
			}
			if reason == "an object is changed" {
				w.eventually("the change to be offered", func() string {
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

// Two kinds that are served as one resource share its informer, and both go on.
func TestStalledWatchOfTwoKinds(t *testing.T) {
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
	w.expectAudit(1)
	thaw()
	for i := range wl.Resources {
		w.expectState(wl, i, target.Present, "")
		w.expectLives(wl.Resources[i].Ref, "[1]")
	}
	w.eventually("one watch", func() string {
		n, gauge := w.proxy.watches("/horizontalpodautoscalers"), w.gauge()
		return complain(n != 1 || gauge != 5, fmt.Sprintf("%d watches, the metric says %v", n, gauge))
	})
	w.expectAudit(0)
}

// A watch that is slow, by less than the grace, has not stalled, nor has one that catches up when it is looked at.
func TestSlowWatchHasNotStalled(t *testing.T) {
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
	w.expectAudit(0)
}

// An informer with an error is client-go's to mend, and one that cannot be compared is said to be so.
func TestAuditOfWhatFails(t *testing.T) {
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
	if n, err := w.watcher.DetectStalls(w.ctx); n != 0 || err == nil || !strings.Contains(err.Error(), "configmaps") {
		t.Errorf("the audit says %d, %v while a list fails, expected its error", n, err)
	}
	thaw := w.proxy.freeze("/deployments") // and that concerns no other
	defer thaw()
	w.create(deployment("none"))
	if n, err := w.watcher.DetectStalls(w.ctx); n != 1 || err == nil {
		t.Errorf("the audit says %d, %v, expected the stalled watch and the error of the other", n, err)
	}
	w.expectLives(wl.Resources[1].Ref, "[1]")
	ctx, cancel := context.WithCancel(w.ctx)
	cancel()
	if n, err := w.watcher.DetectStalls(ctx); n != 0 || err == nil {
		t.Errorf("the audit says %d, %v after its context's end, expected the error", n, err)
	}
}

// While thousands of Events and ConfigMaps are created, repeated and deleted no watch has stalled.
func TestNothingHasStalledUnderChurn(t *testing.T) {
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
		w.expectAudit(0)
	}
	t.Logf("%d audits while %.0f requests a second changed Events", audits, float64(requests.Load())/time.Since(begin).Seconds())
	// A check that cannot fail is none: the same with a watch that is frozen.
	thaw := w.proxy.freeze("/events")
	defer thaw()
	w.eventually("the frozen watch to be found", func() string {
		n, err := w.watcher.DetectStalls(w.ctx)
		w.must(err)
		return complain(n != 1, fmt.Sprintf("the audit says %d", n))
	})
	cancel()
	writers.Wait()
}
