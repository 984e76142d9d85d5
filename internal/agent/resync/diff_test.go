package resync

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/outbox"
	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// settled is a world in which everything was delivered: two resources, one that is absent, three Events and a status.
type settled struct {
	*world
	first, second, absent target.Attribution
	old                   observe.Operation // of the absent one
	events                []observe.Event
}

func newSettled(t *testing.T) *settled {
	t.Helper()
	w := newWorld(t)
	s := &settled{world: w, first: w.resource("first"), second: w.resource("second"), absent: w.resource("absent")}
	for i := range 3 {
		s.events = append(s.events, event(w.instance, fmt.Sprintf("uid-%d", i), "1", time.Now()))
	}
	s.old = operation(s.absent, "uid-old", "3")
	w.cluster.edit(w.instance, func(i *observe.DesiredState) {
		i.Operations = []observe.Operation{operation(s.first, "uid-1", "1"), operation(s.second, "uid-2", "2"), s.old}
		i.Events = slices.Clone(s.events)
		i.Status = observe.Status{Workload: w.instance, Status: "Healthy"}
	})
	w.offer()
	w.syncNow()
	w.deliver()
	w.cluster.edit(w.instance, func(i *observe.DesiredState) {
		i.Operations, i.Absent = i.Operations[:2:2], []target.Attribution{s.absent}
	})
	s.old.Deleted, s.old.Body = true, nil
	w.box.Offer(s.old)
	if got := len(w.deliver()); got != 1 {
		t.Fatalf("%d requests for a deletion", got)
	}
	return s
}

// eventID returns the ID of the only row of an Event.
func (s *settled) eventID(uid types.UID) string {
	s.t.Helper()
	rows := s.call("GET", "workload-events?runtimeeventuid="+string(uid), "")
	if len(rows) != 1 {
		s.t.Fatalf("%s has %d rows", uid, len(rows))
	}
	return fmt.Sprint(rows[0]["ID"])
}

func (s *settled) patch(attribution target.Attribution, body string) {
	s.t.Helper()
	s.call("PATCH", fmt.Sprintf("workload-resource-instances/%d", attribution.Resource.ID), body)
}

func TestResyncer_Diff_OfEqualRowsChangesNothing(t *testing.T) {
	s := newSettled(t)
	s.requests = nil
	if got := s.audit(); got != 0 || len(s.writes()) > 0 || len(s.deliver()) > 0 {
		t.Errorf("%v repairs: %q", got, s.logs.all)
	}
	// After a restart only the initial sync knows the rows; it repeats none of them either.
	s.restart()
	s.offer()
	s.syncNow()
	if got := s.deliver(); len(got) > 1 || len(got) == 1 && !strings.Contains(got[0], "/workload-instances/") {
		t.Errorf("sent %q", got) // the status only
	}
	if got := s.audit(); got != 0 || len(s.deliver()) > 0 {
		t.Errorf("%v repairs after a restart: %q", got, s.logs.all)
	}
}

