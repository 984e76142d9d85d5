package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/klauspost/compress/gzip"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/outbox"
	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/threeport"
)

func decode(t *testing.T, r *http.Request, body []byte) (set threeport.ReportSet) {
	t.Helper()
	var in io.Reader = bytes.NewReader(body)
	if r.Header.Get("Content-Encoding") == threeport.EncodingGzip {
		unzipped, err := gzip.NewReader(in)
		if err != nil {
			t.Error(err)
			return set
		}
		in = unzipped
	}
	if err := json.NewDecoder(in).Decode(&set); err != nil {
		t.Error(err)
	}
	return set
}

// negotiationBench is a NegotiatingSender with its outbox, a notifier and a control plane.
type negotiationBench struct {
	*bench
	t      *testing.T
	model  *model
	sender *NegotiatingSender
	signal chan struct{} // receives after each request to offer all reports again

	mu      sync.Mutex
	changes []bool           // the changes of the protocol: true for one to report sets
	again   []observe.Report // what is offered when all reports are asked for again
}

// quickIntervals are the defaults divided by 1000.
func quickIntervals() intervals {
	i := defaultIntervals()
	for _, d := range []*time.Duration{
		&i.tick, &i.reprobe, &i.retry, &i.maxRetry, &i.downgradeBackoff, &i.stable, &i.heartbeat, &i.recount,
	} {
		*d /= 1000
	}
	return i
}

func newNegotiationBench(t *testing.T, m *model, identify func(context.Context) (string, error)) *negotiationBench {
	t.Helper()
	return newBoundedNegotiationBench(t, m, identify, 0)
}

// newBoundedNegotiationBench bounds the Events in the outbox to a number of bytes; 0 for no bound.
func newBoundedNegotiationBench(
	t *testing.T, m *model, identify func(context.Context) (string, error), maxBytes int64,
) *negotiationBench {
	t.Helper()
	config := threeport.DefaultConfig()
	config.Server, config.AuthEnabled = m.url, false
	client, err := threeport.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	if identify == nil {
		identify = func(context.Context) (string, error) { return "cluster", nil }
	}
	backoff := outbox.Backoff{Base: time.Millisecond, Max: 5 * time.Millisecond}
	box := outbox.New(outbox.Config{Protocol: ProtocolV0, MaxBytes: maxBytes, Backoff: backoff}, nil)
	b := &negotiationBench{t: t, model: m, signal: make(chan struct{}, 1000)}
	info := AgentInfo{ClusterName: "home", Version: "v9", ClusterUID: identify}
	b.sender = NewNegotiatingSender(client, box, info, prometheus.NewRegistry(), funcr.New(b.recordChange, funcr.Options{}))
	b.sender.schedule.intervals = quickIntervals()
	b.bench = newBenchOn(DefaultConfig(), box, b.sender)
	return b
}

// recordChange reads the changes of the protocol from the log, in which each has a line.
func (b *negotiationBench) recordChange(_, line string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case strings.Contains(line, "no longer takes report sets"):
		b.changes = append(b.changes, false)
	case strings.Contains(line, "takes report sets"):
		b.changes = append(b.changes, true)
	}
}

// reoffer offers what a test wants to be offered again until the context ends.
func (b *negotiationBench) reoffer(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.box.Reoffer():
		}
		b.mu.Lock()
		again := slices.Clone(b.again)
		b.mu.Unlock()
		b.offer(again...)
		b.signal <- struct{}{}
	}
}

// run delivers until the function has returned, flushes, and waits for the model, which may still handle a cancelled
// request.
func (b *negotiationBench) run(during func()) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	var work sync.WaitGroup
	work.Go(func() { b.sender.Run(ctx) })
	work.Go(func() { b.reoffer(ctx) })
	stop := b.start(b.t)
	during()
	if err := stop(); err != nil {
		b.t.Error(err)
	}
	cancel()
	work.Wait()
	b.model.close()
}

// untilChanged waits for a change of the protocol.
func (b *negotiationBench) untilChanged() {
	b.t.Helper()
	select {
	case <-b.signal:
	case <-time.After(10 * time.Second):
		b.t.Fatal("the protocol does not change")
	}
}

// changed returns how often the protocol has changed.
func (b *negotiationBench) changed() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.changes)
}

func (b *negotiationBench) offer(reports ...observe.Report) {
	for _, r := range reports {
		b.box.Offer(r)
	}
}

func eventAt(uid, version string) observe.Event {
	return observe.Event{
		Workload: shop, UID: types.UID(uid), ResourceVersion: version, Type: "Normal", Reason: "r", Message: "message " + version,
		Involved: target.Ref{Kind: "Pod", Name: "web-1"}, Derived: true, Time: time.Unix(1, 0),
	}
}

