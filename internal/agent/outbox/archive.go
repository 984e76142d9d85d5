package outbox

import (
	"strconv"
	"unique"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// archive has the Events whose newest report the control plane accepted, or a filter dropped. A cluster has several of them per object. One
// takes 60 to 100 bytes here and 711 as an [entry] with its group. An Event that is to be reported again becomes an entry. Events with a row of
// their own, synthetic ones, and those of which something is pending or rejected stay entries. A nil archive takes none.
type archive map[uuid.UUID]archivedEvent

// archivedEvent has the fields of an entry's delivered part.
type archivedEvent struct {
	rowID           int64
	resourceVersion uint64
	common          unique.Handle[archivedFields]
}

// archivedFields are those that many Events have in common. The receipt's instance is that of the version.
type archivedFields struct {
	workload    target.Instance
	resourceID  int64
	hasInstance bool // the receipt has the instance
	accepted    bool // the receipt is that of an accepted report
	dropped     bool // the version was dropped by a filter
	modified    bool
	restored    bool
}

// add archives an idle entry of an Event, and returns false if it has to stay an entry.
func (a archive) add(e *entry) bool {
	id, ok := archiveID(e.key)
	if a == nil || !ok || e.hasOwnSubject() || e.retry != (retryState{}) {
		return false
	}
	if e.outcome != dropped && (e.outcome != concluded || !e.receipt.Accepted) {
		return false
	}
	v, ok := observe.ParseEventVersion(e.version)
	if !ok {
		return false
	}
	resourceVersion, err := strconv.ParseUint(v.ResourceVersion, 10, 64)
	hasInstance := e.receipt.Instance != (target.Instance{})
	if err != nil || strconv.FormatUint(resourceVersion, 10) != v.ResourceVersion || hasInstance && e.receipt.Instance != v.Workload {
		return false
	}
	a[id] = archivedEvent{
		rowID: e.receipt.RowID, resourceVersion: resourceVersion, common: unique.Make(archivedFields{
			workload: v.Workload, resourceID: v.ResourceID, hasInstance: hasInstance,
			accepted: e.receipt.Accepted, dropped: e.outcome == dropped, modified: e.modified, restored: e.restored,
		}),
	}
	return true
}

// archiveID returns the place of a key; false if it is not that of an Event with a UID as the API server makes them.
func archiveID(key observe.Key) (uuid.UUID, bool) {
	uid, ok := key.EventUID()
	if !ok {
		return uuid.UUID{}, false
	}
	id, err := uuid.Parse(string(uid))
	return id, err == nil && id.String() == string(uid)
}

// get returns an archived Event.
func (a archive) get(key observe.Key) (archivedEvent, bool) {
	if id, ok := archiveID(key); ok {
		event, ok := a[id]
		return event, ok
	}
	return archivedEvent{}, false
}

// take removes an Event.
func (a archive) take(key observe.Key) (archivedEvent, bool) {
	id, ok := archiveID(key)
	if !ok {
		return archivedEvent{}, false
	}
	event, ok := a[id]
	delete(a, id)
	return event, ok
}

// restored returns the keys of the Events of an earlier process that this process has not offered.
func (a archive) restored() (out []observe.Key) {
	for id, ev := range a {
		if ev.common.Value().restored {
			out = append(out, observe.EventKey(types.UID(id.String())))
		}
	}
	return out
}

// delivered returns what was known of the entry at the control plane.
func (ev archivedEvent) delivered() delivered {
	common := ev.common.Value()
	d := delivered{receipt: Receipt{Accepted: common.accepted, RowID: ev.rowID}, modified: common.modified}
	if common.hasInstance {
		d.receipt.Instance = common.workload
	}
	d.end(observe.EventVersion{
		ResourceVersion: strconv.FormatUint(ev.resourceVersion, 10), Workload: common.workload, ResourceID: common.resourceID,
	}.String(), concluded)
	if common.dropped {
		d.outcome = dropped
	}
	return d
}
