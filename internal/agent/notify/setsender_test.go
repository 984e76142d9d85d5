package notify

import (
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/outbox"
	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/threeport"
)

func TestSetSender_EachAnswerSettlesItsReport(t *testing.T) {
	m := newModel(t)
	var assigned atomic.Bool
	problem := func(code string) threeport.ReportAnswer {
		return threeport.ReportAnswer{Outcome: threeport.OutcomeRejected, Problem: &threeport.ReportProblem{Code: code, Detail: "no"}}
	}
	m.verdict = func(r threeport.Report) threeport.ReportAnswer {
		if r.Event == nil {
			return threeport.ReportAnswer{}
		}
		switch r.Event.UID {
		case "stale":
			return threeport.ReportAnswer{Outcome: threeport.OutcomeStale, Version: 99}
		case "unchanged":
			return threeport.ReportAnswer{Outcome: threeport.OutcomeUnchanged}
		case "gone":
			return problem(threeport.ProblemNotFound)
		case "bad":
			return problem(threeport.ProblemInvalid)
		case "another's":
			if !assigned.Swap(true) { // the administrator assigns the instance after the first try
				return problem(threeport.ProblemForbidden)
			}
		}
		return threeport.ReportAnswer{}
	}
	b := newNegotiationBench(t, m, nil)
	b.run(func() {
		b.untilChanged()
		b.offer(status(1, "Healthy")) // the control plane knows the instance, so a row that is not found was removed
		for b.box.Pending() > 0 {
			runtime.Gosched()
		}
		for _, uid := range []string{"fine", "stale", "unchanged", "gone", "bad", "another's"} {
			b.offer(eventAt(uid, "1"))
		}
		bad := eventAt("no time", "1")
		bad.Time = time.Time{}
		b.offer(bad)
		for b.box.Pending() > 0 { // a refused report is not sent again after the end
			runtime.Gosched()
		}
	})
	for result, want := range map[string]float64{"accepted": 4, "gone": 1, "rejected": 2, "not_assigned": 1} {
		if got := b.metric(t, "threeport_agent_reports_total", "event", result); got != want {
			t.Errorf("%v are %s, want %v", got, result, want)
		}
	}
	if got := b.box.DeadLetters(); got != 2 {
		t.Errorf("%d dead letters", got)
	}
	if row := m.find(func(e *modelEvent) bool { return e.RuntimeEventUID == "fine" }); len(row) != 1 {
		t.Errorf("the accepted Event has %d rows, want 1", len(row))
	}
}

// The clock of an earlier agent was ahead.
func TestSetSender_StaleLocalVersion_AdvancesTheClock(t *testing.T) {
	m := newModel(t)
	ahead := threeport.ID(time.Now().Add(24 * time.Hour).UnixMicro())
	m.versions["status1"], m.versions["tree1"] = ahead, ahead
	b := newNegotiationBench(t, m, nil)
	b.run(func() {
		b.untilChanged()
		b.offer(observe.Status{Workload: shop, Status: "Down"}, treeAt(1))
	})
	if m.rows["status1"] != "Down " || m.versions["status1"] <= ahead || m.versions["tree1"] <= ahead {
		t.Errorf("the status is %q, the versions are %v", m.rows["status1"], m.versions)
	}
	if got := b.metric(t, "threeport_agent_reports_total", "status", "retried"); got != 0 {
		t.Errorf("%v were retried", got)
	}
}

func TestClock_Advance_IgnoresAbsurdVersions(t *testing.T) {
	var c clock
	c.advance(1<<63 - 1)
	if at := time.UnixMicro(int64(c.next())); time.Since(at) > time.Minute {
		t.Errorf("it is %s", at)
	}
	last := c.next()
	c.advance(last + 1e9)
	if a, b := c.next(), c.next(); a != last+1e9+1 || b != a+1 {
		t.Errorf("after %d came %d and %d", last, a, b)
	}
}

// tooLarge answers as a proxy does.
func tooLarge(w http.ResponseWriter) { w.WriteHeader(http.StatusRequestEntityTooLarge) }