func operationAt(resource int64, uid, version string) observe.Operation {
	ref := target.Ref{Kind: "ConfigMap", Namespace: "ns", Name: "conf"}
	return observe.Operation{
		Attribution: target.Attribution{Instance: shop, Listed: true, Resource: target.Resource{Ref: ref, Version: "v1", ID: resource}},
		Object:      target.Identity{Ref: ref, UID: types.UID(uid)}, ResourceVersion: version,
	}
}

func treeAt(revision int64) observe.Tree {
	return observe.Tree{Workload: shop, Revision: revision, Objects: []observe.TreeObject{
		{Object: target.Identity{Ref: target.Ref{Kind: "Pod", Name: "web-1"}, UID: "u"}, Health: "Healthy"},
	}}
}

func TestNegotiatingSender_ReportSets_HaveAllReports(t *testing.T) {
	m := newModel(t)
	b := newNegotiationBench(t, m, nil)
	b.run(func() {
		b.untilChanged()
		gone := operationAt(7, "gone", "")
		gone.Deleted = true
		gap := eventAt("gap", "3")
		gap.Dropped = &observe.DroppedRange{Normal: 3, First: time.Unix(1, 0), Last: time.Unix(2, 0)}
		b.offer(eventAt("a", "5"), gap, operationAt(0, "helm", "6"), gone, treeAt(1), observe.Event{UID: "u/app/3", Workload: shop, Time: time.Unix(1, 0)},
			observe.Status{Workload: shop, Status: "Down", Reason: "Absent", Cause: "because", Since: time.Unix(3, 0)})
	})
	versions := map[string]threeport.ID{}
	for _, set := range m.sets {
		if a := set.Agent; a.ClusterUID != "cluster" || a.ClusterName != "home" || a.Version != "v9" || a.Time.IsZero() {
			t.Errorf("the agent is %+v", a)
		}
		for _, r := range set.Reports {
			if r.Instance != (threeport.Instance{Type: threeport.TypeWorkloadInstance, ID: 1}) {
				t.Errorf("the report is of %+v", r.Instance)
			}
			switch {
			case r.Event != nil:
				versions[r.Event.UID] = r.Version
				if e := r.Event; e.UID == "a" && (e.Message != "message 5" || e.Involved.Name != "web-1") {
					t.Errorf("the Event is %+v", e)
				}
				if e := r.Event; e.UID == "gap" && (e.Gap == nil || e.Gap.Normal != 3) {
					t.Errorf("the gap is %+v", e)
				}
			case r.Operation != nil:
				versions[r.Operation.Object.UID] = r.Version
			case r.Status != nil:
				s := r.Status
				if s.Status != "Down" || s.Reason != "Absent" || s.Cause != "because" || s.Since.Unix() != 3 || s.Pending+s.Rejected+s.Dropped != 0 {
					t.Errorf("the status is %+v", s)
				}
				versions["status"] = r.Version
			case r.Tree != nil:
				if len(r.Tree.Objects) != 1 || r.Tree.Objects[0].Object.UID != "u" {
					t.Errorf("the tree is %+v", r.Tree)
				}
				versions["tree"] = r.Version
			}
		}
	}
	for uid, want := range map[string]threeport.ID{"a": 5, "gap": 3, "helm": 6, "gone": minVersion} {
		if versions[uid] != want {
			t.Errorf("the version of %s is %d, want %d", uid, versions[uid], want)
		}
	}
	for _, key := range []string{"status", "tree", "u/app/3"} {
		if at := time.UnixMicro(int64(versions[key])); time.Since(at) > time.Minute || time.Since(at) < 0 {
			t.Errorf("the version of the %s is %s", key, at)
		}
	}
	if len(m.singles) > 0 {
		t.Errorf("one by one came %q", m.singles)
	}
	if got := b.metric(t, "threeport_agent_reports_total", "tree", "accepted"); got != 1 {
		t.Errorf("%v trees are counted", got)
	}
}

func TestNegotiatingSender_V0_DropsReportsWithoutPlace(t *testing.T) {
	m := newModel(t)
	m.takes = func() bool { return false }
	b := newNegotiationBench(t, m, nil)
	b.run(func() { b.offer(eventAt("a", "1"), operationAt(0, "helm", "1"), treeAt(1), status(1, "Healthy")) })
	m.expectEvents(map[string]string{"a": "Pod web-1: message 1"})
	if want := []string{"PATCH /v0/workload-instances/1", "POST /v0/workload-events"}; !slices.Equal(slices.Sorted(slices.Values(m.sent())), want) {
		t.Errorf("sent was %q, want %q", m.sent(), want)
	}
}

