package faults

import (
	"context"
	"flag"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/threeport/threeport-agent/internal/e2e/etcd"
	"github.com/threeport/threeport-agent/internal/e2e/world"
)

const (
	floodRate    = 2000 // Events a second
	floodLasts   = 30 * time.Second
	floodClients = 4 // connections
	floodWriters = 8 // of each

	floodPatience = 5 * time.Minute // only means that something hangs
)

// The API server gets 2,000 Events a second for 30 s, or as many as it accepts. The agent falls behind and catches up. No
// other test runs at the same time.
func TestEvents_Flood(t *testing.T) {
	w := newWorldOn(t, ownCluster(t))
	w.start()
	objects := w.deployWeb()
	w.awaitAgreement()
	before := w.reported()

	begin := time.Now()
	n := w.flood(floodLasts, floodRate*int(floodLasts.Seconds()), func(i int) *corev1.Event {
		return newEvent(objects[i%len(objects)], fmt.Sprintf("flood-%d", i), corev1.EventTypeNormal, begin)
	})
	wrote := time.Since(begin)
	t.Logf("the test wrote %d Events in %s, %.0f a second of %d; the oracle had observed %d by then, and the agent had reported %d",
		n, wrote.Round(100*time.Millisecond), float64(n)/wrote.Seconds(), floodRate, w.Oracle.EventCount(), w.reported()-before)
	dropped := w.expectReports(floodPatience, before+n)
	took := time.Since(begin)
	t.Logf("the agent dropped %d, and reported the others %s after the last was written, %.0f a second",
		dropped, (took - wrote).Round(100*time.Millisecond), float64(n-dropped)/took.Seconds())
	w.awaitAgreement()
}

// burst is the number of Events of TestEvents_Burst; 60,000 are 30 s at floodRate.
var burst = flag.Int("burst", 4000, "`number` of Events that come at once")

// The agent is disconnected from the API server while Events are written, and then receives all of them at once.
func TestEvents_Burst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	objects := w.deployWeb()
	w.awaitAgreement()
	before := w.reported()
	w.toCluster.down()
	begin := time.Now()
	n := w.flood(floodPatience, *burst, func(i int) *corev1.Event {
		return newEvent(objects[i%len(objects)], fmt.Sprintf("burst-%d", i), corev1.EventTypeNormal, begin)
	})
	wrote := time.Since(begin)
	w.toCluster.up()
	begin = time.Now()
	w.expectReports(floodPatience, before+n/100)
	pending := time.Since(begin)
	dropped := w.expectReports(floodPatience, before+n)
	took := time.Since(begin)
	t.Logf("%d Events were written in %s. The agent reported the first %s after it could read them. It dropped %d and reported the others within %s, %.0f a second",
		n, wrote.Round(time.Second), pending.Round(100*time.Millisecond), dropped, took.Round(100*time.Millisecond), float64(n-dropped)/(took-pending).Seconds())
	w.awaitAgreement()
}

// reported returns the number of accepted writes.
func (w *faultWorld) reported() int { return len(w.proxy.Accepted()) }

// expectReports waits until n reports were accepted or dropped because of --state-max-bytes, and returns the number of dropped
// ones.
func (w *faultWorld) expectReports(within time.Duration, n int) (dropped int) {
	w.Helper()
	var measured time.Time
	w.EventuallyWithin(within, fmt.Sprintf("%d reports", n), func() error {
		select {
		case <-w.agent.Done():
			w.Fatalf("the agent ended:\n%s", world.End(w.agent.Output(), 1000))
		default:
		}
		got := w.reported()
		if got < n && time.Since(measured) > time.Second {
			measured = time.Now()
			if count, err := w.agent.Metric(w.Ctx, "threeport_agent_events_dropped_total"); err == nil {
				dropped = int(count)
			}
		}
		if got+dropped < n {
			return fmt.Errorf("the control plane accepted %d, and the agent dropped %d Events", got, dropped)
		}
		return nil
	})
	return dropped
}

