package oracle

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// history is a scene with all writes of the agent: the Deployment changes, is deleted and created again, and an Event
// is repeated.
type history struct {
	*scene
	writes []Write
}

// The indexes of the writes of a history.
const (
	addedOld = iota
	modifiedOld
	eventOnce
	deletedOld
	addedNew
	eventTwice
	modifiedNew
	status
)

func newHistory() *history {
	h := &history{scene: newScene()}
	h.sees(deployments, "web", "deployment", "8")
	h.loses("deployment")
	h.sees(deployments, "web", "again", "20")
	h.sees(deployments, "web", "again", "100")
	ev := h.events["e2"].DeepCopy()
	ev.Series = &corev1.EventSeries{LastObservedTime: metav1.NewMicroTime(micro.Add(time.Minute))}
	h.recordEvent(ev, false)
	h.writes = []Write{
		addedOld:    operationWrite("ADDED", "deployment", "7"),
		modifiedOld: operationWrite("MODIFIED", "deployment", "8"),
		eventOnce:   eventWrite("POST", "", micro),
		deletedOld:  operationWrite("DELETED", "", ""),
		addedNew:    operationWrite("ADDED", "again", "20"),
		eventTwice:  eventWrite("PATCH", "/5", micro.Add(time.Minute)),
		modifiedNew: operationWrite("MODIFIED", "again", "100"),
		status: {
			Method: "PATCH",
			Path:   fmt.Sprintf("/v0/workload-instances/%d", webID),
			Body:   []byte(`{"Status":"Healthy"}`),
		},
	}
	return h
}

func operationWrite(operation string, uid types.UID, version string) Write {
	body := fmt.Sprintf(`{"LastOperation":%q}`, operation)
	if uid != "" {
		body = fmt.Sprintf(`{"LastOperation":%q,"RuntimeDefinition":{"metadata":{"uid":%q,"resourceVersion":%q}}}`, operation, uid, version)
	}
	return Write{Method: "PATCH", Path: fmt.Sprintf("/v0/workload-resource-instances/%d", resourceID), Body: []byte(body)}
}

func eventWrite(method, row string, when time.Time) Write {
	body := fmt.Appendf(nil, `{"RuntimeEventUID":"e2","Reason":"Scheduled","Timestamp":%q}`, when.Format(time.RFC3339Nano))
	return Write{Method: method, Path: "/v0/workload-events" + row, Body: body}
}

// drop removes a write.
func (h *history) drop(i int) { h.writes = slices.Delete(h.writes, i, i+1) }

// move moves a write to the place before another.
func (h *history) move(i, before int) {
	moved := h.writes[i]
	h.drop(i)
	h.writes = slices.Insert(h.writes, before, moved)
}

func TestCheckOrder_Accepts(t *testing.T) {
	for reason, change := range map[string]func(*history){
		"everything in order": func(*history) {},
		"a version left out":  func(h *history) { h.drop(modifiedOld) },
		"a write repeated": func(h *history) {
			for i := status; i >= 0; i-- {
				h.writes = slices.Insert(h.writes, i, h.writes[i])
			}
		},
		"versions and times that an interrupted oracle did not observe": func(h *history) {
			h.Interrupted()
			h.writes[modifiedOld], h.writes[eventOnce] = operationWrite("MODIFIED", "deployment", "9"), eventWrite("POST", "", at)
		},
		"an ambiguous first report repeated in a newer version": func(h *history) {
			h.writes[modifiedOld] = operationWrite("ADDED", "deployment", "8")
		},
	} {
		t.Run(reason, func(t *testing.T) {
			h := newHistory()
			change(h)
			if differences := h.CheckOrder(h.writes, h.workloads); len(differences) > 0 {
				t.Errorf("want no difference, got\n%s", strings.Join(differences, "\n"))
			}
		})
	}
}

