package recording

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// happening is an Event during its normalization.
type happening struct {
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

// newHappenings returns the happenings of Events in the order of their first occurrences.
func newHappenings(events []*unstructured.Unstructured) []*happening {
	var out []*happening
	for _, event := range events {
		h := &happening{Unstructured: prune(event), first: firstTime(event)}
		h.about = reference{h.text("involvedObject", "kind"), h.text("involvedObject", "name"), h.text("involvedObject", "uid")}
		out = append(out, h)
	}
	slices.SortFunc(out, func(a, b *happening) int {
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
func triedOnce(events []*happening) []*happening {
	seen := map[string]bool{}
	return slices.DeleteFunc(events, func(h *happening) bool {
		if h.count() > 0 { // not the scheduler's
			return false
		}
		key := h.about.uid + " " + h.text("reason") + " " + h.text("message")
		again := seen[key]
		seen[key] = true
		return again
	})
}

func (h *happening) text(path ...string) string {
	text, _, _ := unstructured.NestedString(h.Object, path...)
	return text
}

func (h *happening) count() int64 {
	count, _, _ := unstructured.NestedInt64(h.Object, "count")
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
func settleCounts(events []*happening) {
	created := map[string]int64{}
	container := func(h *happening) string { return h.about.uid + " " + h.text("involvedObject", "fieldPath") }
	for _, h := range events {
		if h.text("reason") == "Created" {
			created[container(h)] += h.count()
		}
	}
	for _, h := range events {
		reason := h.text("reason")
		h.exact = h.count() < 2 || slices.Contains(counted, reason) ||
			reason == "Pulled" && h.count() == created[container(h)]
		if !h.exact {
			h.Object["count"] = int64(2)
		}
	}
}