// create stores a new Event.
type create func(context.Context, *corev1.Event) error

// creator returns a function that creates Events through the API server on a separate connection. With -as-shipped it writes
// to etcd, which reaches floodRate.
func (w *faultWorld) creator() create {
	w.Helper()
	if *asShipped {
		client, err := etcd.New(w.Cluster.Dir())
		w.Must(err)
		w.Cleanup(client.Close)
		return func(ctx context.Context, ev *corev1.Event) error {
			ev.APIVersion, ev.Kind = "v1", "Event"
			ev.UID, ev.CreationTimestamp = uuid.NewUUID(), metav1.NewTime(time.Now().Truncate(time.Second))
			return client.Put(ctx, "events/"+ev.Namespace+"/"+ev.Name, ev)
		}
	}
	config := rest.CopyConfig(w.Cluster.Config())
	config.ContentType, config.QPS = runtime.ContentTypeProtobuf, -1
	config.Dial = new(net.Dialer).DialContext // of its own, and so a connection of its own
	client, err := kubernetes.NewForConfig(config)
	w.Must(err)
	return func(ctx context.Context, ev *corev1.Event) error {
		_, err := client.CoreV1().Events(ev.Namespace).Create(ctx, ev, metav1.CreateOptions{})
		return err
	}
}

// flood creates up to n Events at floodRate or slower within a time limit, and returns their number.
func (w *faultWorld) flood(within time.Duration, n int, event func(int) *corev1.Event) int {
	w.Helper()
	var next, written atomic.Int64
	begin := time.Now()
	over := begin.Add(within)
	var writers sync.WaitGroup
	for range floodClients {
		create := w.creator()
		for range floodWriters {
			writers.Go(func() {
				for {
					i := int(next.Add(1)) - 1
					if i >= n || time.Now().After(over) {
						return
					}
					due := time.NewTimer(time.Until(begin.Add(time.Duration(i) * time.Second / floodRate)))
					select {
					case <-due.C:
					case <-w.Ctx.Done():
						return
					}
					if err := create(w.Ctx, event(i)); err == nil {
						written.Add(1)
					}
				}
			})
		}
	}
	writers.Wait()
	return int(written.Load())
}

// With limited state, the agent drops the oldest Events while the control plane is down, and reports their number.
func TestEvents_QueueFull_CountsDropped(t *testing.T) {
	t.Parallel()
	w := newWorldWithoutAgent(t)
	w.start("--state-max-bytes=1048576")
	d := w.deploy("web", world.ConfigMap("conf"), world.ConfigMap("more"))
	w.awaitAgreement()
	w.toAPI.down()
	about := w.Get(d.Objects[0])
	begin := time.Now()
	// 4,000 Events are more than twice the limit of the state; a busy API server may be slow or reject some.
	n := w.flood(floodPatience, 4000, func(i int) *corev1.Event {
		eventType := corev1.EventTypeNormal
		if i%4 == 0 {
			eventType = corev1.EventTypeWarning
		}
		return newEvent(about, fmt.Sprintf("many-%d", i), eventType, begin)
	})
	w.Eventually("the oracle to observe all Events", func() error {
		if got := w.Oracle.EventCount(); got < n {
			return fmt.Errorf("the oracle observed %d of %d", got, n)
		}
		return nil
	})
	changed := w.change(d.Objects[1])
	w.Pause(3 * time.Second)
	w.toAPI.up()
	// Operations and statuses are never dropped.
	w.Eventually("the change during the outage", func() error { return w.expectVersion(1, changed.GetResourceVersion()) })
	w.awaitAgreement()
	rows, err := w.Upstream.API.Events(w.Ctx, nil)
	w.Must(err)
	if len(rows) >= n {
		t.Errorf("%d rows for %d Events: the agent dropped none, want some, because its state is limited", len(rows), n)
	}
	t.Logf("of %d Events %d became rows", n, len(rows))
	if size := sizeOf(w.state); size > 8<<20 {
		t.Errorf("the state has %d KiB, want at most 1024", size>>10)
	}
}
