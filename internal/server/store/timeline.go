package store

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// TimelineQuery says which Events of a workload are asked for. The zero value asks for all.
type TimelineQuery struct {
	// Level is Normal or Warning; empty for both.
	Level string
	// Kind is that of the object that an Event is about.
	Kind string
	// Text is to be in the reason, the message or the object's name. Letters of ASCII match in either case.
	Text string
	// From and To bound when an Event happened last; From is included, To is not.
	From, To *time.Time
	// Cursor is where the page begins, as the one before it said; empty for the first.
	Cursor string
	// Size is how many Events a page has, up to 1,000; 0 stands for 100.
	Size int
}

var levels = []string{"Normal", "Warning"}

// Validate says which parameter is wrong: its error is a [ParameterError].
func (q TimelineQuery) Validate() error {
	if err := checkWord("level", q.Level, levels); err != nil {
		return err
	}
	if err := checkText("kind", q.Kind); err != nil {
		return err
	}
	if err := checkText("text", q.Text); err != nil {
		return err
	}
	if q.From != nil && q.To != nil && q.To.Before(*q.From) {
		return &ParameterError{"to", "a time that is not before from"}
	}
	if _, err := pageSize(q.Size); err != nil {
		return err
	}
	_, err := q.place()
	return err
}

// timelinePlace is the place of an Event in the list: what a cursor holds.
type timelinePlace struct {
	List string       `json:"list"` // timelineList
	Time int64        `json:"time"` // microseconds
	ID   threeport.ID `json:"id"`
}

const timelineList = "timeline"

// place is where the page begins; nil for the first.
func (q TimelineQuery) place() (*timelinePlace, error) {
	if q.Cursor == "" {
		return nil, nil
	}
	place, err := decodeCursor[timelinePlace](q.Cursor)
	if err != nil || place.List != timelineList {
		return nil, ErrCursor
	}
	return &place, nil
}

// Timeline returns a page of a workload's Events, newest first. The query's errors are those of Validate; [ErrNotFound]
// if there is no such workload.
func (s *Store) Timeline(ctx context.Context, instance threeport.Instance, q TimelineQuery) (threeport.List[threeport.TimelineEvent], error) {
	list := threeport.List[threeport.TimelineEvent]{Items: []threeport.TimelineEvent{}}
	if err := q.Validate(); err != nil {
		return list, err
	}
	if _, err := s.boardRow(ctx, instance); err != nil {
		return list, err
	}
	size, _ := pageSize(q.Size) // valid
	place, _ := q.place()       // valid
	where := s.dialect.timeline(instance, q)
	query, args := timelinePage(where, place, size+1)
	events, err := collect(ctx, s, query, args, scanTimelineEvent)
	if err != nil {
		return list, fmt.Errorf("list events of workload: %w", err)
	}
	list.Total = int64(len(events))
	if place != nil || len(events) > size {
		if list.Total, err = first(ctx, s, timelineCount(where), where.args, number); err != nil {
			return list, fmt.Errorf("count events of workload: %w", err)
		}
	}
	if len(events) > size {
		events = events[:size]
		last := events[size-1]
		if list.Next, err = encodeCursor(timelinePlace{timelineList, last.Time.UnixMicro(), last.ID}); err != nil {
			return list, err
		}
	}
	list.Items = append(list.Items, events...)
	return list, nil
}

// microsOf is a time in microseconds; one that these cannot hold is the nearest that they can.
func microsOf(t time.Time) int64 {
	switch year := t.Year(); {
	case year < -290000:
		return math.MinInt64
	case year > 290000:
		return math.MaxInt64
	default:
		return t.UnixMicro()
	}
}