func TestResyncer_RepairsRowsThatWereChanged(t *testing.T) {
	tests := []struct {
		reason  string
		kind    string
		differs string
		byHand  func(s *settled)
		first   string // the first resource's operation in the end, if it matters
	}{
		{"an Event's message", "event", `"Message"`, func(s *settled) {
			s.call("PATCH", "workload-events/"+s.eventID("uid-1"), `{"Message":"hush, other"}`)
		}, ""},
		{"an Event's time and type", "event", `"Type, Timestamp"`, func(s *settled) {
			s.call("PATCH", "workload-events/"+s.eventID("uid-1"), `{"Timestamp":"2020-01-01T00:00:00Z","Type":"hush"}`)
		}, ""},
		{"an Event's row is removed", "event", `"row"`, func(s *settled) {
			s.call("DELETE", "workload-events/"+s.eventID("uid-1"), "")
		}, ""},
		{"an Event's row is removed, and another made", "event", `"row"`, func(s *settled) {
			s.call("DELETE", "workload-events/"+s.eventID("uid-1"), "")
			s.create("workload-events", strings.Replace(eventBody(s.t, s.events[1]), "Created", "hush", 1))
		}, ""},
		{"a resource's definition", "operation", `"RuntimeDefinition"`, func(s *settled) {
			s.patch(s.first, `{"RuntimeDefinition":`+strings.Replace(definition(s.t, operation(s.first, "uid-1", "1")), "9007199254740993", "9007199254740992", 1)+`}`)
		}, "MODIFIED"},
		{"a resource's operation", "operation", `"LastOperation"`, func(s *settled) { s.patch(s.first, `{"LastOperation":"DELETED"}`) }, "ADDED"},
		{"a resource is another incarnation", "operation", `"RuntimeDefinition"`, func(s *settled) {
			s.patch(s.first, `{"LastOperation":"MODIFIED","RuntimeDefinition":{"metadata":{"uid":"uid-0"},"hush":1}}`)
		}, "ADDED"},
		{"a resource that is absent", "operation", `"never reported"`, func(s *settled) { s.patch(s.absent, `{"LastOperation":"MODIFIED"}`) }, ""},
		{"a resource that is absent, as another incarnation", "operation", `"never reported"`, func(s *settled) {
			s.patch(s.absent, `{"LastOperation":"MODIFIED","RuntimeDefinition":{"metadata":{"uid":"uid-9"},"hush":1}}`)
		}, ""},
		{"the status", "status", `"Status"`, func(s *settled) {
			s.call("PATCH", fmt.Sprintf("workload-instances/%d", s.instance.ID), `{"Status":"Down"}`)
		}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			s := newSettled(t)
			before := s.state()
			tt.byHand(s)
			if s.state() == before {
				t.Fatal("nothing was changed")
			}
			if got := s.audit(); got != 1 || s.repairs(tt.kind) != 1 {
				t.Errorf("%v repairs, %v of the kind", got, s.repairs(tt.kind))
			}
			if s.logs.count("It is repaired.") != 1 || s.logs.count(`"differs"=`+tt.differs) != 1 || s.logs.count("hush") > 0 {
				t.Errorf("logged %q", s.logs.all)
			}
			if got := s.deliver(); len(got) != 1 {
				t.Errorf("sent %q", got)
			}
			if got := s.row(s.first)["LastOperation"]; tt.first != "" && got != tt.first {
				t.Errorf("the first resource is %v, want %s", got, tt.first)
			}
			if got := s.state(); got != before {
				t.Errorf("the rows are\n%s\nand were\n%s", got, before)
			}
			if got := s.audit(); got != 0 || len(s.deliver()) > 0 {
				t.Errorf("a second diff repairs %v: %q", got, s.logs.all)
			}
		})
	}
}

// state has the contents of all rows. ADDED and MODIFIED count as equal.
func (s *settled) state() string {
	s.t.Helper()
	var lines []string
	for _, row := range s.rows() {
		lines = append(lines, fmt.Sprint(row["RuntimeEventUID"], row["Type"], row["Reason"], row["Message"], row["Timestamp"]))
	}
	slices.Sort(lines)
	for _, attribution := range []target.Attribution{s.first, s.second, s.absent} {
		row := s.row(attribution)
		if row["LastOperation"] == threeport.OperationDeleted {
			lines = append(lines, "deleted")
			continue
		}
		lines = append(lines, fmt.Sprint("exists ", row["RuntimeDefinition"]))
	}
	return strings.Join(append(lines, fmt.Sprint(s.call("GET", fmt.Sprintf("workload-instances/%d", s.instance.ID), "")[0]["Status"])), "\n")
}

func TestResyncer_OffersReportsThatWereNeverMade(t *testing.T) {
	s := newSettled(t)
	missed := event(s.instance, "missed", "1", time.Now())
	attribution := s.resource("late")
	s.cluster.edit(s.instance, func(i *observe.DesiredState) {
		i.Events = append(i.Events, missed)
		i.Operations = append(i.Operations, operation(attribution, "uid-late", "1"))
	})
	if got := s.audit(); got != 2 {
		t.Errorf("%v repairs: %q", got, s.logs.all)
	}
	if got := s.deliver(); len(got) != 2 || len(s.rows()) != 4 {
		t.Errorf("sent %q", got)
	}
	if got := s.audit(); got != 0 {
		t.Errorf("%v repairs in the second audit", got)
	}
}

