package oracle

import (
	"strings"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// droppedRow is a row that counts dropped Events.
func droppedRow(uid, message string) threeport.WorkloadEvent {
	r := row(uid, droppedReason, message, at)
	r.Type, r.WorkloadResourceInstanceID = new("Warning"), nil
	return r
}

func TestCheck_DroppedEvents(t *testing.T) {
	const one = "1 Events (1 Normal, 0 Warning) that happened between A and B were dropped"
	const event = "web: expected the agent to report Event Scheduled of Pod web-1-a (e2) "
	for reason, c := range map[string]struct {
		change func(*scene)
		want   []string // the beginning of each sentence
	}{
		"a missing Event that is counted": {
			change: func(s *scene) { s.Events[1] = droppedRow("gap", one) },
		},
		"an old version of an Event that is counted": {
			change: func(s *scene) {
				s.Events[1].Timestamp = new(micro.Add(-time.Minute))
				s.Events = append(s.Events, droppedRow("gap", one))
			},
		},
		"two rows that count one each": {
			change: func(s *scene) { s.Events[0], s.Events[1] = droppedRow("gap", one), droppedRow("gap-2", one) },
		},
		"a missing Event of another type": {
			change: func(s *scene) {
				s.Events[1] = droppedRow("gap", "1 Events (0 Normal, 1 Warning) that happened between A and B")
			},
			want: []string{"web: expected the agent to count the dropped Events, it counts 1 Warning Events more than are missing", event + "once, the API has 0 rows"},
		},
		"more missing than counted": {
			change: func(s *scene) {
				s.sees(pods, "web-1-a", "pod", "10", ownedBy("set"))
				s.Events = append(s.Events[2:], droppedRow("gap", one))
			},
			want: []string{"web: expected the agent to report Event "},
		},
		"more counted than missing": {
			change: func(s *scene) { s.Events = append(s.Events, droppedRow("gap", one)) },
			want:   []string{"web: expected the agent to count the dropped Events, it counts 1 Normal Events more than are missing"},
		},
		"two rows of one count": {
			change: func(s *scene) {
				s.Events[1] = droppedRow("gap", one)
				s.Events = append(s.Events, droppedRow("gap", one))
			},
			want: []string{"web: expected the agent to report the number of dropped Events (gap) once, the API has 2 rows of it"},
		},
		"a count of no workload": {
			change: func(s *scene) {
				r := droppedRow("gap", one)
				r.WorkloadInstanceID = new(int64(4))
				s.Events = append(s.Events, r)
			},
			want: []string{"no workload: expected the agent to report the number of dropped Events (gap): the row belongs to no workload"},
		},
		"a count that cannot be read": {
			change: func(s *scene) { s.Events = append(s.Events, droppedRow("gap", "some Events were dropped")) },
			want:   []string{`web: expected the agent to report the number of dropped Events (gap): unexpected message "some Events were dropped"`},
		},
		"numbers that do not add up": {
			change: func(s *scene) {
				s.Events[1] = droppedRow("gap", "3 Events (1 Normal, 1 Warning) that happened between A and B")
			},
			want: []string{event + "once, the API has 0 rows", "web: expected the agent to report the number of dropped Events (gap): the numbers of the message do not add up"},
		},
		"another workload's missing Event": {
			change: func(s *scene) { s.Events[2] = droppedRow("gap", one) },
			want: []string{
				"chart: expected the agent to report Event Started of Pod hook (e3) once, the API has 0 rows",

				"web: expected the agent to count the dropped Events, it counts 1 Normal Events more than are missing",
			},
		},
		"a missing Event that is counted, reported to the wrong workload too": {
			change: func(s *scene) {
				s.Events[0].WorkloadInstanceID = new(int64(chartID))
				s.Events[1] = droppedRow("gap", one)
			},
			want: []string{"web: expected the agent to report Event ScalingReplicaSet of Deployment web (e1) with workload instance"},
		},
	} {
		t.Run(reason, func(t *testing.T) {
			s := newScene()
			c.change(s)
			differences := s.Check(s.History, s.workloads)
			if len(differences) != len(c.want) {
				t.Fatalf("want %d differences, got\n%s", len(c.want), strings.Join(differences, "\n"))
			}
			for i, want := range c.want {
				if !strings.HasPrefix(differences[i], want) {
					t.Errorf("want\n%s\ngot\n%s", want, differences[i])
				}
			}
		})
	}
}
