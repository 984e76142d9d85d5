package recording

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// happening is an Event that is being normalised.
type happening struct {
	*unstructured.Unstructured
	// first is when it happened first, exactly.
	first time.Time
	// about is what it is about.
	about reference
	// exact says that its count is one that the moment fixes.
	exact bool
}

// reference is one incarnation of an object.
type reference struct {
	kind, name, uid string
}

// newHappenings makes happenings of Events, in the order in which they happened.
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

// triedOnce leaves of the scheduler's Events that tell the same only the first: whether it has tried again by now is
// chance. The second try makes an Event of its own, since the first has changed the pod (client-go, tools/events:
// the key has the resource version); what follows are the series of that.
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

// firstTime returns when an Event happened first: the suffix of its name, in nanoseconds (client-go,
// tools/record), else its own first time.
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

// counted are the reasons of Events that happen once for each start of a container, or each try to pull: a moment
// that fixes the number of restarts fixes their counts.
var counted = []string{"Created", "Started", "Killing", "Pulling"}

// settleCounts makes each count the same in a repeat: exact where a moment fixes it, else 2 for more than one.
// That an image is present (Pulled) is told once per start where containers are created, and again and again
// where they cannot be.
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
