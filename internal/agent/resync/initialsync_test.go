package resync

import (
	"fmt"
	"maps"
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

func TestResyncer_InitialSync_FindsEventRows(t *testing.T) {
	w := newWorld(t)
	now := time.Now()
	same, repeated, fresh, doubled := event(w.instance, "same", "1", now), event(w.instance, "repeated", "1", now),
		event(w.instance, "fresh", "1", now), event(w.instance, "doubled", "1", now)
	w.create("workload-events", eventBody(t, same))
	w.create("workload-events", eventBody(t, repeated))
	oldest := w.create("workload-events", eventBody(t, doubled))
	doubled.ResourceVersion, doubled.Message = "2", "again"
	double := w.create("workload-events", eventBody(t, doubled)) // would be up to date, but is not the row that counts
	repeated.ResourceVersion, repeated.Message = "2", "again"
	w.cluster.edit(w.instance, func(i *observe.DesiredState) {
		i.Events = []observe.Event{same, repeated, fresh, doubled}
	})
	w.offer()
	w.syncNow()
	got := w.deliver()
	slices.Sort(got)
	if len(got) != 3 || !strings.HasPrefix(got[0], "PATCH") || !strings.HasPrefix(got[1], "PATCH") || got[2] != "POST /v0/workload-events" {
		t.Errorf("sent %q", got)
	}
	if !slices.Contains(got, fmt.Sprintf("PATCH /v0/workload-events/%d", oldest)) || slices.Contains(got, fmt.Sprintf("PATCH /v0/workload-events/%d", double)) {
		t.Errorf("sent %q; the oldest of the doubles is %d", got, oldest)
	}
	if rows := w.rows(); len(rows) != 5 {
		t.Errorf("there are %d rows", len(rows))
	}
}

func TestResyncer_InitialSync_OfAHelmWorkload(t *testing.T) {
	w := newWorld(t)
	w.instance = target.Instance{Type: target.HelmWorkloadInstance, ID: w.create("helm-workload-instances", `{"Name":"chart"}`)}
	ev := event(w.instance, "a", "1", time.Now())
	w.create("workload-events", eventBody(t, ev))
	attribution := target.Attribution{Instance: w.instance, Listed: true, Resource: target.Resource{Ref: target.Ref{Kind: "ConfigMap", Name: "x"}}}
	w.cluster.edit(w.instance, func(i *observe.DesiredState) {
		i.Events, i.Operations, i.Absent = []observe.Event{ev}, []observe.Operation{operation(attribution, "uid", "1")}, []target.Attribution{attribution}
	})
	w.offer()
	w.syncNow()
	if got := w.deliver(); len(got) > 0 {
		t.Errorf("sent %q", got)
	}
}

func TestResyncer_InitialSync_FindsAllRowsWhileTheyChange(t *testing.T) {
	w := newWorld(t)
	const rows = 1200
	now := time.Now()
	var events []observe.Event
	var ids []int64
	for i := range rows {
		ev := event(w.instance, fmt.Sprintf("uid-%d", i), "1", now)
		ids = append(ids, w.create("workload-events", eventBody(t, ev)))
		events = append(events, ev)
	}
	events = events[3:] // the first ones will be removed
	w.cluster.edit(w.instance, func(i *observe.DesiredState) { i.Events = events })
	w.offer()
	pages := 0
	w.before = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet || !r.URL.Query().Has("page") {
			return false
		}
		pages++
		if pages <= 3 { // one row is gone before each page, and one is added
			w.call("DELETE", fmt.Sprintf("workload-events/%d", ids[pages-1]), "")
			w.create("workload-events", eventBody(t, event(w.instance, fmt.Sprintf("other-%d", pages), "1", now)))
		}
		return false
	}
	w.syncNow()
	w.before = nil
	if pages != 4 {
		t.Errorf("%d pages were read", pages)
	}
	if got := w.deliver(); len(got) > 0 {
		t.Errorf("%d requests are sent, such as %q", len(got), got[0])
	}
	if got := len(w.rows()); got != rows {
		t.Errorf("there are %d rows", got)
	}
}