func TestCheckOrder_Differences(t *testing.T) {
	const web = "web: expected the agent to report Deployment web "
	const event = "expected the agent to report Event Scheduled (e2) "
	for reason, c := range map[string]struct {
		change func(*history)
		want   []string
	}{
		"versions reversed": {
			change: func(h *history) {
				h.writes[addedOld], h.writes[modifiedOld] = operationWrite("ADDED", "deployment", "8"), operationWrite("MODIFIED", "deployment", "7")
			},
			want: []string{web + "in order, it reported version 7 of deployment after 8"},
		},
		"versions reversed that differ in length": {
			change: func(h *history) {
				h.writes[addedNew], h.writes[modifiedNew] = operationWrite("ADDED", "again", "100"), operationWrite("MODIFIED", "again", "20")
			},
			want: []string{web + "in order, it reported version 20 of again after 100"},
		},
		"no DELETED between two incarnations": {
			change: func(h *history) { h.drop(deletedOld) },
			want:   []string{web + "as DELETED before it is created again, it reported again right after deployment"},
		},
		"DELETED after the next incarnation": {
			change: func(h *history) { h.move(deletedOld, modifiedNew) },
			want: []string{
				web + "as DELETED before it is created again, it reported again right after deployment",
				web + "as DELETED only after its deletion, but again exists",
			},
		},
		"an incarnation that returns": {
			change: func(h *history) { h.writes = append(h.writes, operationWrite("MODIFIED", "deployment", "8")) },
			want: []string{
				web + "in order, it reported MODIFIED of deployment again after again",

				web + "as DELETED before it is created again, it reported deployment right after again",
				web + "as ADDED first, it reported MODIFIED of deployment",
			},
		},
		"a change after DELETED": {
			change: func(h *history) { h.move(deletedOld, modifiedOld) },
			want:   []string{web + "as DELETED last, it reported MODIFIED of deployment afterwards"},
		},
		"an incarnation that was never ADDED": {
			change: func(h *history) { h.drop(addedNew) },
			want:   []string{web + "as ADDED first, it reported MODIFIED of again"},
		},
		"DELETED of an existing object": {
			change: func(h *history) { h.writes = append(h.writes, h.writes[deletedOld]) },
			want:   []string{web + "as DELETED only after its deletion, but again exists"},
		},
		"a version that the cluster never had": {
			change: func(h *history) { h.writes[modifiedNew] = operationWrite("MODIFIED", "again", "101") },
			want:   []string{web + `in versions that the cluster had, it reported MODIFIED of version 101 of "again"`},
		},
		"an object that the cluster never had, with an interrupted oracle": {
			change: func(h *history) {
				h.Interrupted()
				h.writes = append(h.writes, h.writes[deletedOld], operationWrite("ADDED", "never", "101"))
				h.objects["again"] = object{fullName: h.objects["again"].fullName, uid: "again", deleted: true, versions: []string{"20", "100"}}
			},
			want: []string{web + `in versions that the cluster had, it reported ADDED of version 101 of "never"`},
		},
		"a row of no workload": {
			change: func(h *history) {
				h.writes = append(h.writes, Write{
					Method: "PATCH",
					Path:   "/v0/workload-resource-instances/3",
					Body:   []byte("{}"),
				})
			},
			want: []string{"expected the agent to report only resources of workloads, it wrote to row 3"},
		},
		"a body cut off": {
			change: func(h *history) { h.writes[modifiedNew].Body = h.writes[modifiedNew].Body[:20] },
			want:   []string{web + "as JSON, it wrote unexpected end of JSON input"},
		},
		"an Event's times reversed": {
			change: func(h *history) { h.move(eventTwice, eventOnce) },
			want:   []string{event + "in order, it reported 2026-07-01T12:00:00.123456Z after 2026-07-01T12:01:00.123456Z"},
		},
		"an Event's time that it never had": {
			change: func(h *history) { h.writes[eventOnce] = eventWrite("POST", "", at) },
			want:   []string{event + "with times that it had, it reported 2026-07-01T12:00:00Z"},
		},
	} {
		t.Run(reason, func(t *testing.T) {
			h := newHistory()
			c.change(h)
			if differences := h.CheckOrder(h.writes, h.workloads); !slices.Equal(differences, c.want) {
				t.Errorf("want\n%s\ngot\n%s", strings.Join(c.want, "\n"), strings.Join(differences, "\n"))
			}
		})
	}
}
