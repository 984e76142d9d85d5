package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// eventClusterSQL is the cluster that the Event's row e belongs to: the reporting cluster or, for a row that v0
// created, the cluster of its workload. It is NULL if that has none.
func eventClusterSQL(e string) string {
	owners := []string{e + ".clusteruid"}
	for _, of := range instanceTables {
		owners = append(owners, fmt.Sprintf("(SELECT w.clusteruid FROM workloads w WHERE w.type = '%s' AND w.id = %s.%s)", of.kind, e, of.eventColumn))
	}
	return "COALESCE(" + strings.Join(owners, ", ") + ")"
}

// eventConflict is the partial unique index that identifies the row of an Event: see setEventUniqueness.
const eventConflict = "(runtimeeventuid) WHERE deletedat IS NULL AND runtimeeventuid <> ''"

// upsertEvents inserts Events, and updates older rows, including those that v0 created, unless they belong to another
// cluster. It returns the written rows.
var upsertEvents = `INSERT INTO workload_events (id, createdat, updatedat, runtimeeventuid, type, reason, message, timestamp,
		workloadinstanceid, workloadresourceinstanceid, helmworkloadinstanceid, clusteruid, objectversion, involvedgroup,
		involvedversion, involvedkind, involvednamespace, involvedname, involveduid, count, firsttimestamp, gap)
	SELECT x.id, CAST(? AS BIGINT), CAST(? AS BIGINT), x.uid, x.type, x.reason, x.message, x.timestamp, x.workload, x.resource, x.helm,
		CAST(? AS TEXT), x.version, x.ogroup, x.oversion, x.okind, x.onamespace, x.oname, x.ouid, x.count, x.first, x.gap
	FROM x WHERE TRUE
	ON CONFLICT ` + eventConflict + ` DO UPDATE SET updatedat = excluded.updatedat, type = excluded.type, reason = excluded.reason,
		message = excluded.message, timestamp = excluded.timestamp, workloadinstanceid = excluded.workloadinstanceid,
		workloadresourceinstanceid = excluded.workloadresourceinstanceid, helmworkloadinstanceid = excluded.helmworkloadinstanceid,
		clusteruid = excluded.clusteruid, objectversion = excluded.objectversion, involvedgroup = excluded.involvedgroup,
		involvedversion = excluded.involvedversion, involvedkind = excluded.involvedkind, involvednamespace = excluded.involvednamespace,
		involvedname = excluded.involvedname, involveduid = excluded.involveduid, count = excluded.count,
		firsttimestamp = excluded.firsttimestamp, gap = excluded.gap
	WHERE workload_events.objectversion < excluded.objectversion
		AND COALESCE(` + eventClusterSQL("workload_events") + `, excluded.clusteruid) = excluded.clusteruid
	RETURNING id, runtimeeventuid`

// readEvents reads the stored version of Events that were not written, and whether they belong to this cluster.
var readEvents = "SELECT e.runtimeeventuid, e.objectversion, COALESCE(" + eventClusterSQL("e") + ", c.uid) = c.uid " +
	"FROM x CROSS JOIN workload_events e CROSS JOIN clusters c " +
	"WHERE e.runtimeeventuid = x.uid AND e.deletedat IS NULL AND e.runtimeeventuid <> '' AND c.uid = ?"

// applyEvents writes the Events that are new or newer than the stored ones.
func (a *applyTx) applyEvents(ctx context.Context) error {
	items := sortedItems(a.items, eventUID, cmp.Compare)
	byUID := make(map[string]*item, len(items))
	ids := make(map[string]int64, len(items))
	for _, one := range items {
		byUID[one.Event.UID] = one
		ids[one.Event.UID] = a.store.ids.next()
	}
	a.newEvents = make(map[instanceKey]int)
	err := a.exec(ctx, bulk{upsertEvents, a.eventInputColumns(items, ids), len(items), []any{a.now, a.now, a.agent.ClusterUID}},
		func(scan scanner) error {
			var id int64
			var uid string
			if err := scan(&id, &uid); err != nil {
				return err
			}
			one := byUID[uid]
			delete(byUID, uid)
			if id != ids[uid] {
				one.answerUpdated()
				return nil
			}
			one.answerCreated()
			a.newEvents[one.instance]++
			return nil
		})
	if err != nil {
		return err
	}
	return a.answerUnwrittenEvents(ctx, items, byUID)
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

// answerUnwrittenEvents answers the Events that upsertEvents did not return.
func (a *applyTx) answerUnwrittenEvents(ctx context.Context, items []*item, left map[string]*item) error {
	kept := sortedItems(items, func(i *item) (string, bool) { return i.Event.UID, left[i.Event.UID] == i }, cmp.Compare)
	for _, one := range kept {
		one.answerStale(0) // the answer if the row was deleted meanwhile
	}
	return a.exec(ctx, bulk{
		readEvents, []column{texts("uid", kept, func(i *item) string { return i.Event.UID })}, len(kept), []any{a.agent.ClusterUID},
	}, func(scan scanner) error {
		var uid string
		var version int64
		var own bool
		if err := scan(&uid, &version, &own); err != nil {
			return err
		}
		if one := left[uid]; own {
			one.answerNotNewer(version)
		} else {
			one.reject(threeport.ProblemForbidden, "event.uid: the Event belongs to another cluster")
		}
		return nil
	})
}

func (a *applyTx) eventInputColumns(items []*item, ids map[string]int64) []column {
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
		integers("id", items, func(i *item) int64 { return ids[i.Event.UID] }),
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
