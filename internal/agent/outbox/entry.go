package outbox

import (
	"maps"
	"slices"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// entry is the state of one key. Two parts of it change independently. The pending part:
//
//	report  out  queued
//	-       no   no      idle
//	set     no   yes     pending: waits in its group
//	set     yes  no      being sent; the report is newer than the item if replaced is set
//	-       yes  no      being sent, and cancelled meanwhile: not sent again
//
// The part about the control plane:
//
//	outcome    dead
//	noOutcome  -      nothing, or it is not known
//	concluded  -      the report of this version, or no row for it
//	concluded  set    not this version: it was rejected, and is a dead letter
//	dropped    -      not this version: it was dropped to keep the bound, or by a filter
type entry struct {
	key     observe.Key
	group   *group
	subject observe.Subject // differs from the group's name for synthetic Events
	pending
	delivered
	dead  *deadLetter
	retry retryState
	evict evictable
	// operation is where the workload's account has the accepted operation; nil if it has none.
	operation *operationSlot
	forgets   bool // drop the entry once it is idle and has no dead letter
	restored  bool // loaded, not offered since
}

// pending is what is still to be delivered of a key.
type pending struct {
	report   observe.Report // nil if the key is not pending
	since    time.Time      // when the key became pending
	replaced time.Time      // when the report that is in flight was replaced; zero if it was not

	refusal   target.Refusal // of its last try; empty if it was not refused
	refusedBy string         // the error

	failed  bool // its last try failed
	backlog bool // it waited for the end of an outage, or for this process to start
	repair  bool // the control plane lost it
}

// delivered is what is known of a key at the control plane.
type delivered struct {
	receipt  Receipt
	version  string // of the last report whose delivery ended
	outcome  outcome
	modified bool // accepted, not as the key's first
}

// outcome is that of the last report of a key whose delivery ended. A refused report has none yet: it is sent again.
type outcome int

const (
	noOutcome outcome = iota
	concluded         // accepted, rejected or discarded: see [Outbox.conclude]
	dropped           // to keep the bound, or by a filter
)

// end records that the delivery of a version ended.
func (d *delivered) end(version string, o outcome) { d.version, d.outcome = version, o }

// reopen makes the next Offer of the same version be sent, too. It keeps the version: a deletion without a
// version of its own is sent with it ([Item.Settled]).
func (d *delivered) reopen() { d.outcome = noOutcome }

// forgetVersion reopens the key, and forgets a version that the control plane does not have.
func (d *delivered) forgetVersion() { d.end("", noOutcome) }

// ended reports whether the delivery of a version has ended.
func (d *delivered) ended(version string) bool {
	return d.outcome != noOutcome && d.version == version
}

func (e *entry) isInFlight() bool { return e.group.inFlight == e }

// mustDeliver reports whether the pending report or the dead letter of an entry would be lost if it were dropped.
func (e *entry) mustDeliver() bool {
	if e.report != nil {
		return mustPersist(e.report)
	}
	return e.dead != nil && e.dead.report != nil && mustPersist(e.dead.report)
}

// undeliverableTo returns the instance of a dead letter, or of a report for a row that the control plane has not.
func (e *entry) undeliverableTo() (target.Instance, bool) {
	switch {
	case e.dead != nil:
		return e.dead.instance, true
	case e.report != nil && (e.refusal == target.UnknownInstance || e.refusal == target.UnknownResource):
		return e.report.Instance(), true
	}
	return target.Instance{}, false
}

func (e *entry) isIdle() bool { return e.report == nil && !e.isInFlight() }

// group has the entries that share an ordering key.
type group struct {
	name     observe.OrderingKey
	entries  []*entry // all of them, in the order in which their keys came up
	queue    []*entry // those with something to send, without the one that is in flight
	inFlight *entry   // being sent
	place    heapPlace
}

// first returns the entry that is next to be sent.
func (g *group) first() *entry { return g.queue[0] }

// putFirst makes an entry the next one to be sent.
func (g *group) putFirst(e *entry) { g.queue = slices.Insert(g.queue, 0, e) }

// goesAlone reports whether the first entry of a group is not sent together with others.
func (g *group) goesAlone() bool {
	_, syncs := g.first().report.(InitialSync)
	return syncs || g.first().retry.quarantined()
}

// index has all entries and groups.
type index struct {
	entries map[observe.Key]*entry
	archive archive
	groups  map[observe.OrderingKey]*group
	// subjects has, by subject, the entries whose subject is not their group.
	subjects map[observe.Subject][]*entry
	largest  int // the most entries since the maps were made
}

func newIndex() index {
	return index{
		entries: map[observe.Key]*entry{}, archive: archive{}, groups: map[observe.OrderingKey]*group{}, subjects: map[observe.Subject][]*entry{},
	}
}

// getOrAddFor returns the entry of a report, a new one if there is none. The subject of reports other than Events is their group.
func (x *index) getOrAddFor(r observe.Report) *entry {
	e := x.getOrAdd(r.Key(), r.OrderingKey())
	if ev, ok := r.(observe.Event); ok {
		x.setSubject(e, observe.SubjectOf(ev))
	}
	return e
}

// about returns the entries of a subject, in a new slice.
func (x *index) about(subject observe.Subject) []*entry {
	entries := x.subjects[subject]
	if g := x.groups[observe.OrderingKey(subject)]; g != nil {
		return slices.Concat(g.entries, entries)
	}
	return slices.Clone(entries)
}

// setSubject sets the subject of an entry. An empty one changes nothing: a new entry has that of its group.
func (x *index) setSubject(e *entry, subject observe.Subject) {
	if subject == "" || subject == e.subject {
		return
	}
	x.unlinkSubject(e)
	e.subject = subject
	if e.hasOwnSubject() {
		x.subjects[subject] = append(x.subjects[subject], e)
	}
}

func (x *index) unlinkSubject(e *entry) {
	left := slices.DeleteFunc(x.subjects[e.subject], func(other *entry) bool { return other == e })
	if x.subjects[e.subject] = left; len(left) == 0 {
		delete(x.subjects, e.subject)
	}
}

// hasOwnSubject reports whether the subject of an entry is not its group.
func (e *entry) hasOwnSubject() bool { return e.subject != observe.Subject(e.group.name) }

// knows reports whether there is an entry of a key, or an archived Event.
func (x *index) knows(key observe.Key) bool {
	_, archived := x.archive.get(key)
	return archived || x.entries[key] != nil
}

// getOrUnarchive returns the entry of a key; nil if there is none. An archived Event becomes an entry again. The caller passes the entry
// to gc when it is done, which may archive it.
func (x *index) getOrUnarchive(key observe.Key) *entry {
	if x.knows(key) {
		return x.getOrAdd(key, observe.OrderingKey(key))
	}
	return nil
}

// getOrAdd returns the entry of a key, a new one if there is none. An archived Event becomes an entry again.
func (x *index) getOrAdd(key observe.Key, name observe.OrderingKey) *entry {
	if e := x.entries[key]; e != nil {
		return e
	}
	e := x.add(key, name)
	if ev, ok := x.archive.take(key); ok {
		e.delivered, e.restored = ev.delivered(), ev.common.Value().restored
	}
	return e
}

func (x *index) add(key observe.Key, name observe.OrderingKey) *entry {
	g := x.groups[name]
	if g == nil {
		g = &group{name: name}
		x.groups[name] = g
	}
	e := &entry{key: key, group: g, subject: observe.Subject(name)}
	g.entries = append(g.entries, e)
	x.entries[key] = e
	return e
}

// remove removes an entry, and its group if it is the last one. After a burst it copies the maps of both, because a map keeps the
// memory of its largest size.
func (x *index) remove(e *entry) {
	x.largest = max(x.largest, len(x.entries))
	delete(x.entries, e.key)
	x.unlinkSubject(e)
	g := e.group
	if g.entries = slices.DeleteFunc(g.entries, func(other *entry) bool { return other == e }); len(g.entries) == 0 {
		delete(x.groups, g.name)
	}
	if len(x.entries) < x.largest/4 {
		x.entries, x.groups, x.largest = shrunk(x.entries), shrunk(x.groups), len(x.entries)
	}
}

// shrunk returns a copy that takes the memory for its size only. That of maps.Clone takes as much as the map.
func shrunk[K comparable, V any](m map[K]V) map[K]V {
	out := make(map[K]V, len(m))
	maps.Copy(out, m)
	return out
}
