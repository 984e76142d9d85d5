package oracle

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// heldRows are the rows of a control plane with all writes of newHistory.
func heldRows() History {
	return History{
		Events: []threeport.WorkloadEvent{{RuntimeEventUID: new("e2"), Timestamp: new(micro.Add(time.Minute))}},
		Resources: map[int64]threeport.WorkloadResourceInstance{
			resourceID: {RuntimeDefinition: []byte(`{"metadata":{"uid":"again","resourceVersion":"100"}}`)},
		},
	}
}

func TestCheckRetained(t *testing.T) {
	const lost = "expected the control plane to retain an accepted write: "
	at := func(when time.Time) string { return when.UTC().Format(time.RFC3339Nano) }
	later := micro.Add(time.Minute)
	row := fmt.Sprintf("row %d ", resourceID)
	for reason, c := range map[string]struct {
		change func(*History)
		want   []string
	}{
		"everything is retained": {change: func(*History) {}},
		"the rows are newer": {
			change: func(h *History) {
				h.Events[0].Timestamp = new(later.Add(time.Minute))
				h.Resources[resourceID] = threeport.WorkloadResourceInstance{RuntimeDefinition: []byte(`{"metadata":{"resourceVersion":"101"}}`)}
			},
		},
		"an Event has a current and an old row": {
			change: func(h *History) {
				h.Events = append(h.Events, threeport.WorkloadEvent{RuntimeEventUID: new("e2"), Timestamp: new(micro)})
			},
		},
		"an Event has no row": {
			change: func(h *History) { h.Events = nil },
			want:   []string{lost + "no row for Event Scheduled (e2)", lost + "no row for Event Scheduled (e2)"},
		},
		"an Event's repeat is lost": {
			change: func(h *History) { h.Events[0].Timestamp = new(micro) },
			want:   []string{lost + "the row of Event Scheduled (e2) has the time " + at(micro) + ", it had " + at(later)},
		},
		"a version is lost": {
			change: func(h *History) {
				h.Resources[resourceID] = threeport.WorkloadResourceInstance{RuntimeDefinition: []byte(`{"metadata":{"resourceVersion":"20"}}`)}
			},
			want: []string{lost + row + "has version 20, it had 100"},
		},
		"a row is lost": {
			change: func(h *History) { h.Resources = nil },
			want:   slices.Repeat([]string{lost + row + "has no object: unexpected end of JSON input"}, 4),
		},
	} {
		t.Run(reason, func(t *testing.T) {
			held := heldRows()
			c.change(&held)
			if got := CheckRetained(held, newHistory().writes); !slices.Equal(got, c.want) {
				t.Errorf("want\n%s\ngot\n%s", strings.Join(c.want, "\n"), strings.Join(got, "\n"))
			}
		})
	}
}

func TestCheckRetained_ComparesMicroseconds(t *testing.T) {
	write := eventWrite("POST", "", micro.Add(time.Minute+999*time.Nanosecond))
	if got := CheckRetained(heldRows(), []Write{write}); len(got) > 0 {
		t.Errorf("want no difference, got %s", got)
	}
}
