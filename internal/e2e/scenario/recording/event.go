package recording

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// normalizedEvent is an Event during its normalization.
type normalizedEvent struct {
	*unstructured.Unstructured
	// first is the exact time of the first occurrence.
	first time.Time
	// about is the involved object.
	about reference
	// exact means that the moment determines the count.
	exact bool
}

// reference is one incarnation of an object.
type reference struct {
	kind, name, uid string
}

// normalizeEvents returns normalized Events in the order of their first occurrences.
func normalizeEvents(events []*unstructured.Unstructured) []*normalizedEvent {
	var out []*normalizedEvent
	for _, event := range events {
		e := &normalizedEvent{Unstructured: prune(event), first: firstTime(event)}
		e.about = reference{e.text("involvedObject", "kind"), e.text("involvedObject", "name"), e.text("involvedObject", "uid")}
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b *normalizedEvent) int {
		if c := a.first.Compare(b.first); c != 0 {
			return c
		}
		return strings.Compare(a.GetName(), b.GetName())
	})
	out = triedOnce(out)
	settleCounts(out)
	return out
}

// triedOnce keeps only the first of equal Events of the scheduler, because the number of its attempts is random. The second
// attempt creates another Event: the first one has changed the pod, and the key of an Event includes the resource version
// (client-go, tools/events). Further attempts extend the series of the second Event.
func triedOnce(events []*normalizedEvent) []*normalizedEvent {
	seen := map[string]bool{}
	return slices.DeleteFunc(events, func(e *normalizedEvent) bool {
		if e.count() > 0 { // not the scheduler's
			return false
		}
		key := e.about.uid + " " + e.text("reason") + " " + e.text("message")
		again := seen[key]
		seen[key] = true
		return again
	})
}

func (e *normalizedEvent) text(path ...string) string {
	text, _, _ := unstructured.NestedString(e.Object, path...)
	return text
}

func (e *normalizedEvent) count() int64 {
	count, _, _ := unstructured.NestedInt64(e.Object, "count")
	return count
}

// firstTime returns the time of the first occurrence: the suffix of the name in nanoseconds (client-go, tools/record), or else
// the field of the Event.
func firstTime(event *unstructured.Unstructured) time.Time {
	name := event.GetName()
	if nanos, err := strconv.ParseInt(name[strings.LastIndexByte(name, '.')+1:], 16, 64); err == nil && nanos > 1e18 {
		return time.Unix(0, nanos).UTC()
	}
	for _, field := range []string{"eventTime", "firstTimestamp"} {
		text, _, _ := unstructured.NestedString(event.Object, field)
		if t, ok := instant(text); ok {
			return t
		}
	}
	return event.GetCreationTimestamp().UTC()
}

// counted lists the reasons of Events that happen once for each start of a container or each attempt to pull. A moment with a
// fixed number of restarts determines their counts.
var counted = []string{"Created", "Started", "Killing", "Pulling"}

// settleCounts makes each count the same in every run: the exact one if the moment determines it, otherwise 2 for more than one.
// The Event Pulled for a present image happens once for each start, but repeatedly if the container cannot be created.
func settleCounts(events []*normalizedEvent) {
	created := map[string]int64{}
	container := func(e *normalizedEvent) string { return e.about.uid + " " + e.text("involvedObject", "fieldPath") }
	for _, e := range events {
		if e.text("reason") == "Created" {
			created[container(e)] += e.count()
		}
	}
	for _, e := range events {
		reason := e.text("reason")
		e.exact = e.count() < 2 || slices.Contains(counted, reason) ||
			reason == "Pulled" && e.count() == created[container(e)]
		if !e.exact {
			e.Object["count"] = int64(2)
		}
	}
}