// refuseFields answers as a control plane that does not know a field.
func refuseFields(w http.ResponseWriter) {
	w.WriteHeader(http.StatusUnprocessableEntity)
	_, _ = fmt.Fprint(w, `{"title":"Unprocessable Entity","status":422,"detail":"unknown field"}`)
}

func TestSetSender_RefusedSet_IsHalved(t *testing.T) {
	for _, tc := range []struct {
		reason   string
		answer   func(http.ResponseWriter)
		refused  func(set threeport.ReportSet) bool
		rejected int
	}{
		{"too large", tooLarge, func(set threeport.ReportSet) bool { return len(set.Reports) > 5 }, 0},
		{"one of them is too large by itself", tooLarge, poisoned, 1},
		{"one of them is more than the server understands", refuseFields, poisoned, 1},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			m := newModel(t)
			m.refuse = func(w http.ResponseWriter, set threeport.ReportSet, _ string) bool {
				if tc.refused(set) {
					tc.answer(w)
				}
				return tc.refused(set)
			}
			b := newNegotiationBench(t, m, nil)
			want := map[string]string{}
			for i := range 100 {
				uid := fmt.Sprint("e", i)
				want[uid] = "message 1"
			}
			b.run(func() {
				b.untilChanged()
				b.offer(eventAt("poison", "1"))
				for uid := range want {
					b.offer(eventAt(uid, "1"))
				}
			})
			if tc.rejected == 0 {
				want["poison"] = "message 1"
			}
			m.expectEvents(want)
			if got := b.box.DeadLetters(); got != tc.rejected {
				t.Errorf("%d dead letters, want %d", got, tc.rejected)
			}
		})
	}
}

// strict refuses the facts and starts of objects unless the model offers them, as a control plane does with unknown fields.
func (m *model) strict(w http.ResponseWriter, set threeport.ReportSet, _ string) bool {
	for _, r := range set.Reports {
		for i := 0; r.Tree != nil && i < len(r.Tree.Objects); i++ {
			if o := r.Tree.Objects[i]; (o.Pod != nil || o.Since != nil) && m.offers() == "null" {
				refuseFields(w)
				return true
			}
		}
	}
	return false
}

// treeWithPods is a tree of a workload with a Pod and its facts.
func treeWithPods(id, revision int64) observe.Tree {
	tree := treeAt(revision)
	tree.Workload.ID = id
	tree.Objects[0].Since = time.Unix(5, 0)
	tree.Objects[0].Pod = &observe.PodFacts{Node: "node-1", Containers: []observe.ContainerFacts{{
		Name: "app", Image: "shop:1", State: "Waiting", Reason: "CrashLoopBackOff", Restarts: 4,
		LastExit: observe.ContainerExit{Known: true, Code: 137, Reason: "OOMKilled", At: time.Unix(7, 0)},
	}}}
	return tree
}

// The control plane is of this release, of an earlier one, and is replaced by the other while the agent runs.
func TestSetSender_PodFacts_OnlyIfOffered(t *testing.T) {
	const offered, unknown = `["other","pods"]`, "null"
	for _, tc := range []struct {
		reason        string
		before, after string // the features of the control plane
		want          []int  // the Pods with facts in each tree
		refused       int
	}{
		{"this release", offered, offered, []int{1, 1}, 0},
		{"an earlier release", unknown, unknown, []int{0, 0}, 0},
		{"an upgrade", unknown, offered, []int{0, 1}, 0},
		{"a rollback is noticed when a tree is refused", offered, unknown, []int{1, 0}, 1},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			m := newModel(t)
			features, refused, asked := tc.before, 0, make(chan string, 1000)
			m.offers = func() string {
				asked <- features
				return features
			}
			m.refuse = func(w http.ResponseWriter, set threeport.ReportSet, encoding string) bool {
				no := m.strict(w, set, encoding)
				if no {
					refused++
				}
				return no
			}
			b := newNegotiationBench(t, m, nil)
			b.sender.schedule.reprobe = time.Hour
			if tc.before == unknown && tc.after == offered {
				b.sender.schedule.reprobe = time.Millisecond
			}
			b.run(func() {
				b.untilChanged()
				b.offer(treeWithPods(1, 1))
				b.untilDelivered()
				m.mu.Lock()
				features = tc.after
				m.mu.Unlock()
				if tc.before == unknown && tc.after == offered {
					hangs := time.After(time.Minute)
					for len(b.sender.sets.accepted()) == 0 {
						select {
						case <-asked:
						case <-hangs:
							t.Fatal("the agent does not learn of the upgrade")
						}
					}
				}
				b.offer(treeWithPods(1, 2))
			})
			if got := m.pods(); !slices.Equal(got, tc.want) {
				t.Errorf("the trees have facts of %v Pods, want %v", got, tc.want)
			}
			if refused != tc.refused || b.box.DeadLetters() != 0 {
				t.Errorf("%d sets were refused, and %d reports are dead letters; want %d and none", refused, b.box.DeadLetters(), tc.refused)
			}
		})
	}
}