func TestNegotiatingSender_ProtocolChanges_LoseNothing(t *testing.T) {
	m := newModel(t)
	var mu sync.Mutex
	takes := true
	set := func(v bool) { mu.Lock(); defer mu.Unlock(); takes = v }
	m.takes = func() bool { mu.Lock(); defer mu.Unlock(); return takes }
	b := newNegotiationBench(t, m, nil)
	b.sender.schedule.reprobe = 20 * time.Millisecond
	b.run(func() {
		b.untilChanged()
		b.offer(eventAt("a", "1"), operationAt(0, "helm", "1"), operationAt(7, "conf", "1"))
		b.untilDelivered()
		set(false)
		b.offer(treeAt(1), eventAt("a", "2"), eventAt("b", "1"))
		b.untilChanged()
		b.untilDelivered() // v0 has no place for the tree
		m.expectEvents(map[string]string{"a": "Pod web-1: message 2", "b": "Pod web-1: message 1"})
		b.offer(treeAt(2), operationAt(0, "helm", "2"))
		if got := b.box.Pending(); got != 0 {
			t.Errorf("%d are pending", got)
		}
		b.mu.Lock()
		b.again = []observe.Report{treeAt(2), operationAt(0, "helm", "2"), operationAt(7, "conf", "1")}
		b.mu.Unlock()
		set(true)
		b.untilChanged()
		b.offer(eventAt("b", "2"))
	})
	m.expectEvents(map[string]string{"a": "Pod web-1: message 2", "b": "message 2"})
	if !slices.Equal(b.changes, []bool{true, false, true}) {
		t.Errorf("the protocol changed to sets: %v", b.changes)
	}
	if m.versions["object/helm"] != 2 || m.versions["tree1"] == 0 {
		t.Errorf("the versions are %v", m.versions)
	}
	for _, path := range m.singles {
		if path == "PATCH /v0/workload-resource-instances/7" {
			t.Error("a settled operation is sent again")
		}
	}
}

func (b *negotiationBench) untilDelivered() {
	b.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); b.box.Pending() > 0; {
		if time.Now().After(deadline) {
			b.t.Fatalf("%d are left", b.box.Pending())
		}
		<-time.After(time.Millisecond)
	}
}

// Replicas with and without report sets answer in turn.
func TestNegotiatingSender_MixedReplicas_DowngradesBackOff(t *testing.T) {
	m := newModel(t)
	m.takes = func() bool { return rand.IntN(2) == 0 }
	b := newNegotiationBench(t, m, nil)
	b.sender.schedule.stable, b.sender.schedule.downgradeBackoff, b.sender.schedule.reprobe = time.Hour, 10*time.Millisecond, 40*time.Millisecond
	begin, n := time.Now(), 0
	want := map[string]string{}
	b.run(func() {
		for ; time.Since(begin) < 700*time.Millisecond; n++ {
			uid := "e" + strconv.Itoa(n)
			want[uid] = ""
			b.offer(eventAt(uid, "1"))
			b.untilDelivered()
		}
	})
	for _, e := range m.events {
		want[e.RuntimeEventUID] = e.Message // of either protocol
	}
	m.expectEvents(want)
	// 10, 20, and then 40 ms at least are between two beginnings: 18 of them are within 700 ms, and each has an end.
	if len(b.changes) < 3 || len(b.changes) > 40 {
		t.Errorf("the protocol changed %d times while %d Events came", len(b.changes), n)
	}
}

// Requests and answers are lost, and report sets come and go.
func TestNegotiatingSender_LostAnswers_CreateNoSecondRow(t *testing.T) {
	for _, mixed := range []bool{false, true} {
		t.Run(fmt.Sprintf("mixed protocols %t", mixed), func(t *testing.T) {
			seed := rand.Uint64()
			random := rand.New(rand.NewPCG(seed, 1))
			m := newModel(t)
			b := newNegotiationBench(t, m, nil)
			b.sender.schedule.downgradeBackoff, b.sender.schedule.reprobe = time.Millisecond, 5*time.Millisecond
			// Both are called with the model's mutex held.
			faulty := true
			m.takes = func() bool { return !faulty || !mixed || random.IntN(6) > 0 }
			m.cut = func() (int, bool) {
				if !faulty {
					return 1, true
				}
				arrives := 1
				if random.IntN(5) == 0 {
					arrives = 0
				} else if !mixed && random.IntN(5) == 0 {
					arrives = 2 // a packet that comes twice
				}
				return arrives, random.IntN(5) > 0
			}
			const events, leastVersions = 80, 15
			last := 0 // version
			b.run(func() {
				for begin := time.Now(); last < leastVersions || mixed && b.changed() < 3 && time.Since(begin) < 20*time.Second; {
					last++
					version := strconv.Itoa(last)
					for i := range events {
						b.offer(eventAt("e"+strconv.Itoa(i), version))
					}
					for resource := range int64(5) {
						b.offer(operationAt(resource+1, fmt.Sprint("o", resource), version))
					}
					b.offer(observe.Status{Workload: shop, Status: "Down", Cause: version})
					<-time.After(10 * time.Millisecond)
				}
				m.mu.Lock()
				faulty = false
				m.mu.Unlock()
				b.untilDelivered()
			})
			final := "message " + strconv.Itoa(last)
			want := map[string]string{}
			for i := range events {
				want["e"+strconv.Itoa(i)] = final
			}
			for _, e := range m.events {
				if e.Message == "Pod web-1: "+final {
					want[e.RuntimeEventUID] = e.Message
				}
			}
			m.expectEvents(want)
			if mixed && (len(b.changes) < 3 || len(m.singles) == 0) {
				t.Errorf("the protocol changed %d times", len(b.changes))
			}
			if !mixed && m.rows["status1"] != "Down "+strconv.Itoa(last) {
				t.Errorf("the status is %q", m.rows["status1"])
			}
			if t.Failed() {
				t.Logf("seed %d", seed)
			}
		})
	}
}

