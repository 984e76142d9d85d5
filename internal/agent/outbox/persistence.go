package outbox

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// Store keeps records when the process ends. *journal.Journal is one; a nil one remembers nothing.
type Store interface {
	// Load returns the records of a table as the last process left them. A second call returns nothing.
	Load(table string) map[string][]byte
	Put(table, key string, value []byte)
	Delete(table, key string)
	// Bytes is about what the records take.
	Bytes() int64
}

// The tables of an outbox, by key.
const (
	receiptTable = "receipts" // receipts of the control plane
	pendingTable = "pending"  // pending reports that only the outbox has
	deadTable    = "dead"     // dead letters
	droppedTable = "gaps"     // counts of Events that were dropped
)

// oldTables are of earlier versions. Their records repeat what the receipts have, and are deleted.
var oldTables = []string{"events", "ends", "changes"}

// receiptRecord is what is known of a key at the control plane. Version may be that of a rejected report, and is empty if
// the next Offer of any version is to be sent.
type receiptRecord struct {
	OrderingKey observe.OrderingKey `json:"Lane"`       // the name in the files of all versions
	Subject     observe.Subject     `json:",omitempty"` // empty if it is the ordering key
	Version     string
	Accepted    bool            `json:",omitempty"`
	RowID       int64           `json:",omitempty"`
	Instance    target.Instance `json:",omitzero"`
	Modified    bool            `json:",omitempty"`
	Dropped     bool            `json:",omitempty"` // the version was dropped by a filter
}

func (r receiptRecord) delivered() delivered {
	receipt := Receipt{Accepted: r.Accepted, RowID: r.RowID, Instance: r.Instance}
	d := delivered{receipt: receipt, modified: r.Modified}
	if r.Version != "" {
		d.end(r.Version, concluded)
	}
	if r.Dropped {
		d.outcome = dropped
	}
	return d
}

// pendingRecord is a report. One of its fields is set.
type pendingRecord struct {
	Event     *observe.Event     `json:",omitempty"`
	Operation *observe.Operation `json:",omitempty"`
	Status    *observe.Status    `json:",omitempty"`
}

func newPendingRecord(r observe.Report) (record pendingRecord) {
	switch r := r.(type) {
	case observe.Event:
		record.Event = &r
	case observe.Operation:
		record.Operation = &r
	case observe.Status:
		record.Status = &r
	}
	return record
}

func (r pendingRecord) report() observe.Report {
	switch {
	case r.Event != nil:
		return *r.Event
	case r.Operation != nil:
		return *r.Operation
	case r.Status != nil:
		return *r.Status
	}
	return nil
}

// mustPersist reports whether a report would be lost with the process: Events expire, and a deleted object is not seen
// again. All other reports are offered again after a restart.
func mustPersist(r observe.Report) bool {
	_, isEvent := r.(observe.Event)
	return isEvent || isLast(r)
}

// isLast reports whether a report is the last one of its key: the deletion of an object, or the end of the watch of an instance.
func isLast(r observe.Report) bool { return isDeletion(r) || observe.EndsWatch(r) }

func isDeletion(r observe.Report) bool {
	op, ok := r.(observe.Operation)
	return ok && op.Deleted
}

// deadRecord is a dead letter. Content is empty for a report that is offered again after a restart.
type deadRecord struct {
	target.Rejection
	OrderingKey observe.OrderingKey `json:"Lane"`
	Version     string
	Instance    target.Instance
	Content     pendingRecord
}

// persistence writes and reads the records of an outbox. Without a store it does nothing.
type persistence struct{ store Store }

func (p persistence) savePending(key observe.Key, r observe.Report) {
	p.put(pendingTable, key, newPendingRecord(r))
}

func (p persistence) deletePending(key observe.Key) { p.delete(pendingTable, key) }

func (p persistence) saveReceipt(e *entry) {
	if e.outcome == noOutcome && !e.receipt.Accepted {
		p.deleteReceipt(e.key)
		return
	}
	record := receiptRecord{
		OrderingKey: e.group.name, Accepted: e.receipt.Accepted, RowID: e.receipt.RowID, Instance: e.receipt.Instance,
		Modified: e.modified, Dropped: e.outcome == dropped,
	}
	if e.outcome != noOutcome {
		record.Version = e.version
	}
	if e.hasOwnSubject() {
		record.Subject = e.subject
	}
	p.put(receiptTable, e.key, record)
}