func TestResyncer_InitialSync_OfResources(t *testing.T) {
	const (
		deleted  = `DELETED`
		added    = `ADDED`
		modified = `MODIFIED`
	)
	tests := []struct {
		reason string
		last   string // operation in the row
		uid    string // in its definition: "" for no definition, "-" for one without a UID
		other  bool   // the definition has other contents
		absent bool   // in the cluster, else it is there as uid-1
		want   []string
	}{
		{"never reported", "", "", false, false, []string{added}},
		{"as it is", added, "uid-1", false, false, nil},
		{"as it is, modified", modified, "uid-1", false, false, nil},
		{"changed since", added, "uid-1", true, false, []string{modified}},
		{"reported as deleted, wrongly", deleted, "uid-1", false, false, []string{added}},
		{"an earlier one, deleted", deleted, "uid-0", false, false, []string{added}},
		{"an earlier one, whose deletion was missed", modified, "uid-0", false, false, []string{deleted, added}},
		{"of an unknown incarnation", added, "-", false, false, []string{added}},
		{"something else", "REPLACED", "uid-1", false, false, []string{added}},
		{"absent and never reported", "", "", false, true, nil},
		{"absent and deleted", deleted, "uid-1", false, true, nil},
		{"absent, and the deletion was missed", added, "uid-1", false, true, []string{deleted}},
		{"absent, and an unknown one was there", modified, "-", false, true, []string{deleted}},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			w := newWorld(t)
			attribution := w.resource("conf")
			op := operation(attribution, "uid-1", "5")
			if tt.last != "" {
				reported := operation(attribution, "uid-1", "5")
				if tt.other {
					reported = operation(attribution, "uid-1", "4")
				}
				body := strings.ReplaceAll(definition(t, reported), `"uid-1"`, fmt.Sprintf("%q", tt.uid))
				if tt.uid == "-" {
					body = `{"kind":"ConfigMap"}`
				}
				w.call("PATCH", fmt.Sprintf("workload-resource-instances/%d", attribution.Resource.ID),
					fmt.Sprintf(`{"LastOperation":%q,"RuntimeDefinition":%s}`, tt.last, body))
			}
			w.cluster.edit(w.instance, func(i *observe.DesiredState) {
				if tt.absent {
					i.Absent = []target.Attribution{attribution}
				} else {
					i.Operations = []observe.Operation{op}
				}
			})
			w.box.Offer(event(w.instance, "a", "1", time.Now())) // so that the initial sync has a report
			w.offer()
			w.syncNow()
			var got []string
			w.before = func(_ http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodPatch {
					got = append(got, w.peek(r))
				}
				return false
			}
			w.deliver()
			w.before = nil
			if !slices.Equal(got, tt.want) {
				t.Errorf("sent %q, want %q", got, tt.want)
			}
			if found := w.audit(); found != 0 {
				t.Errorf("a diff repairs %v", found)
			}
			has := map[target.Resource]target.LastOperation{} // in the end, as far as the outbox knows
			if now := append([]string{tt.last}, got...); now[len(now)-1] != "" {
				last := now[len(now)-1]
				op := target.LastOperation{ResourceVersion: "5", Modified: last == modified}
				if last == deleted {
					op = target.LastOperation{Deleted: true}
				}
				has[target.Resource{Ref: attribution.Resource.Ref, ID: attribution.Resource.ID}] = op
			}
			if reported := w.box.Progress(w.instance).Operations; !maps.Equal(reported, has) {
				t.Errorf("the control plane has %v, the outbox %v", has, reported)
			}
		})
	}
}

func TestResyncer_InitialSync_SkipsDeletedRows(t *testing.T) {
	w := newWorld(t)
	here, absent := w.resource("here"), w.resource("absent")
	for _, attribution := range []target.Attribution{here, absent} {
		w.call("DELETE", fmt.Sprintf("workload-resource-instances/%d", attribution.Resource.ID), "")
	}
	w.cluster.edit(w.instance, func(i *observe.DesiredState) {
		i.Operations, i.Absent = []observe.Operation{operation(here, "uid", "1")}, []target.Attribution{absent}
	})
	w.offer()
	w.syncNow()
	if got := w.box.Pending(); got != 1 {
		t.Errorf("%d are pending", got)
	}
}

func TestResyncer_InitialSync_SkipsUnreadableRows(t *testing.T) {
	w := newWorld(t)
	good, bad := w.resource("good"), w.resource("bad")
	reported := operation(good, "uid", "1")
	w.call("PATCH", fmt.Sprintf("workload-resource-instances/%d", good.Resource.ID),
		fmt.Sprintf(`{"LastOperation":"ADDED","RuntimeDefinition":%s}`, definition(t, reported)))
	w.cluster.edit(w.instance, func(i *observe.DesiredState) {
		i.Operations = []observe.Operation{operation(bad, "uid", "1"), reported}
	})
	w.offer()
	tries := 0
	w.before = func(rw http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, fmt.Sprint(bad.Resource.ID)) {
			return false
		}
		tries++
		rw.WriteHeader(http.StatusInternalServerError)
		return true
	}
	w.syncNow()
	w.before = nil
	if want := []string{fmt.Sprintf("PATCH /v0/workload-resource-instances/%d", bad.Resource.ID)}; !slices.Equal(w.deliver(), want) {
		t.Errorf("sent %q", w.writes())
	}
	if tries != maxAttempts || w.logs.count("skips rows that cannot be read") != 1 {
		t.Errorf("tried %d times; logged %q", tries, w.logs.all)
	}
}

