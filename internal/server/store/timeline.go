package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// TimelineQuery selects Events of a workload. The zero value selects all.
type TimelineQuery struct {
	// Level is Normal or Warning; empty for both.
	Level string
	// Kind is the kind of the involved object.
	Kind string
	// Text must occur at the beginning of the reason, the message or the object's name: see maxSearched. ASCII letters match in
	// either case.
	Text string
	// From (inclusive) and To (exclusive) limit the last occurrence of an Event.
	From, To *time.Time
	// Cursor is the Next of the previous page; empty for the first page.
	Cursor string
	// Size is the page size, up to 1,000; 0 means 100.
	Size int
}

var levels = []string{"Normal", "Warning"}

// Validate returns a [FieldError] for the first invalid parameter.
func (q TimelineQuery) Validate() error {
	if err := checkOneOf("level", q.Level, levels); err != nil {
		return err
	}
	if err := checkText("kind", q.Kind); err != nil {
		return err
	}
	if err := checkSearch(q.Text); err != nil {
		return err
	}
	if q.From != nil && q.To != nil && q.To.Before(*q.From) {
		return &FieldError{"to", "a time that is not before from"}
	}
	if _, err := pageSize(q.Size); err != nil {
		return err
	}
	_, err := q.position()
	return err
}

// timelinePosition is the position of an Event in the list, as a cursor contains it.
type timelinePosition struct {
	List string       `json:"list"` // timelineList
	Time int64        `json:"time"` // microseconds
	ID   threeport.ID `json:"id"`
}

const timelineList = "timeline"

// position is where the page begins; nil for the first page.
func (q TimelineQuery) position() (*timelinePosition, error) {
	if q.Cursor == "" {
		return nil, nil
	}
	place, err := decodeCursor[timelinePosition](q.Cursor)
	if err != nil || place.List != timelineList {
		return nil, ErrCursor
	}
	return &place, nil
}

// Timeline returns a page of a workload's Events, newest first. A page ends after maxPageBytes, also with fewer than q.Size
// Events. The error is that of Validate, [ErrNotFound] if the workload does not exist, or [ErrSearchTimeout].
func (s *Store) Timeline(
	ctx context.Context, instance threeport.Instance, q TimelineQuery,
) (list threeport.List[threeport.TimelineEvent], err error) {
	if q.Text == "" {
		return s.timeline(ctx, instance, q)
	}
	err = s.search(ctx, func(ctx context.Context) error {
		list, err = s.timeline(ctx, instance, q)
		return err
	})
	return list, err
}

// timeline implements Timeline.
func (s *Store) timeline(ctx context.Context, instance threeport.Instance, q TimelineQuery) (threeport.List[threeport.TimelineEvent], error) {
	list := threeport.List[threeport.TimelineEvent]{Items: []threeport.TimelineEvent{}}
	if err := q.Validate(); err != nil {
		return list, err
	}
	if _, err := s.workloadRow(ctx, instance); err != nil {
		return list, err
	}
	size, _ := pageSize(q.Size) // validated above
	place, _ := q.position()    // validated above
	where := s.dialect.timeline(instance, q)
	query, args := timelinePage(where, place, size+1)
	events, more, err := collectPage(ctx, s.read, query, args, scanTimelineEvent, eventBytes)
	if err != nil {
		return list, fmt.Errorf("list events of workload: %w", err)
	}
	if len(events) > size {
		events, more = events[:size], true
	}
	list.Total = int64(len(events))
	if place != nil || more {
		if list.Total, err = first(ctx, s.read, timelineCount(where), where.args, number); err != nil {
			return list, fmt.Errorf("count events of workload: %w", err)
		}
	}
	if more {
		last := events[len(events)-1]
		if list.Next, err = encodeCursor(timelinePosition{timelineList, last.Time.UnixMicro(), last.ID}); err != nil {
			return list, err
		}
	}
	list.Items = append(list.Items, events...)
	return list, nil
}

// timeline is the WHERE clause of the query.
func (d dialect) timeline(instance threeport.Instance, q TimelineQuery) whereClause {
	var where whereClause
	where.add(eventColumn(instance.Type)+" = ?", int64(instance.ID))
	where.add("deletedat IS NULL")
	if q.Level != "" {
		where.add("type = ?", q.Level)
	}
	if q.Kind != "" {
		where.add("involvedkind = ?", q.Kind)
	}
	if q.Text != "" {
		text := lowerASCII(q.Text)
		where.add("("+d.contains("reason")+" OR "+d.contains("message")+" OR "+d.contains("involvedname")+")", text, text, text)
	}
	if q.From != nil {
		where.add("timestamp >= ?", microsOf(*q.From))
	}
	if q.To != nil {
		where.add("timestamp < ?", microsOf(*q.To))
	}
	return where
}

// timelinePage selects up to limit Events after a position.
func timelinePage(where whereClause, place *timelinePosition, limit int) (query string, args []any) {
	where = where.clone()
	if place != nil {
		where.add("(timestamp, id) < (?, ?)", place.Time, int64(place.ID))
	}
	return "SELECT " + eventColumns + " FROM workload_events WHERE " + where.String() +
		" ORDER BY timestamp DESC, id DESC LIMIT ?", append(where.args, limit)
}

func timelineCount(where whereClause) string {
	return "SELECT COUNT(*) FROM workload_events WHERE " + where.String()
}

// The texts may be longer than any limit: earlier versions had none for v0.
var eventColumns = "id, " + boundedText("runtimeeventuid") + ", workloadresourceinstanceid, involvedgroup, involvedversion, involvedkind, involvednamespace, " +
	"involvedname, involveduid, " + boundedText("type") + ", " + boundedText("reason") + ", " + boundedText("message") +
	", timestamp, firsttimestamp, count, gap"

// eventBytes is about the size of an Event in an answer.
func eventBytes(e threeport.TimelineEvent) int {
	const others = 512 // the names of the fields, and the values with small limits
	return others + jsonBytes(e.UID, e.Type, e.Reason, e.Message)
}

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
	if kind.String != "" { // rows that v0 created have no prefix
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
