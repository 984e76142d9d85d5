package outbox

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// records is a Store in memory.
type records map[string]map[string][]byte

func (r records) Load(table string) map[string][]byte { return maps.Clone(r[table]) }

func (r records) Put(table, key string, value []byte) {
	if r[table] == nil {
		r[table] = map[string][]byte{}
	}
	r[table][key] = value
}

func (r records) Delete(table, key string) { delete(r[table], key) }

func (r records) Bytes() (sum int64) {
	for _, table := range r {
		for key, value := range table {
			sum += int64(len(key) + len(value))
		}
	}
	return sum
}

func expectRecords(t *testing.T, r records, receipts, pending int) {
	t.Helper()
	if len(r[receiptTable]) != receipts || len(r[pendingTable]) != pending {
		t.Errorf("the store has the receipts %v and the pending %v, want %d and %d", r[receiptTable], r[pendingTable], receipts, pending)
	}
}

func event(uid types.UID, version string) observe.Event {
	return observe.Event{
		Workload: shop, ResourceID: 7, UID: uid, ResourceVersion: version, Type: "Warning", Reason: "BackOff", Message: "again",
		Involved: target.Ref{Kind: "Pod", Namespace: "ns", Name: "web"}, Time: time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC),
	}
}

func operation(uid types.UID, version string) observe.Operation {
	ref := target.Ref{Kind: "ConfigMap", Namespace: "ns", Name: "conf"}
	return observe.Operation{
		Attribution: target.Attribution{Workload: "w", Instance: shop, Resource: target.Resource{Ref: ref, Version: "v1", ID: 7}, Listed: true},
		Object:      target.Identity{Ref: ref, UID: uid}, ResourceVersion: version, Deleted: version == "",
	}
}

func TestOutbox_Restart_SendsPendingEvents(t *testing.T) {
	kept := records{}
	New(Config{}, kept).Offer(event("a", "1"))
	expectRecords(t, kept, 0, 1)
	again := New(Config{}, kept)
	item := take(t, again)
	if item.Report != observe.Report(event("a", "1")) {
		t.Errorf("sent is %+v", item.Report)
	}
	if item.Attempt < 2 {
		t.Errorf("attempt %d, want 2: an earlier process may have sent it", item.Attempt)
	}
	again.Ack(item, Receipt{RowID: 5, Instance: shop})
	expectRecords(t, kept, 1, 0)
}

// Two records of one report must not make two pending reports of one key.
func TestOutbox_Restart_PendingUnderOtherKey_IsDeleted(t *testing.T) {
	kept := records{}
	New(Config{}, kept).Offer(event("a", "1"))
	own := string(event("a", "1").Key())
	kept.Put(pendingTable, own+"-copy", kept[pendingTable][own])
	kept.Put(pendingTable, "event/b", kept[pendingTable][own])
	again := New(Config{}, kept)
	expectRecords(t, kept, 0, 1)
	expectPending(t, again, 1, 0)
	item := take(t, again)
	again.Ack(item, Receipt{RowID: 5, Instance: shop})
	expectNothing(t, again)
	expectRecords(t, kept, 1, 0)
}

func TestOutbox_Restart_KeepsReceipts(t *testing.T) {
	kept := records{}
	o := New(Config{}, kept)
	o.Offer(event("a", "1"))
	o.Ack(take(t, o), Receipt{RowID: 5, Instance: shop})
	o.Offer(operation("x", "10"))
	o.Ack(take(t, o), Receipt{})

	again := New(Config{}, kept)
	again.Offer(event("a", "1"))
	again.Offer(operation("x", "10"))
	expectNothing(t, again) // the control plane has them
	again.Offer(event("a", "2"))
	item := take(t, again)
	if want := (Receipt{Accepted: true, RowID: 5, Instance: shop}); item.Receipt != want {
		t.Errorf("the receipt is %+v, want %+v", item.Receipt, want)
	}
	again.Ack(item, item.Receipt)
	again.Forget(event("a", "").Key())
	again.Offer(operation("x", ""))
	again.Forget(operation("x", "").Key())
	item = take(t, again)
	if !item.Receipt.Accepted {
		t.Error("that the object was reported is forgotten")
	}
	again.Ack(item, Receipt{})
	expectRecords(t, kept, 0, 0)
	expectEmpty(t, again)
}