// No row is skipped while the instance is not assigned to the cluster: skipped rows would be sent again after the assignment.
func TestResyncer_InitialSync_NotAssigned_WaitsForTheAssignment(t *testing.T) {
	w := newWorld(t)
	good := w.resource("good")
	reported := operation(good, "uid", "1")
	w.call("PATCH", fmt.Sprintf("workload-resource-instances/%d", good.Resource.ID),
		fmt.Sprintf(`{"LastOperation":"ADDED","RuntimeDefinition":%s}`, definition(t, reported)))
	w.cluster.edit(w.instance, func(i *observe.DesiredState) { i.Operations = []observe.Operation{reported} })
	w.offer()
	for _, refused := range []string{"workload-events", "workload-resource-instances"} {
		w.before = func(rw http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.URL.Path, refused) {
				return false
			}
			rw.Header().Set(threeport.ProblemHeader, threeport.ProblemForbidden)
			rw.WriteHeader(http.StatusForbidden)
			return true
		}
		for attempt := range 2 * maxAttempts {
			if err := w.InitialSync(t.Context(), w.instance, attempt+1); threeport.KindOf(err) != threeport.KindForbidden {
				t.Errorf("attempt %d without %s: %v, want the refusal", attempt+1, refused, err)
			}
		}
	}
	w.before = nil
	w.syncNow()
	if got := w.deliver(); len(got) > 0 {
		t.Errorf("sent %q after the assignment, want nothing: the control plane has the report", got)
	}
}

// A refusal of the first request does not count as a turn: the next attempt reads the rows of Events, and creates no second ones.
func TestResyncer_InitialSync_StatusRefused_ReadsEventsLater(t *testing.T) {
	w := newWorld(t)
	ev := event(w.instance, "a", "1", time.Now())
	w.create("workload-events", eventBody(t, ev))
	w.cluster.edit(w.instance, func(i *observe.DesiredState) { i.Events = []observe.Event{ev} })
	w.offer()
	w.before = func(rw http.ResponseWriter, r *http.Request) bool {
		if !strings.HasPrefix(r.URL.Path, "/v0/workload-instances/") {
			return false
		}
		rw.Header().Set(threeport.ProblemHeader, threeport.ProblemForbidden)
		rw.WriteHeader(http.StatusForbidden)
		return true
	}
	if err := w.InitialSync(t.Context(), w.instance, 1); threeport.KindOf(err) != threeport.KindForbidden {
		t.Errorf("got %v, want the refusal", err)
	}
	w.before = nil
	w.syncNow()
	if got := w.deliver(); len(got) > 0 || len(w.rows()) != 1 {
		t.Errorf("sent %q, and there are %d rows; want none sent, and 1 row", got, len(w.rows()))
	}
}

func TestResyncer_InitialSync_WithoutAccessToEvents(t *testing.T) {
	w := newWorld(t)
	ev := event(w.instance, "a", "1", time.Now())
	w.cluster.edit(w.instance, func(i *observe.DesiredState) { i.Events = []observe.Event{ev} })
	w.offer()
	w.before = func(rw http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "workload-events") {
			return false
		}
		_, _ = fmt.Fprint(rw, `{"Meta":{"TotalCount":1},"Data":[{"ID":1,"RuntimeEventUID":"x","WorkloadInstanceID":1}],"Status":{"code":200}}`)
		return true
	}
	w.syncNow()
	w.before = nil
	if got := w.deliver(); len(got) != 1 || w.logs.count("does not filter by workloadinstanceid") != 1 {
		t.Errorf("sent %q; logged %q", got, w.logs.all)
	}
}