func TestResyncer_MissedEventWithARow_GetsNoSecondRow(t *testing.T) {
	s := newSettled(t)
	missed := event(s.instance, "missed", "1", time.Now())
	s.create("workload-events", eventBody(t, missed))
	s.cluster.edit(s.instance, func(i *observe.DesiredState) { i.Events = append(i.Events, missed) })
	s.audit()
	if s.deliver(); len(s.rows()) != 4 {
		t.Errorf("there are %d rows", len(s.rows()))
	}
}

func TestResyncer_SkipsPendingAndRejectedReports(t *testing.T) {
	tests := []struct {
		reason string
		change func(s *settled)
	}{
		{"newer reports are pending", func(s *settled) {
			newer := s.events[0]
			newer.ResourceVersion = "2"
			s.box.Offer(newer)
			s.box.Offer(operation(s.first, "uid-1", "2"))
			s.box.Offer(observe.Status{Workload: s.instance, Status: "Reconciling"})
		}},
		{"newer reports were accepted", func(s *settled) {
			newer := s.events[0]
			newer.ResourceVersion, newer.Message = "2", "more"
			s.box.Offer(newer)
			s.box.Offer(operation(s.first, "uid-1", "2"))
			s.box.Offer(observe.Status{Workload: s.instance, Status: "Reconciling"})
			s.deliver()
		}},
		{"newer reports were refused", func(s *settled) {
			newer := s.events[0]
			newer.ResourceVersion = "2"
			s.box.Offer(newer)
			s.refuse()
			s.call("PATCH", "workload-events/"+s.eventID("uid-0"), `{"Message":"other"}`)
			s.cluster.edit(s.instance, func(i *observe.DesiredState) { i.Events[0] = newer })
		}},
		{"a deletion is pending", func(s *settled) {
			gone := operation(s.first, "uid-1", "")
			gone.Deleted, gone.Body = true, nil
			s.box.Offer(gone)
			s.cluster.edit(s.instance, func(i *observe.DesiredState) {
				i.Operations, i.Absent = i.Operations[1:], append(i.Absent, s.first)
			})
		}},
		{"the resource's row is gone", func(s *settled) {
			s.call("DELETE", fmt.Sprintf("workload-resource-instances/%d", s.first.Resource.ID), "")
			s.call("DELETE", fmt.Sprintf("workload-resource-instances/%d", s.absent.Resource.ID), "")
		}},
		{"the instance is gone", func(s *settled) {
			s.call("DELETE", "workload-events/"+s.eventID("uid-1"), "")
			s.call("DELETE", fmt.Sprintf("workload-instances/%d", s.instance.ID), "")
		}},
		{"a resource cannot be seen", func(s *settled) {
			s.patch(s.first, `{"LastOperation":"DELETED"}`)
			s.cluster.edit(s.instance, func(i *observe.DesiredState) { i.Operations = i.Operations[1:] })
		}},
		{"there is no verdict", func(s *settled) {
			s.call("PATCH", fmt.Sprintf("workload-instances/%d", s.instance.ID), `{"Status":"Down"}`)
			s.cluster.edit(s.instance, func(i *observe.DesiredState) { i.Status = observe.Status{} })
		}},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			s := newSettled(t)
			tt.change(s)
			if found, err := s.diff(t.Context(), s.instance); err != nil || len(found) > 0 {
				t.Errorf("found %+v, %v", found, err)
			}
		})
	}
}

// refuse takes the next item and rejects it.
func (s *settled) refuse() {
	s.t.Helper()
	items, err := s.box.NextBatch(s.t.Context(), 1)
	if err != nil {
		s.t.Fatal(err)
	}
	s.box.Reject(items[0], &threeport.Error{StatusCode: 400})
}