// After a restart, the keys that are not offered again are forgotten on request. An undelivered Event is sent before.
func TestOutbox_ForgetRestoredEvents(t *testing.T) {
	kept := records{"events": {"a": nil}, "ends": {"a/b/1": nil}, "changes": {"w": nil}}
	o := New(Config{}, kept)
	for _, uid := range []types.UID{"again", "gone"} {
		o.Offer(event(uid, "1"))
		o.Ack(take(t, o), Receipt{RowID: 5})
	}
	o.Offer(event("undelivered", "1"))
	for _, table := range oldTables {
		if len(kept[table]) > 0 {
			t.Errorf("the table %s of an earlier version is left", table)
		}
	}

	o.Offer(synthetic("made")) // is in flight when the process ends
	o.Offer(operation("x", "1"))
	for range 3 {
		if item := take(t, o); item.Report.Key() == operation("x", "").Key() {
			o.Ack(item, Receipt{})
		}
	}

	restarted := New(Config{}, kept)
	restarted.Offer(event("again", "1"))
	if got := slices.Collect(restarted.Events()); len(got) != 3 {
		t.Errorf("Events are %q, want the 3 of the cluster", got)
	}
	restarted.ForgetRestoredEvents()
	expectRecords(t, kept, 2, 2)
	var sent []observe.Key
	for range 2 {
		item := take(t, restarted)
		sent = append(sent, item.Report.Key())
		restarted.Ack(item, Receipt{RowID: 6})
	}
	slices.Sort(sent)
	if want := []observe.Key{"event/made", "event/undelivered"}; !slices.Equal(sent, want) {
		t.Errorf("the outbox sent %q, want %q", sent, want)
	}
	expectRecords(t, kept, 2, 0)
	restarted.Offer(operation("x", "1"))
	expectNothing(t, restarted)
	if got := slices.Collect(restarted.Events()); !slices.Equal(got, []types.UID{"again"}) {
		t.Errorf("Events are %q, want the one that was offered again", got)
	}
}

// The state file of an earlier version has no subjects. A synthetic Event that is offered again gets its subject, and another
// one counts as an Event of the cluster, which no cache has.
func TestOutbox_Restart_ReceiptsWithoutSubject(t *testing.T) {
	kept := records{}
	o := New(Config{}, kept)
	for _, uid := range []types.UID{"pod/app/1", "pod/app/2"} {
		o.Offer(synthetic(uid))
		o.Ack(take(t, o), Receipt{RowID: 5})
	}
	for key, value := range kept[receiptTable] {
		kept[receiptTable][key] = []byte(strings.Replace(string(value), `"Subject":"synthetic/pod",`, "", 1))
	}
	restarted := New(Config{}, kept)
	restarted.Offer(synthetic("pod/app/2"))
	expectNothing(t, restarted)
	if got := slices.Collect(restarted.Events()); !slices.Equal(got, []types.UID{"pod/app/1"}) {
		t.Errorf("Events are %q, want the one without a subject", got)
	}
	restarted.ForgetExcept(observe.SyntheticSubject("pod"))
	restarted.ForgetExcept(observe.EventSubject("pod/app/1"))
	expectEmpty(t, restarted)
	expectRecords(t, kept, 0, 0)
}

func TestOutbox_Restart_SendsDeletions(t *testing.T) {
	kept := records{}
	o := New(Config{}, kept)
	o.Offer(operation("x", ""))
	o.Forget(operation("x", "").Key())
	again := New(Config{}, kept)
	item := take(t, again)
	if op, ok := item.Report.(observe.Operation); !ok || !op.Deleted || op.Object.UID != "x" {
		t.Errorf("sent is %+v", item.Report)
	}
	again.Ack(item, Receipt{})
	expectRecords(t, kept, 0, 0)
	expectEmpty(t, again)
}

func TestOutbox_Restart_DropsState(t *testing.T) {
	kept := records{}
	o := New(Config{}, kept)
	o.Offer(operation("x", "10"))
	o.Offer(observe.Status{Workload: shop, Status: "Healthy"})
	expectRecords(t, kept, 0, 0)
	expectNothing(t, New(Config{}, kept))
}

func TestOutbox_Store_KeepsPendingReportsOnly(t *testing.T) {
	for reason, end := range map[string]func(*Outbox){
		"cancelled": func(o *Outbox) { o.Cancel(event("a", "").Key()) },
		"rejected":  func(o *Outbox) { o.Reject(take(t, o), errSend) },
		"cancelled while it was in flight": func(o *Outbox) {
			item := take(t, o)
			o.Cancel(event("a", "").Key())
			o.Retry(item, 0, errSend)
		},
	} {
		t.Run(reason, func(t *testing.T) {
			kept := records{}
			o := New(Config{}, kept)
			o.Offer(event("a", "1"))
			end(o)
			expectNothing(t, New(Config{}, kept))
			if len(kept[pendingTable]) > 0 {
				t.Errorf("kept are %v", kept[pendingTable])
			}
		})
	}
}

