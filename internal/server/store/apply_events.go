package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// eventConflict is the partial unique index that identifies the row of an Event: see setEventUniqueness.
var eventConflict = "(runtimeeventuid, (" + eventOwnerSQL("") + ")) WHERE deletedat IS NULL AND runtimeeventuid <> ''"

// eventClusterSQL is the cluster of the instance of the Event's row e. It is NULL if that has none.
func eventClusterSQL(e string) string {
	clusters := make([]string, 0, len(instanceTables))
	for _, of := range instanceTables {
		clusters = append(clusters, fmt.Sprintf("(SELECT w.clusteruid FROM workloads w WHERE w.type = '%s' AND w.id = %s.%s)", of.kind, e, of.eventColumn))
	}
	return "COALESCE(" + strings.Join(clusters, ", ") + ")"
}

// maxRowsOfUID limits the rows with one UID that are searched for one of this cluster. An agent may give a UID to each of its instances.
const maxRowsOfUID = 32

// ownEvent is the ID of the row of the Event x: the one of its instance or, if there is none, of another instance of this cluster. It
// is NULL if there is no such row. The rows of other clusters do not count, so their agents cannot affect this one's Events.
var ownEvent = "COALESCE((SELECT e.id FROM workload_events e WHERE " + hasUID("e") +
	" AND " + eventOwnerSQL("e.") + " = COALESCE(x.workload, -x.helm) LIMIT 1), " +
	"(SELECT e.id FROM workload_events e WHERE e.id IN (SELECT f.id FROM workload_events f WHERE " + hasUID("f") +
	fmt.Sprintf(" LIMIT %d) AND ", maxRowsOfUID) + eventClusterSQL("e") + " = ? ORDER BY e.id LIMIT 1))"

// hasUID is the condition that a row of workload_events is one of the Event x.
func hasUID(row string) string {
	return row + ".runtimeeventuid = x.uid AND " + row + ".deletedat IS NULL AND " + row + ".runtimeeventuid <> ''"
}

// insertEvents inserts the Events without a row, and returns the rows. A v0 request may create the row of an Event meanwhile.
var insertEvents = `INSERT INTO workload_events (id, createdat, updatedat, runtimeeventuid, type, reason, message, timestamp,
		workloadinstanceid, workloadresourceinstanceid, helmworkloadinstanceid, clusteruid, objectversion, involvedgroup,
		involvedversion, involvedkind, involvednamespace, involvedname, involveduid, count, firsttimestamp, gap)
	SELECT x.id, CAST(? AS BIGINT), CAST(? AS BIGINT), x.uid, x.type, x.reason, x.message, x.timestamp, x.workload, x.resource, x.helm,
		CAST(? AS TEXT), x.version, x.ogroup, x.oversion, x.okind, x.onamespace, x.oname, x.ouid, x.count, x.first, x.gap
	FROM x WHERE ` + ownEvent + ` IS NULL
	ON CONFLICT ` + eventConflict + ` DO NOTHING
	RETURNING runtimeeventuid, objectversion`

// updateEvents updates the rows that are older, including those that v0 created, and returns them. Versions of two clusters are not
// comparable, so the rows that another cluster of the instance reported before are older.
var updateEvents = `UPDATE workload_events SET updatedat = CAST(? AS BIGINT), type = y.type, reason = y.reason, message = y.message,
		timestamp = y.timestamp, workloadinstanceid = y.workload, workloadresourceinstanceid = y.resource, helmworkloadinstanceid = y.helm,
		clusteruid = CAST(? AS TEXT), objectversion = y.version, involvedgroup = y.ogroup, involvedversion = y.oversion,
		involvedkind = y.okind, involvednamespace = y.onamespace, involvedname = y.oname, involveduid = y.ouid, count = y.count,
		firsttimestamp = y.first, gap = y.gap
	FROM (SELECT ` + ownEvent + ` AS own, x.* FROM x) y
	WHERE workload_events.id = y.own AND (workload_events.objectversion < y.version OR workload_events.clusteruid <> ?)
	RETURNING runtimeeventuid, objectversion`

// readEvents reads the stored versions of Events that were not written.
var readEvents = "SELECT e.runtimeeventuid, e.objectversion FROM (SELECT " + ownEvent + " AS own FROM x) y JOIN workload_events e ON e.id = y.own"

