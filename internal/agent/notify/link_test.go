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
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
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

// linkBench is a link with all that it works on.
type linkBench struct {
	*bench
	t     *testing.T
	model *model
	link  *Link

	mu      sync.Mutex
	changes []bool
	signal  chan struct{}
	again   []observe.Report // what is offered anew when the way changes
}

// quickRhythm is the default a thousand times as quick.
func quickRhythm() rhythm {
	r := defaultRhythm()
	for _, d := range []*time.Duration{&r.tick, &r.look, &r.again, &r.slowest, &r.calm, &r.steady, &r.beat} {
		*d /= 1000
	}
	return r
}

func newLinkBench(t *testing.T, m *model, identify func(context.Context) (string, error)) *linkBench {
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
	link := NewLink(client, AgentInfo{ClusterName: "home", Version: "v9", ClusterUID: identify}, NewLinkMetrics(prometheus.NewRegistry()), logr.Discard())
	link.rhythm = quickRhythm()
	box := outbox.Config{Supports: link.Supports, Backoff: outbox.Backoff{Base: time.Millisecond, Max: 5 * time.Millisecond}}
	b := &linkBench{bench: newBenchWith(DefaultConfig(), box, link), t: t, model: m, link: link, signal: make(chan struct{}, 1000)}
	link.Attach(b.box, func(sets bool) {
		b.mu.Lock()
		b.changes = append(b.changes, sets)
		again := slices.Clone(b.again)
		b.mu.Unlock()
		for _, r := range again {
			b.box.Offer(r)
		}
		b.signal <- struct{}{}
	})
	return b
}

// run delivers until the function has returned, flushes, and waits for the model: a request that was cancelled may still
// be on its way through it.
func (b *linkBench) run(during func()) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	var work sync.WaitGroup
	work.Go(func() { _ = b.link.Run(ctx) })
	stop := b.start(b.t)
	during()
	if err := stop(); err != nil {
		b.t.Error(err)
	}
	cancel()
	work.Wait()
	b.model.close()
}

// untilChanged waits for the way to change.
func (b *linkBench) untilChanged() {
	b.t.Helper()
	select {
	case <-b.signal:
	case <-time.After(10 * time.Second):
		b.t.Fatal("the way does not change")
	}
}

// changed returns how often the way changed.
func (b *linkBench) changed() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.changes)
}