func (p persistence) deleteReceipt(key observe.Key) { p.delete(receiptTable, key) }

func (p persistence) saveDead(key observe.Key, orderingKey observe.OrderingKey, version string, letter *deadLetter) {
	record := deadRecord{Rejection: letter.Rejection, OrderingKey: orderingKey, Version: version, Instance: letter.instance}
	if letter.report != nil && mustPersist(letter.report) {
		record.Content = newPendingRecord(letter.report)
	}
	p.put(deadTable, key, record)
}

func (p persistence) deleteDead(key observe.Key) { p.delete(deadTable, key) }

func (p persistence) saveDropped(key observe.Key, d droppedRange) { p.put(droppedTable, key, d) }

func (p persistence) deleteDropped(key observe.Key) { p.delete(droppedTable, key) }

// bytes estimates the size of all records.
func (p persistence) bytes() int64 {
	if p.store == nil {
		return 0
	}
	return p.store.Bytes()
}

func (p persistence) put(table string, key observe.Key, record any) {
	if p.store == nil {
		return
	}
	value, err := json.Marshal(record)
	if err != nil { // such a report cannot be sent: it becomes a dead letter
		p.store.Delete(table, string(key))
		return
	}
	p.store.Put(table, string(key), value)
}

func (p persistence) delete(table string, key observe.Key) {
	if p.store != nil {
		p.store.Delete(table, string(key))
	}
}

// loadedRecords are those of an earlier process.
type loadedRecords struct {
	receipts map[observe.Key]receiptRecord
	dropped  map[observe.Key]droppedRange
	dead     map[observe.Key]deadRecord
	pending  []observe.Report // deletions and statuses, and then Events by their time
}

// load reads all records. A record that cannot be decoded is deleted: the store has checksums, so the record is of another
// version. A pending report under another key than its own is deleted, too: two records would have one report.
func (p persistence) load() (out loadedRecords) {
	if p.store == nil {
		return out
	}
	for _, table := range oldTables {
		for key := range p.store.Load(table) {
			p.store.Delete(table, key)
		}
	}
	out.receipts = loadTable[receiptRecord](p, receiptTable)
	out.dropped = loadTable[droppedRange](p, droppedTable)
	out.dead = loadTable[deadRecord](p, deadTable)
	for key, r := range loadTable[pendingRecord](p, pendingTable) {
		if report := r.report(); report != nil && report.Key() == key {
			out.pending = append(out.pending, report)
		} else {
			p.deletePending(key)
		}
	}
	slices.SortFunc(out.pending, func(a, b observe.Report) int { return timeOf(a).Compare(timeOf(b)) })
	return out
}

func loadTable[R any](p persistence, table string) map[observe.Key]R {
	out := map[observe.Key]R{}
	records := p.store.Load(table)
	for key, value := range records {
		delete(records, key) // both forms of all records may exceed the memory limit
		var r R
		if err := json.Unmarshal(value, &r); err != nil {
			p.store.Delete(table, key)
			continue
		}
		out[observe.Key(key)] = r
	}
	return out
}

// timeOf is the time of an Event, and zero for other reports.
func timeOf(r observe.Report) time.Time {
	if ev, ok := r.(observe.Event); ok {
		return ev.Time
	}
	return time.Time{}
}

// restore takes back the records of an earlier process. A pending report may have been sent: whether it was accepted is
// not known.
func (o *Outbox) restore(r loadedRecords) {
	for key, dropped := range r.dropped { // first, because gc asks for them
		o.dropped.restore(key, dropped, time.Now())
	}
	for key, record := range r.receipts {
		e := o.getOrAdd(key, record.OrderingKey)
		o.setSubject(e, record.Subject)
		e.delivered, e.restored = record.delivered(), true
		o.gc(e)
	}
	for key, record := range r.dead {
		e := o.getOrAdd(key, record.OrderingKey)
		if report := record.Content.report(); report != nil {
			o.setSubject(e, observe.SubjectOf(report))
		}
		e.restored = true
		e.end(record.Version, concluded)
		o.setDead(e, &deadLetter{Rejection: record.Rejection, instance: record.Instance, report: record.Content.report()})
		o.accounts[record.Instance].undeclared = true
	}
	for _, report := range r.pending {
		e := o.getOrAddFor(report)
		e.retry.attempts, e.backlog, e.restored = 1, true, true
		e.forgets = isLast(report)
		o.enqueue(e, report)
		o.accounts[report.Instance()].undeclared = true
	}
}