func TestNegotiatingSender_WithoutClusterUID_SendsV0(t *testing.T) {
	m := newModel(t)
	tries := make(chan struct{}, 100)
	n := 0
	b := newNegotiationBench(t, m, func(context.Context) (string, error) {
		tries <- struct{}{}
		if n++; n < 3 {
			return "", errors.New("forbidden")
		}
		return "cluster", nil
	})
	b.run(func() {
		<-tries
		b.offer(eventAt("a", "1"))
		b.untilDelivered()
		b.untilChanged()
		b.offer(eventAt("b", "1"))
	})
	if len(m.find(func(*modelEvent) bool { return true })) != 2 || len(m.sizes()) == 0 {
		t.Errorf("there are %d rows, and sets of %v", len(m.events), m.sizes())
	}
}

func TestNegotiatingSender_Idle_SendsHeartbeats(t *testing.T) {
	m := newModel(t)
	beats := make(chan threeport.Agent, 1000)
	m.refuse = func(_ http.ResponseWriter, set threeport.ReportSet, _ string) bool {
		if len(set.Reports) == 0 {
			beats <- set.Agent
		}
		return false
	}
	b := newNegotiationBench(t, m, nil)
	b.run(func() {
		b.untilChanged()
		for range 3 {
			if a := <-beats; a.ClusterUID != "cluster" || a.Pending != 0 || a.DelaySeconds != 0 {
				t.Errorf("heard is %+v", a)
			}
		}
	})
}

// An idle agent whose credentials are no longer valid says so once, and once when they are valid again.
func TestNegotiatingSender_HeartbeatRefused_IsLoggedOnce(t *testing.T) {
	m := newModel(t)
	beats := make(chan struct{}, 1000) // the accepted ones
	refused := 0
	m.refuse = func(rw http.ResponseWriter, _ threeport.ReportSet, _ string) bool { // called under the model's mutex
		if refused++; refused <= 3 {
			rw.WriteHeader(http.StatusUnauthorized)
			return true
		}
		beats <- struct{}{}
		return false
	}
	b := newNegotiationBench(t, m, nil)
	lines := make(chan string, 1000)
	b.sender.log = funcr.New(func(prefix, line string) {
		b.recordChange(prefix, line)
		if strings.Contains(line, "heartbeat") {
			lines <- line
		}
	}, funcr.Options{})
	b.run(func() {
		b.untilChanged()
		for _, want := range []string{"The heartbeat fails.", "The heartbeat succeeds again."} {
			if line := <-lines; !strings.Contains(line, want) {
				t.Errorf("logged %s, want %q", line, want)
			}
		}
		for range 3 { // further heartbeats log nothing
			<-beats
		}
	})
	if n := len(lines); n != 0 {
		t.Errorf("%d more lines about heartbeats were logged, want none", n)
	}
}

// A heartbeat says that the last statuses still hold. An agent knows that once it has listed its objects.
func TestNegotiatingSender_Heartbeat_WaitsUntilReady(t *testing.T) {
	m := newModel(t)
	var ready atomic.Bool
	beats := make(chan bool, 1000) // whether the agent was ready
	m.refuse = func(_ http.ResponseWriter, set threeport.ReportSet, _ string) bool {
		if len(set.Reports) == 0 {
			beats <- ready.Load()
		}
		return false
	}
	b := newNegotiationBench(t, m, nil)
	asked := make(chan struct{}, 1000)
	b.sender.agent.info.Ready = func() bool { asked <- struct{}{}; return ready.Load() }
	b.run(func() {
		b.untilChanged()
		for range 10 {
			<-asked
		}
		ready.Store(true)
		for range 3 {
			if !<-beats {
				t.Error("there was a heartbeat before the agent was ready")
			}
		}
	})
}