// applyEvents writes the Events that are new or newer than the stored ones.
func (a *applyTx) applyEvents(ctx context.Context) error {
	left := make(map[string]*item) // the Events without an answer, by UID
	for _, one := range sortedItems(a.items, eventUID, cmp.Compare) {
		left[one.Event.UID] = one
	}
	a.newEvents = make(map[instanceKey]int)
	err := a.execEvents(ctx, left, insertEvents, []any{a.now, a.now, a.agent.ClusterUID, a.agent.ClusterUID}, func(one *item, _ int64) {
		one.answerCreated()
		a.newEvents[one.instance]++
	})
	if err != nil {
		return err
	}
	err = a.execEvents(ctx, left, updateEvents, []any{a.now, a.agent.ClusterUID, a.agent.ClusterUID, a.agent.ClusterUID},
		func(one *item, _ int64) {
			one.answerUpdated()
			a.newEvents[one.instance]++ // another workload may have had its row, or it was short
		})
	if err != nil {
		return err
	}
	err = a.execEvents(ctx, left, readEvents, []any{a.agent.ClusterUID}, (*item).answerNotNewer)
	for _, one := range left { // the row was deleted meanwhile
		one.answerStale(0)
	}
	return err
}

// execEvents runs a statement with the Events that are left. It answers and removes those that the statement returns, with their
// stored versions.
func (a *applyTx) execEvents(ctx context.Context, left map[string]*item, text string, args []any, answer func(one *item, version int64)) error {
	items := sortedItems(a.items, func(i *item) (uid string, ok bool) {
		uid, ok = eventUID(i)
		return uid, ok && left[uid] == i
	}, cmp.Compare)
	return a.exec(ctx, bulk{text, a.eventInputColumns(items), len(items), args}, answerEvents(left, answer))
}

// answerEvents returns a function that answers and removes the Event of a row.
func answerEvents(left map[string]*item, answer func(one *item, version int64)) func(scanner) error {
	return func(scan scanner) error {
		var uid string
		var version int64
		if err := scan(&uid, &version); err != nil {
			return err
		}
		answer(left[uid], version)
		delete(left, uid)
		return nil
	}
}

// messagePrefix is the prefix of an Event's message in its row: v0 has no field for the involved object.
func messagePrefix(ev *threeport.EventReport) string {
	if !ev.Derived {
		return ""
	}
	return ev.Involved.Kind + " " + ev.Involved.Name + ": "
}

func eventUID(i *item) (string, bool) {
	if i.Event == nil {
		return "", false
	}
	return i.Event.UID, true
}

func (a *applyTx) eventInputColumns(items []*item) []column {
	involved := func(of func(*threeport.ObjectRef) string) func(*item) string {
		return func(i *item) string { return of(&i.Event.Involved) }
	}
	instance := func(kind string) func(*item) *int64 {
		return func(i *item) *int64 {
			if i.instance.kind != kind {
				return nil
			}
			return &i.instance.id
		}
	}
	return []column{
		integers("id", items, func(*item) int64 { return a.store.ids.next() }),
		texts("uid", items, func(i *item) string { return i.Event.UID }),
		texts("type", items, func(i *item) string { return i.Event.Type }),
		texts("reason", items, func(i *item) string { return i.Event.Reason }),
		texts("message", items, func(i *item) string { return messagePrefix(i.Event) + i.Event.Message }),
		integers("timestamp", items, func(i *item) int64 { return i.Event.Time.UnixMicro() }),
		optionalIntegers("workload", items, instance(threeport.TypeWorkloadInstance)),
		optionalIntegers("resource", items, func(i *item) *int64 {
			if i.Event.ResourceInstanceID == 0 {
				return nil
			}
			return (*int64)(&i.Event.ResourceInstanceID)
		}),
		optionalIntegers("helm", items, instance(threeport.TypeHelmWorkloadInstance)),
		integers("version", items, func(i *item) int64 { return i.version }),
		texts("ogroup", items, involved(func(o *threeport.ObjectRef) string { return o.Group })),
		texts("oversion", items, involved(func(o *threeport.ObjectRef) string { return o.Version })),
		texts("okind", items, involved(func(o *threeport.ObjectRef) string { return o.Kind })),
		texts("onamespace", items, involved(func(o *threeport.ObjectRef) string { return o.Namespace })),
		texts("oname", items, involved(func(o *threeport.ObjectRef) string { return o.Name })),
		texts("ouid", items, involved(func(o *threeport.ObjectRef) string { return o.UID })),
		integers("count", items, func(i *item) int64 { return i.Event.Count }),
		optionalIntegers("first", items, func(i *item) *int64 { return optionalMicros(i.Event.FirstTime) }),
		optionalTexts("gap", items, func(i *item) *string { return gap(i.Event.Gap) }),
	}
}

// gap encodes a gap; nil for none.
func gap(g *threeport.Gap) *string {
	if g == nil {
		return nil
	}
	text, _ := json.Marshal(g) // cannot fail: validated numbers and times
	return new(string(text))
}