// The initial sync of an instance that the control plane does not know takes one request, whatever its ThreeportWorkload lists.
func TestResyncer_InitialSync_UnknownInstance_ReadsNoRows(t *testing.T) {
	w := newWorld(t)
	unknown := target.Instance{Type: target.WorkloadInstance, ID: w.instance.ID + 1}
	var state observe.DesiredState
	for i := range 20 {
		attribution := target.Attribution{Instance: unknown, Listed: true, Resource: target.Resource{Ref: target.Ref{Kind: "ConfigMap", Name: fmt.Sprint(i)}, ID: int64(i + 1)}}
		state.Absent = append(state.Absent, attribution)
	}
	w.cluster.edit(unknown, func(i *observe.DesiredState) { *i = state })
	var requests []string
	w.before = func(_ http.ResponseWriter, r *http.Request) bool {
		requests = append(requests, r.Method+" "+r.URL.Path)
		return false
	}
	if err := w.InitialSync(t.Context(), unknown, 1); err != nil {
		t.Errorf("the initial sync failed: %v", err)
	}
	if want := []string{fmt.Sprintf("GET /v0/workload-instances/%d", unknown.ID)}; !slices.Equal(requests, want) {
		t.Errorf("the requests are %q, want %q", requests, want)
	}
}

// fakeRows is a control plane with scripted rows of Events.
func fakeRows(count int, made func(i int) time.Time) *script {
	s := newScript()
	s.events = func(_ threeport.EventFilter, page, size int) ([]threeport.WorkloadEvent, int64, error) {
		var out []threeport.WorkloadEvent
		for i := (page - 1) * size; i < min(page*size, count); i++ {
			at := made(i)
			out = append(out, threeport.WorkloadEvent{ID: new(int64(i + 1)), RuntimeEventUID: new(fmt.Sprintf("uid-%d", i)), CreatedAt: &at})
		}
		return out, int64(count), nil
	}
	return s
}

func TestResyncer_ReadEvents_StopsAtOldRows(t *testing.T) {
	now := time.Now()
	all := func(i int) time.Time { return now.Add(-time.Duration(100_000-i) * time.Second) } // one a second
	tests := []struct {
		reason string
		rows   *script
		events []observe.Event
		pages  int // with the first
	}{
		{"no Events: those of the last hour may be in the outbox", fakeRows(100_000, all), nil, 9},
		{"the Events of an hour, and the margin", fakeRows(100_000, all), []observe.Event{event(target.Instance{}, "a", "1", now.Add(-time.Hour))}, 16},
		{"the oldest counts", fakeRows(100_000, all), []observe.Event{event(target.Instance{}, "a", "1", now.Add(-time.Hour)), event(target.Instance{}, "b", "1", now)}, 16},

		{"all on one page", fakeRows(500, all), nil, 1},
		{"one more than a page", fakeRows(501, all), nil, 2},
		{"none", fakeRows(0, all), nil, 1},
		{"no times: all pages, the first one again", fakeRows(1200, func(int) time.Time { return now }), nil, 4},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			a := New(DefaultConfig(), newCluster(), untracked, nil, tt.rows, nil, new(lines).logger())
			rows, err := a.readEvents(t.Context(), target.Instance{}, tt.events, func(uid types.UID) (int64, bool) { return 0, uid == "uid-7" })
			if err != nil || tt.rows.lists != tt.pages {
				t.Errorf("%d pages were read, want %d; %v", tt.rows.lists, tt.pages, err)
			}
			if _, found := rows.oldest("uid-7"); len(rows) > 1 || found != (len(rows) == 1) {
				t.Errorf("kept %v", rows)
			}
		})
	}
}

// A control plane that counts more rows than it has gets few requests, and an error.
func TestResyncer_ReadEvents_WrongTotal_Ends(t *testing.T) {
	now := time.Now()
	for reason, tt := range map[string]struct {
		rows  int
		total int64
	}{
		"more pages than the agent reads": {rows: 600, total: 9e12},
		"empty pages":                     {rows: 600, total: 100_000},
		"pages of one row":                {rows: 1, total: 1_000_000},
	} {
		all := fakeRows(tt.rows, func(int) time.Time { return now })
		s := newScript()
		s.events = func(f threeport.EventFilter, page, size int) ([]threeport.WorkloadEvent, int64, error) {
			rows, _, err := all.events(f, page, size)
			return rows, tt.total, err
		}
		a := New(DefaultConfig(), newCluster(), untracked, nil, s, nil, new(lines).logger())
		if _, err := a.readEvents(t.Context(), target.Instance{}, nil, everyEvent); err == nil || s.lists > maxEmptyPages+2 {
			t.Errorf("%s: %d pages were read, want %d at most and an error: %v", reason, s.lists, maxEmptyPages+2, err)
		}
	}
}