// A tree that is too large with the facts of its Pods is sent without them. Other trees keep theirs.
func TestSetSender_PodFactsTooLarge_AreLeftOut(t *testing.T) {
	m := newModel(t)
	m.offers = func() string { return `["pods"]` }
	m.refuse = func(w http.ResponseWriter, set threeport.ReportSet, _ string) bool {
		for _, r := range set.Reports {
			if r.Tree != nil && r.Instance.ID == 1 && r.Tree.Objects[0].Pod != nil {
				w.WriteHeader(http.StatusRequestEntityTooLarge)
				return true
			}
		}
		return false
	}
	b := newNegotiationBench(t, m, nil)
	b.run(func() {
		b.untilChanged()
		b.offer(treeWithPods(1, 1))
		b.untilDelivered()
		b.offer(treeWithPods(2, 1))
	})
	if got := m.pods(); !slices.Equal(got, []int{0, 1}) || b.box.DeadLetters() != 0 {
		t.Errorf("the trees have facts of %v Pods, want [0 1]; %d reports are dead letters", got, b.box.DeadLetters())
	}
}

func poisoned(set threeport.ReportSet) bool {
	return slices.ContainsFunc(set.Reports, func(r threeport.Report) bool { return r.Event != nil && r.Event.UID == "poison" })
}

// The server fails at one report, and does not say which.
func TestSetSender_PoisonReport_HoldsUpNoOther(t *testing.T) {
	m := newModel(t)
	var cured atomic.Bool
	m.refuse = func(w http.ResponseWriter, set threeport.ReportSet, _ string) bool {
		if poisoned(set) && !cured.Load() {
			w.WriteHeader(http.StatusInternalServerError)
			return true
		}
		return false
	}
	b := newNegotiationBench(t, m, nil)
	want := map[string]string{"poison": "message 1"}
	b.run(func() {
		b.untilChanged()
		b.offer(eventAt("poison", "1"))
		for i := range 200 {
			uid := fmt.Sprint("e", i)
			want[uid] = "message 1"
			b.offer(eventAt(uid, "1"))
		}
		for deadline := time.Now().Add(20 * time.Second); b.box.Pending() > 1; <-time.After(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%d are left", b.box.Pending())
			}
		}
		cured.Store(true)
	})
	m.expectEvents(want)
}

func TestSetSender_UnsupportedEncoding_IsOmitted(t *testing.T) {
	m := newModel(t)
	var encoded int
	m.refuse = func(w http.ResponseWriter, _ threeport.ReportSet, encoding string) bool {
		if encoding != "" {
			encoded++
			w.WriteHeader(http.StatusUnsupportedMediaType)
		}
		return encoding != ""
	}
	b := newNegotiationBench(t, m, nil)
	long := eventAt("a", "1")
	long.Message = strings.Repeat("again ", 1000)
	longer := long
	longer.ResourceVersion = "2"
	b.run(func() {
		b.untilChanged()
		b.offer(long)
		b.untilDelivered()
		b.offer(longer)
	})
	m.expectEvents(map[string]string{"a": long.Message})
	if encoded != 1 {
		t.Errorf("%d sets were encoded", encoded)
	}
}