func (b *linkBench) offer(reports ...observe.Report) {
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

func treeAt(edition int64) observe.Tree {
	return observe.Tree{Workload: shop, Edition: edition, Objects: func() []observe.TreeObject {
		return []observe.TreeObject{{Object: target.Identity{Ref: target.Ref{Kind: "Pod", Name: "web-1"}, UID: "u"}, Health: "Healthy"}}
	}}
}

func TestSetsCarryAllThatIsOffered(t *testing.T) {
	m := newModel(t)
	b := newLinkBench(t, m, nil)
	b.run(func() {
		b.untilChanged()
		gone := operationAt(7, "gone", "")
		gone.Deleted = true
		gap := eventAt("gap", "3")
		gap.Dropped = &observe.DroppedRange{Normal: 3, First: time.Unix(1, 0), Last: time.Unix(2, 0)}
		b.offer(eventAt("a", "5"), gap, operationAt(0, "helm", "6"), gone, treeAt(1), observe.Event{UID: "u/app/3", Workload: shop, Time: time.Unix(1, 0)},
			observe.Status{Workload: shop, Status: "Down", Round: 1, Reason: "Absent", Cause: "because", Since: time.Unix(3, 0), DeliveryCounts: observe.DeliveryCounts{Dropped: 4}})
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
				if s.Status != "Down" || s.Reason != "Absent" || s.Cause != "because" || s.Since.Unix() != 3 || s.Dropped != 4 {
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
	for uid, want := range map[string]threeport.ID{"a": 5, "gap": 3, "helm": 6, "gone": leastVersion} {
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

func TestAControlPlaneOfV0GetsWhatItHasAPlaceFor(t *testing.T) {
	m := newModel(t)
	m.takes = func() bool { return false }
	b := newLinkBench(t, m, nil)
	b.run(func() { b.offer(eventAt("a", "1"), operationAt(0, "helm", "1"), treeAt(1), status(1, "Healthy")) })
	m.expectEvents(map[string]string{"a": "Pod web-1: message 1"})
	if want := []string{"PATCH /v0/workload-instances/1", "POST /v0/workload-events"}; !slices.Equal(slices.Sorted(slices.Values(m.sent())), want) {
		t.Errorf("sent was %q, want %q", m.sent(), want)
	}
}

// A server that forgets sets, and learns them again: nothing is lost, and no Event gets a second row.
func TestTheWayChanges(t *testing.T) {
	m := newModel(t)
	var mu sync.Mutex
	takes := true
	set := func(v bool) { mu.Lock(); defer mu.Unlock(); takes = v }
	m.takes = func() bool { mu.Lock(); defer mu.Unlock(); return takes }
	b := newLinkBench(t, m, nil)
	b.link.rhythm.look = 20 * time.Millisecond
	b.run(func() {
		b.untilChanged()
		b.offer(eventAt("a", "1"), operationAt(0, "helm", "1"), operationAt(7, "conf", "1"))
		b.untilDelivered()
		set(false)
		b.offer(treeAt(1), eventAt("a", "2"), eventAt("b", "1"))
		b.untilChanged()
		b.untilDelivered() // the tree has no place any more
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
		t.Errorf("the way changed to %v", b.changes)
	}
	if m.versions["object/helm"] != 2 || m.versions["tree1"] == 0 {
		t.Errorf("the versions are %v", m.versions)
	}
	for _, path := range m.singles {
		if path == "PATCH /v0/workload-resource-instances/7" {
			t.Error("an operation that was settled is told again")
		}
	}
}

func (b *linkBench) untilDelivered() {
	b.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); b.box.Pending() > 0; {
		if time.Now().After(deadline) {
			b.t.Fatalf("%d are left", b.box.Pending())
		}
		<-time.After(time.Millisecond)
	}
}

// While replicas of both kinds answer in turns the way does not change with each.
func TestAMixedFleetIsNoStorm(t *testing.T) {
	m := newModel(t)
	m.takes = func() bool { return rand.IntN(2) == 0 }
	b := newLinkBench(t, m, nil)
	b.link.rhythm.steady, b.link.rhythm.calm, b.link.rhythm.look = time.Hour, 10*time.Millisecond, 40*time.Millisecond
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
		want[e.RuntimeEventUID] = e.Message // in which way it went does not matter
	}
	m.expectEvents(want)
	// 10, 20, and then 40 ms at least are between two beginnings: 18 of them are within 700 ms, and each has an end.
	if len(b.changes) < 3 || len(b.changes) > 40 {
		t.Errorf("the way changed %d times while %d Events came", len(b.changes), n)
	}
}

// Requests and answers are lost, and the server changes its mind all the time.
func TestWhateverIsLostNothingIsDoubled(t *testing.T) {
	for _, mixed := range []bool{false, true} {
		t.Run(fmt.Sprintf("both ways %t", mixed), func(t *testing.T) {
			seed := rand.Uint64()
			random := rand.New(rand.NewPCG(seed, 1))
			m := newModel(t)
			b := newLinkBench(t, m, nil)
			b.link.rhythm.calm, b.link.rhythm.look = time.Millisecond, 5*time.Millisecond
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
					b.offer(observe.Status{Workload: shop, Status: "Down", Round: 1, Cause: version})
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
				t.Errorf("the way changed %d times", len(b.changes))
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

func TestTheClusterHasToBeKnown(t *testing.T) {
	m := newModel(t)
	tries := make(chan struct{}, 100)
	n := 0
	b := newLinkBench(t, m, func(context.Context) (string, error) {
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

func TestAnIdleAgentIsHeard(t *testing.T) {
	m := newModel(t)
	beats := make(chan threeport.Agent, 1000)
	m.refuse = func(_ http.ResponseWriter, set threeport.ReportSet, _ string) bool {
		if len(set.Reports) == 0 {
			beats <- set.Agent
		}
		return false
	}
	b := newLinkBench(t, m, nil)
	b.run(func() {
		b.untilChanged()
		for range 3 {
			if a := <-beats; a.ClusterUID != "cluster" || a.Pending != 0 || a.DelaySeconds != 0 {
				t.Errorf("heard is %+v", a)
			}
		}
	})
}
