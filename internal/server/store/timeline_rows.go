package store

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// timeline selects the rows of the query from workload_events.
func (d dialect) timeline(instance threeport.Instance, q TimelineQuery) conditions {
	var where conditions
	where.add(eventColumn(instance.Type)+" = ?", int64(instance.ID))
	where.add("deletedat IS NULL")
	if q.Level != "" {
		where.add("type = ?", q.Level)
	}
	if q.Kind != "" {
		where.add("involvedkind = ?", q.Kind)
	}
	if q.Text != "" {
		pattern := likePattern(q.Text)
		where.add(fmt.Sprintf(`(reason %[1]s ? ESCAPE '\' OR message %[1]s ? ESCAPE '\' OR involvedname %[1]s ? ESCAPE '\')`, d.like()),
			pattern, pattern, pattern)
	}
	if q.From != nil {
		where.add("timestamp >= ?", microsOf(*q.From))
	}
	if q.To != nil {
		where.add("timestamp < ?", microsOf(*q.To))
	}
	return where
}

// timelinePage is the query for up to limit Events behind a place.
func timelinePage(where conditions, place *timelinePlace, limit int) (query string, args []any) {
	// The conditions are shared: no append may write into their space.
	where = conditions{terms: slices.Clip(where.terms), args: slices.Clip(where.args)}
	if place != nil {
		where.add("(timestamp, id) < (?, ?)", place.Time, int64(place.ID))
	}
	return "SELECT " + eventColumns + " FROM workload_events WHERE " + where.String() +
		" ORDER BY timestamp DESC, id DESC LIMIT ?", append(where.args, limit)
}

func timelineCount(where conditions) string {
	return "SELECT COUNT(*) FROM workload_events WHERE " + where.String()
}

const eventColumns = "id, runtimeeventuid, workloadresourceinstanceid, involvedgroup, involvedversion, involvedkind, involvednamespace, " +
	"involvedname, involveduid, type, reason, message, timestamp, firsttimestamp, count, gap"

func scanTimelineEvent(scan scanner) (threeport.TimelineEvent, error) {
	var (
		event                                      threeport.TimelineEvent
		id, at                                     int64
		resource, firstAt, count                   sql.NullInt64
		group, version, kind, namespace, name, uid sql.NullString
		gap                                        sql.NullString
	)
	err := scan(&id, &event.UID, &resource, &group, &version, &kind, &namespace, &name, &uid,
		&event.Type, &event.Reason, &event.Message, &at, &firstAt, &count, &gap)
	if err != nil {
		return event, err
	}
	event.ID, event.ResourceInstanceID = threeport.ID(id), threeport.ID(resource.Int64)
	event.Involved = threeport.ObjectRef{
		Group: group.String, Version: version.String, Kind: kind.String, Namespace: namespace.String, Name: name.String, UID: uid.String,
	}
	if kind.String != "" { // rows that v0 made have their message as it is
		event.Derived = true
		event.Message, event.Derived = strings.CutPrefix(event.Message, messagePrefix(&event.EventReport))
	}
	event.Time, event.FirstTime, event.Count = fromMicros(at), optionalTime(firstAt), count.Int64
	if gap.String != "" {
		if err := json.Unmarshal([]byte(gap.String), &event.Gap); err != nil {
			return event, fmt.Errorf("read gap of event %d: %w", id, err)
		}
	}
	return event, nil
}