// The first report is sent at once. Reports that gather meanwhile are sent together.
func TestSetSender_GatheredReports_ShareASet(t *testing.T) {
	m := newModel(t)
	b := newNegotiationBench(t, m, nil)
	want := map[string]string{}
	b.run(func() {
		b.untilChanged()
		for i := range 2000 {
			uid := fmt.Sprint("e", i)
			want[uid] = "message 1"
			b.offer(eventAt(uid, "1"))
		}
	})
	m.expectEvents(want)
	if sizes := m.sizes(); len(sizes) > 400 || slices.Max(sizes) > 40 {
		t.Errorf("%d sets, the largest with %d reports", len(sizes), slices.Max(sizes))
	}
}

// A row that somebody changed is overwritten, although the control plane has its version. The row of an object that is known
// only from that row is overwritten too.
func TestSetSender_Repair_OverwritesTheRow(t *testing.T) {
	m := newModel(t)
	b := newNegotiationBench(t, m, nil)
	op := operationAt(7, "conf", "5")
	nameless := operationAt(8, "", "")
	nameless.Deleted = true
	b.run(func() {
		b.untilChanged()
		b.offer(eventAt("a", "1"), op)
		b.untilDelivered()
		m.mu.Lock()
		m.events[0].Message = "changed"
		m.mu.Unlock()
		b.box.Resend(eventAt("a", "1"), outbox.Receipt{Accepted: true, RowID: m.events[0].ID})
		b.box.Resend(op, outbox.Receipt{Accepted: true})
		b.offer(nameless)
	})
	m.expectEvents(map[string]string{"a": "Pod web-1: message 1"})
	if got := m.row("/v0/workload-resource-instances/7"); got != `{"LastOperation":"MODIFIED"}` {
		t.Errorf("the row is %s", got)
	}
	if got := m.row("/v0/workload-resource-instances/8"); got != `{"LastOperation":"DELETED"}` {
		t.Errorf("the row without an object is %s", got)
	}
}

func TestVersionOf(t *testing.T) {
	deleted := operationAt(1, "o", "")
	deleted.Deleted = true
	deletedAt := deleted
	deletedAt.ResourceVersion = "9"
	synthetic := eventAt("pod/app/1", "7")
	synthetic.Synthetic = true
	for _, tc := range []struct {
		reason string
		item   outbox.Item
		want   threeport.ID
	}{
		{"an object's", outbox.Item{Report: operationAt(1, "o", "9223372036854775807")}, 1<<63 - 1},
		{"one that is no number", outbox.Item{Report: operationAt(1, "o", "a7")}, 0},
		{"a deletion's own", outbox.Item{Report: deletedAt, Settled: "5"}, 9},
		{"an unseen deletion has the last reported version", outbox.Item{Report: deleted, Settled: "5"}, 5},
		{"without a report it is older than anything", outbox.Item{Report: deleted, Settled: "deleted"}, minVersion},
		{"an Event's", outbox.Item{Report: eventAt("e", "7")}, 7},
		{"a synthetic Event has none, whatever its digest looks like", outbox.Item{Report: synthetic}, 0},
		{"a status has none", outbox.Item{Report: status(1, "Down")}, 0},
	} {
		if got := versionOf(tc.item); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.reason, got, tc.want)
		}
	}
}

func TestEventChanges_OfRowsOfBothProtocols(t *testing.T) {
	ev := eventAt("a", "1")
	at := ev.Time.UTC()
	row := func(message string) threeport.WorkloadEvent {
		uid, kind, reason := "a", "Normal", "r"
		return threeport.WorkloadEvent{RuntimeEventUID: &uid, Type: &kind, Reason: &reason, Message: &message, Timestamp: &at, WorkloadInstanceID: &shop.ID}
	}
	receipt := outbox.Receipt{Instance: target.Instance{Type: target.WorkloadInstance, ID: 1}}
	for message, same := range map[string]bool{"message 1": true, "Pod web-1: message 1": true, "other": false} {
		if got := EventChanges(ev, receipt, row(message)); (len(got) == 0) != same {
			t.Errorf("%q: %v", message, got)
		}
	}
	ev.Derived = false
	if got := EventChanges(ev, receipt, row("Pod web-1: message 1")); len(got) == 0 {
		t.Error("a listed object is not named")
	}
}