func TestResyncer_ReadEvents_FitsThePagesOfTheServer(t *testing.T) {
	now := time.Now()
	all := fakeRows(1200, func(int) time.Time { return now })
	tooLarge := &threeport.Error{StatusCode: 200, Err: fmt.Errorf("%w: more", threeport.ErrAnswerTooLarge)}
	for reason, limit := range map[string]func(size int) (int, error){
		"it has a bound of its own": func(size int) (int, error) { return min(size, 100), nil },
		"its answer is too large": func(size int) (int, error) {
			if size > 50 {
				return 0, tooLarge
			}
			return size, nil
		},
	} {
		s := newScript()
		s.events = func(f threeport.EventFilter, page, size int) ([]threeport.WorkloadEvent, int64, error) {
			size, err := limit(size)
			if err != nil {
				return nil, 0, err
			}
			return all.events(f, page, size)
		}
		a := New(DefaultConfig(), newCluster(), untracked, nil, s, nil, new(lines).logger())
		rows, err := a.readEvents(t.Context(), target.Instance{}, nil, everyEvent)
		if err != nil || len(rows) != 1200 {
			t.Errorf("%s: %d rows, %v", reason, len(rows), err)
		}
	}
	s := newScript()
	s.events = func(threeport.EventFilter, int, int) ([]threeport.WorkloadEvent, int64, error) {
		return nil, 0, tooLarge
	}
	a := New(DefaultConfig(), newCluster(), untracked, nil, s, nil, new(lines).logger())
	if _, err := a.readEvents(t.Context(), target.Instance{}, nil, nil); err == nil || s.lists != 3 {
		t.Errorf("a row that is too large by itself: %v after %d tries", err, s.lists)
	}
	s.events = func(threeport.EventFilter, int, int) ([]threeport.WorkloadEvent, int64, error) {
		return nil, 7, nil
	}
	if _, err := a.readEvents(t.Context(), target.Instance{}, nil, nil); err == nil {
		t.Error("a first page without rows passed")
	}
}

func TestResyncer_InitialSync_FindsEventsOfTheOutbox(t *testing.T) {
	w := newWorld(t)
	ev := event(w.instance, "a", "1", time.Now())
	w.create("workload-events", eventBody(t, ev))
	w.box.Offer(ev) // it expired in the cluster
	w.syncNow()
	if got := w.deliver(); len(got) != 1 || !strings.HasPrefix(got[0], "PATCH ") {
		t.Errorf("sent %q", got)
	}
}

func TestResyncer_InitialSync_IgnoresOtherEvents(t *testing.T) {
	box := newHeld()
	box.states[observe.EventKey("uid-1")] = outbox.KeyState{Phase: outbox.Pending}
	a := New(DefaultConfig(), newCluster(), untracked, box, fakeRows(5, func(int) time.Time { return time.Now() }), nil, new(lines).logger())
	desired := observe.DesiredState{Events: []observe.Event{event(shop, "uid-3", "1", time.Now())}}
	found := a.beginTurn(shop)
	if err := found.readAll(t.Context(), desired); err != nil || len(found.known) != 2 {
		t.Fatalf("known are %+v, %v", found.known, err)
	}
	for _, k := range found.known {
		if k.Receipt.RowID != 2 && k.Receipt.RowID != 4 || k.Receipt.Instance != shop || k.Version != "" {
			t.Errorf("got %+v", k)
		}
	}
}

// The store may be older than the reports of another leader, or newer than a restored database.
func TestResyncer_InitialSync_TrustsTheRowsNotTheStore(t *testing.T) {
	w := newWorld(t)
	op := operation(w.resource("conf"), "uid", "1")
	status := observe.Status{Workload: w.instance, Status: "Healthy"}
	w.cluster.edit(w.instance, func(i *observe.DesiredState) {
		i.Operations, i.Status = []observe.Operation{op}, status
	})
	w.offer()
	w.syncNow()
	if got := w.deliver(); len(got) != 2 {
		t.Fatalf("sent %q", got)
	}
	w.call("PATCH", fmt.Sprintf("workload-resource-instances/%d", op.Attribution.Resource.ID), `{"LastOperation":"DELETED"}`)
	w.call("PATCH", fmt.Sprintf("workload-instances/%d", w.instance.ID), `{"Status":"Down"}`)
	if err := w.InitialSync(t.Context(), w.instance, 1); err != nil { // as after a restart
		t.Fatal(err)
	}
	if got := w.deliver(); len(got) != 2 {
		t.Errorf("sent %q", got)
	}
	if got := w.row(op.Attribution)["LastOperation"]; got != "ADDED" {
		t.Errorf("the row says %v", got)
	}
}