func TestResyncer_AcceptsAnEventRowOfAnotherInstance(t *testing.T) {
	s := newSettled(t)
	other := target.Instance{Type: target.WorkloadInstance, ID: s.create("workload-instances", `{"Name":"other"}`)}
	moved := s.events[0]
	moved.Workload, moved.ResourceID = other, s.first.Resource.ID
	s.cluster.edit(other, func(i *observe.DesiredState) { i.Events = []observe.Event{moved} })
	s.cluster.edit(s.instance, func(i *observe.DesiredState) { i.Events = i.Events[1:] })
	s.box.Offer(moved)
	s.syncNow()
	s.deliver()
	s.instance = other
	if got := s.audit(); got != 0 {
		t.Errorf("%v repairs: %q", got, s.logs.all)
	}
}

// A report that is accepted between any two steps of a diff is no drift. Here everything changes before each request of the
// first diff, in the cluster and in the control plane. (A status that changes back before the diff ends would be a drift,
// until the recheck.)
func TestResyncer_Diff_IgnoresConcurrentDeliveries(t *testing.T) {
	s := newSettled(t)
	version := 10
	s.before = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet || version > 30 {
			return false
		}
		version++
		s.mu.Lock()
		before := s.before
		s.before = nil
		s.mu.Unlock()
		newer := s.events[0]
		newer.ResourceVersion, newer.Message = fmt.Sprint(version), fmt.Sprint("version ", version)
		op := operation(s.first, "uid-1", fmt.Sprint(version))
		status := observe.Status{Workload: s.instance, Status: fmt.Sprint("Status ", version)}
		s.cluster.edit(s.instance, func(i *observe.DesiredState) { i.Events[0], i.Operations[0], i.Status = newer, op, status })
		s.offer()
		s.deliver()
		s.mu.Lock()
		s.before = before
		s.mu.Unlock()
		return false
	}
	found, err := s.diff(t.Context(), s.instance)
	if err != nil || version == 10 {
		t.Fatal(err)
	}
	for _, f := range found { // even by itself the first look repairs nothing
		s.repair(f)
	}
	if got := s.repairs("operation") + s.repairs("event") + s.repairs("status"); got != 0 || s.box.Pending() > 0 {
		t.Errorf("%v repairs: %q", got, s.logs.all)
	}
	version = 31
	if got := s.audit(); got != 0 {
		t.Errorf("%v repairs: %q", got, s.logs.all)
	}
}

func TestResyncer_RepairsAfterTheRecheckOnly(t *testing.T) {
	ev := event(shop, "a", "1", time.Now())
	c, box := newCluster(), newHeld()
	c.edit(shop, func(i *observe.DesiredState) { i.Events = []observe.Event{ev} })
	a := New(DefaultConfig(), c, untracked, box, newScript(), NewMetrics(newRegistry()), new(lines).logger())
	found, err := a.diff(t.Context(), shop)
	if err != nil || len(found) != 1 || !found[0].neverReported {
		t.Fatalf("found %+v, %v", found, err)
	}
	box.states[ev.Key()] = outbox.KeyState{Phase: outbox.Pending} // the watch offers it at last
	if err := a.repairAgain(t.Context(), shop, found); err != nil || len(box.offered) > 0 {
		t.Errorf("offered %v, %v", box.offered, err)
	}
	delete(box.states, ev.Key())
	newer := ev
	newer.ResourceVersion = "2"
	c.edit(shop, func(i *observe.DesiredState) { i.Events = []observe.Event{newer} })
	if err := a.repairAgain(t.Context(), shop, found); err != nil || len(box.offered) > 0 {
		t.Errorf("offered %v, want nothing: it is newer than the first drift; %v", box.offered, err)
	}
	c.edit(shop, func(i *observe.DesiredState) { i.Events = []observe.Event{ev} })
	if err := a.repairAgain(t.Context(), shop, found); err != nil || len(box.offered) != 1 {
		t.Errorf("offered %v, %v", box.offered, err)
	}
}
