package oracle

import (
	"strings"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// gapRow is the row about Events that were dropped.
func gapRow(uid, message string) threeport.WorkloadEvent {
	r := row(uid, gapReason, message, at)
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
			change: func(s *scene) { s.Events[1] = gapRow("gap", one) },
		},
		"an old version of an Event that is counted": {
			change: func(s *scene) {
				s.Events[1].Timestamp = new(micro.Add(-time.Minute))
				s.Events = append(s.Events, gapRow("gap", one))
			},
		},
		"two rows that count one each": {
			change: func(s *scene) { s.Events[0], s.Events[1] = gapRow("gap", one), gapRow("gap-2", one) },
		},
		"a missing Event of another type": {
			change: func(s *scene) {
				s.Events[1] = gapRow("gap", "1 Events (0 Normal, 1 Warning) that happened between A and B")
			},
			want: []string{"web: expected the agent to count the Events that it dropped, it counts 1 Warning Events more than are missing", event + "once, the API has 0 rows"},
		},
		"more missing than counted": {
			change: func(s *scene) {
				s.sees(pods, "web-1-a", "pod", "10", ownedBy("set"))
				s.Events = append(s.Events[2:], gapRow("gap", one))
			},
			want: []string{"web: expected the agent to report Event "},
		},
		"more counted than missing": {
			change: func(s *scene) { s.Events = append(s.Events, gapRow("gap", one)) },
			want:   []string{"web: expected the agent to count the Events that it dropped, it counts 1 Normal Events more than are missing"},
		},
		"a count that is doubled": {
			change: func(s *scene) { s.Events[1] = gapRow("gap", one); s.Events = append(s.Events, gapRow("gap", one)) },
			want:   []string{"web: expected the agent to say once how many Events it dropped (gap), the API has 2 rows of it"},
		},
		"a count of nobody": {
			change: func(s *scene) {
				r := gapRow("gap", one)
				r.WorkloadInstanceID = new(int64(4))
				s.Events = append(s.Events, r)
			},
			want: []string{"no workload: expected the agent to say how many Events it dropped (gap): it belongs to no workload"},
		},
		"a count that cannot be read": {
			change: func(s *scene) { s.Events = append(s.Events, gapRow("gap", "some Events were dropped")) },
			want:   []string{`web: expected the agent to say how many Events it dropped (gap): its message is "some Events were dropped"`},
		},
		"numbers that do not add up": {
			change: func(s *scene) {
				s.Events[1] = gapRow("gap", "3 Events (1 Normal, 1 Warning) that happened between A and B")
			},
			want: []string{event + "once, the API has 0 rows", "web: expected the agent to say how many Events it dropped (gap): its numbers do not add up"},
		},
		"another workload's missing Event": {
			change: func(s *scene) { s.Events[2] = gapRow("gap", one) },
			want: []string{
				"chart: expected the agent to report Event Started of Pod hook (e3) once, the API has 0 rows",
				"web: expected the agent to count the Events that it dropped, it counts 1 Normal Events more than are missing",
			},
		},
		"a missing Event that is counted, reported to the wrong workload too": {
			change: func(s *scene) {
				s.Events[0].WorkloadInstanceID = new(int64(chartID))
				s.Events[1] = gapRow("gap", one)
			},
			want: []string{"web: expected the agent to report Event ScalingReplicaSet of Deployment web (e1) with workload instance"},
		},
	} {
		t.Run(reason, func(t *testing.T) {
			s := newScene()
			c.change(s)
			differences := s.Check(s.History, s.workloads)
			if len(differences) != len(c.want) {
				t.Fatalf("expected %d sentences, got\n%s", len(c.want), strings.Join(differences, "\n"))
			}
			for i, want := range c.want {
				if !strings.HasPrefix(differences[i], want) {
					t.Errorf("expected\n%s\ngot\n%s", want, differences[i])
				}
			}
		})
	}
}
