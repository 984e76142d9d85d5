package outbox

import (
	"encoding/json"
	"fmt"
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

// The tables of an outbox.
const (
	receiptTable = "receipts" // by key: what the control plane has
	pendingTable = "pending"  // by key: Events and deletions, which nobody else remembers
	deadTable    = "dead"     // by key: what the control plane refused
	gapTable     = "gaps"     // by key: counts of Events that were dropped
)

// receiptRecord is a settled entry. The version says up to where; a rejected one has it too.
type receiptRecord struct {
	Lane     observe.OrderingKey
	Version  string
	Accepted bool            `json:",omitempty"`
	RowID    int64           `json:",omitempty"`
	Instance target.Instance `json:",omitzero"`
	Modified bool            `json:",omitempty"`
}

// pendingRecord is a report: one of its fields is set.
type pendingRecord struct {
	Event     *observe.Event     `json:",omitempty"`
	Operation *observe.Operation `json:",omitempty"`
}

func (r pendingRecord) report() observe.Report {
	switch {
	case r.Event != nil:
		return *r.Event
	case r.Operation != nil:
		return *r.Operation
	}
	return nil
}

// forgettable returns the record of a report that nobody would offer again after a restart: Events expire, and
// what is deleted is not seen again. Everything else is read anew.
func forgettable(r observe.Report) (pendingRecord, bool) {
	switch r := r.(type) {
	case observe.Event:
		return pendingRecord{Event: &r}, true
	case observe.Operation:
		return pendingRecord{Operation: &r}, r.Deleted
	}
	return pendingRecord{}, false
}

// deadRecord is a dead letter. Of a report that is offered again after a restart only the version is kept.
type deadRecord struct {
	Rejection
	Lane     observe.OrderingKey
	Version  string
	Instance target.Instance
	Content  pendingRecord
}

// keepPending writes down what is to be delivered of an entry; with mu held.
func (o *Outbox) keepPending(e *entry) {
	o.events.remove(e)
	if ev, isEvent := e.report.(observe.Event); isEvent {
		o.events.add(e, ev)
	}
	if o.memory == nil {
		return
	}
	if e.report != nil {
		if record, ok := forgettable(e.report); ok {
			o.put(pendingTable, e.key, record)
			e.stored.kept = true
			return
		}
	}
	if e.stored.kept {
		o.memory.Delete(pendingTable, string(e.key))
		e.stored.kept = false
	}
}

// keepDead writes down the dead letter of an entry, or that there is none; with mu held.
func (o *Outbox) keepDead(e *entry) {
	if e.dead == nil {
		if e.report == nil {
			o.events.remove(e)
		}
		if o.memory != nil {
			o.memory.Delete(deadTable, string(e.key))
		}
		return
	}
	record, ok := forgettable(e.dead.report)
	if !ok {
		record = pendingRecord{}
	} else if record.Event != nil {
		o.events.add(e, *record.Event)
	}
	o.put(deadTable, e.key, deadRecord{e.dead.Rejection, e.lane.name, e.version, e.dead.instance, record})
}

// keepReceipt writes down what the control plane has of an entry; with mu held.
func (o *Outbox) keepReceipt(e *entry) {
	o.put(receiptTable, e.key, receiptRecord{e.lane.name, e.version, e.receipt.Accepted, e.receipt.RowID, e.receipt.Instance, e.modified})
}

// dropReceipt forgets it; with mu held.
func (o *Outbox) dropReceipt(e *entry) {
	if o.memory != nil {
		o.memory.Delete(receiptTable, string(e.key))
	}
}

func (o *Outbox) put(table string, key observe.Key, record any) {
	if o.memory == nil {
		return
	}
	value, err := json.Marshal(record)
	if err != nil { // the records have only types that encode
		panic(fmt.Sprintf("outbox: encode record of %s: %v", key, err))
	}
	o.memory.Put(table, string(key), value)
}

// restore takes back what was kept. What was pending may have been sent: whether it was accepted is not known.
// A record that cannot be read is dropped; the memory has checksums, so it is of another version.
func (o *Outbox) restore() {
	restoreTable(o, receiptTable, func(key observe.Key, r receiptRecord) bool {
		e := o.entry(key, r.Lane)
		e.version, e.settled = r.Version, true
		e.receipt, e.modified = Receipt{Accepted: r.Accepted, RowID: r.RowID, Instance: r.Instance}, r.Modified
		return true
	})
	restoreTable(o, gapTable, func(key observe.Key, g gap) bool {
		o.events.gaps[key] = g
		if latest := o.events.gaps[o.events.open[g.Instance]]; g.Dropped.After(latest.Dropped) {
			o.events.open[g.Instance] = key
		}
		return true
	})
	restoreTable(o, deadTable, func(key observe.Key, r deadRecord) bool {
		e := o.entry(key, r.Lane)
		e.version, e.settled = r.Version, true
		o.bury(e, &deadLetter{Rejection: r.Rejection, instance: r.Instance, report: r.Content.report()})
		o.instances[r.Instance].undeclared = true
		return true
	})
	var pending []observe.Report
	restoreTable(o, pendingTable, func(_ observe.Key, r pendingRecord) bool {
		if report := r.report(); report != nil {
			pending = append(pending, report)
			return true
		}
		return false
	})
	slices.SortFunc(pending, func(a, b observe.Report) int { return timeOf(a).Compare(timeOf(b)) })
	for _, report := range pending {
		e := o.entry(report.Key(), report.OrderingKey())
		e.pace.attempts, e.stored.kept, e.backlog, e.restored = 1, true, true, true
		_, e.forgets = report.(observe.Operation)
		o.enqueue(e, report)
		o.instances[report.Instance()].undeclared = true
	}
}

// timeOf is when an Event happened; deletions come before all Events.
func timeOf(r observe.Report) time.Time {
	if ev, ok := r.(observe.Event); ok {
		return ev.Time
	}
	return time.Time{}
}

// restoreTable takes back a table: records that cannot be read or are refused are dropped.
func restoreTable[R any](o *Outbox, table string, take func(observe.Key, R) bool) {
	for key, value := range o.memory.Load(table) {
		var r R
		if err := json.Unmarshal(value, &r); err != nil || !take(observe.Key(key), r) {
			o.memory.Delete(table, key)
		}
	}
}