func TestOutbox_Restart_DropsUnreadableRecords(t *testing.T) {
	kept := records{
		receiptTable: {"event/a": []byte("no JSON"), "event/b": []byte(`{"RowID":"a word"}`)},
		pendingTable: {"event/a": []byte("{}"), "event/b": []byte("no JSON")},
	}
	expectNothing(t, New(Config{}, kept))
	expectRecords(t, kept, 0, 0)
}

// Only deletions of objects are stored, and they have no definition, which could be that of a Secret.
func TestOutbox_Store_HasNoDefinitions(t *testing.T) {
	kept := records{}
	o := New(Config{}, kept)
	op := operation("x", "10")
	o.Offer(op)
	o.Ack(take(t, o), Receipt{})
	op.ResourceVersion, op.Deleted = "11", true
	o.Offer(op)
	for _, table := range kept {
		for key, value := range table {
			if strings.Contains(string(value), "metadata") {
				t.Errorf("%s is kept as %s", key, value)
			}
		}
	}
}

func TestPersistence_LoadReturnsWhatWasSaved(t *testing.T) {
	store := records{}
	p := persistence{store}
	for _, tt := range []struct {
		report observe.Report
		want   bool
	}{{event("a", "1"), true}, {operation("b", "1"), false}, {nil, false}, {operation("d", ""), true}} {
		if got := mustPersist(tt.report); got != tt.want {
			t.Errorf("mustPersist of %v is %t, want %t", tt.report, got, tt.want)
		}
	}
	p.savePending("event/a", event("a", "1"))
	p.savePending(operation("d", "").Key(), operation("d", ""))
	d := delivered{receipt: Receipt{Accepted: true, RowID: 7, Instance: shop}, version: "1", outcome: concluded, modified: true}
	p.saveReceipt(&entry{key: "r", group: &group{name: "group"}, subject: "subject", delivered: d})
	p.saveDead("dead", "group", "2", &deadLetter{instance: shop, report: event("x", "2")})
	p.saveDead("deadOperation", "group", "2", &deadLetter{instance: shop, report: operation("y", "2")})
	store.Put(pendingTable, "broken", []byte("{"))
	store.Put(pendingTable, "empty", []byte("{}"))

	got := p.load()
	if len(got.pending) != 2 || got.pending[0].Key() != operation("d", "").Key() || got.pending[1].Key() != "event/a" {
		t.Errorf("pending are %v, want the deletion and then the Event", got.pending)
	}
	if r := got.receipts["r"]; r.delivered() != d || r.OrderingKey != "group" || r.Subject != "subject" {
		t.Errorf("the receipt is %+v, want %+v", r, d)
	}
	if got.dead["dead"].Content.report() == nil || got.dead["deadOperation"].Content.report() != nil {
		t.Errorf("dead letters are %+v, want content of the Event only", got.dead)
	}
	if len(store[pendingTable]) != 2 {
		t.Errorf("%d pending records are left, want those that can be read", len(store[pendingTable]))
	}
}

func TestPersistence_WithoutAStoreDoesNothing(t *testing.T) {
	var p persistence
	p.savePending("a", event("a", "1"))
	if p.bytes() != 0 || p.load().receipts != nil {
		t.Error("something was saved")
	}
	p.deletePending("a")
}

// The API server keeps an Event for an hour. One that JSON cannot encode would end each agent in that time.
func TestOutbox_ReportThatCannotBeEncoded_IsOffered(t *testing.T) {
	kept := records{}
	o := New(Config{}, kept)
	ev := event("a", "1")
	ev.Time = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)
	o.Offer(ev)
	expectRecords(t, kept, 0, 0)
	take(t, o)
}

// handedOver is a store that shows what is left of the records that it handed over.
type handedOver struct {
	records
	tables []map[string][]byte
}

func (h *handedOver) Load(table string) map[string][]byte {
	handed := h.records.Load(table)
	h.tables = append(h.tables, handed)
	return handed
}

// Thousands of long Events may be pending: a start must not hold both their records and their reports.
func TestOutbox_Restart_DropsRecordsWhileReading(t *testing.T) {
	kept := records{}
	first := New(Config{}, kept)
	for i := range 10 {
		first.Offer(typed(i, "Warning"))
	}
	store := &handedOver{records: kept}
	o := New(Config{}, store)
	expectPending(t, o, 10, 0)
	for _, table := range store.tables {
		if len(table) > 0 {
			t.Errorf("%d records are still held after the start", len(table))
		}
	}
}
