package notify

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// model is a control plane with v0, on which an Event that is posted twice gets two rows, and with report sets, whose reports
// are stored if they are newer. It can answer as a server without sets, and lose or delay requests and answers.
type model struct {
	t     *testing.T
	url   string
	close func() // ends the server, once it is done with all that reached it

	mu sync.Mutex
	// The function takes reports whether the replica that answers now takes sets. The function cut decides how often a
	// request with reports arrives, and whether the answer comes back.
	takes   func() bool
	offers  func() string // its features as JSON
	cut     func() (arrives int, answers bool)
	refuse  func(w http.ResponseWriter, set threeport.ReportSet, encoding string) bool
	verdict func(threeport.Report) threeport.ReportAnswer
	seen    func(*http.Request) // each request

	ids      int64
	events   []*modelEvent
	rows     map[string]string // the last report about each resource and instance, by path
	versions map[string]threeport.ID
	ended    map[string]bool // objects that were deleted
	sets     []threeport.ReportSet
	singles  []string
}

type modelEvent struct {
	ID              int64
	RuntimeEventUID string
	Message         string
	version         threeport.ID
}

func newModel(t *testing.T) *model {
	t.Helper()
	m := &model{
		t: t, rows: map[string]string{}, versions: map[string]threeport.ID{}, ended: map[string]bool{},
		takes: func() bool { return true }, offers: func() string { return "null" }, cut: func() (int, bool) { return 1, true },
		refuse: func(http.ResponseWriter, threeport.ReportSet, string) bool { return false },
		seen:   func(*http.Request) {},
	}
	server := httptest.NewServer(m)
	server.Config.SetKeepAlivesEnabled(false) // on a connection that it used before, a client repeats a GET by itself
	m.url, m.close = server.URL, server.Close
	t.Cleanup(m.close)
	return m
}

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen(r)
	switch {
	case r.URL.Path == "/workload-report-sets/versions":
		if !m.takes() {
			http.Error(w, `{"message":"Not Found"}`, http.StatusNotFound)
			return
		}
		_, _ = io.WriteString(w, `{"API":"WorkloadReportSet","Versions":["v0"],"Encodings":["gzip"],"MaxReports":40,"Features":`+m.offers()+`}`)
	case r.URL.Path == "/v0/workload-report-sets" && !m.takes():
		http.Error(w, `{"message":"Not Found"}`, http.StatusNotFound)
	default:
		arrives, answers := m.cut()
		answer := httptest.NewRecorder()
		for range arrives {
			answer = httptest.NewRecorder()
			m.serve(answer, r, body)
		}
		if arrives == 0 || !answers {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
	}
}

func (m *model) serve(w *httptest.ResponseRecorder, r *http.Request, body []byte) {
	if r.URL.Path == "/v0/workload-report-sets" {
		m.takeSet(w, r, body)
		return
	}
	m.singles = append(m.singles, r.Method+" "+r.URL.Path)
	var row modelEvent
	_ = json.Unmarshal(body, &row)
	var found []*modelEvent
	id, _ := strconv.ParseInt(r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:], 10, 64)
	switch what := r.Method + " " + strings.Split(r.URL.Path, "/")[2]; what {
	case "POST workload-events":
		m.ids++
		row.ID = m.ids
		m.events = append(m.events, &row)
		found = []*modelEvent{&row}
		w.WriteHeader(http.StatusCreated)
	case "GET workload-events":
		found = m.find(func(e *modelEvent) bool { return e.RuntimeEventUID == r.URL.Query().Get("runtimeeventuid") })
	case "PATCH workload-events":
		found = m.find(func(e *modelEvent) bool { return e.ID == id })
		for _, e := range found {
			e.Message = row.Message
		}
	default:
		m.rows[r.URL.Path] = strings.TrimSpace(string(body))
		found = []*modelEvent{{ID: id}}
	}
	data, _ := json.Marshal(found)
	_, _ = fmt.Fprintf(w, `{"Data":%s,"Status":{"code":%d}}`, data, w.Code)
}

func (m *model) find(match func(*modelEvent) bool) []*modelEvent {
	out := []*modelEvent{}
	for _, e := range m.events {
		if match(e) {
			out = append(out, e)
		}
	}
	return out
}

func (m *model) takeSet(w *httptest.ResponseRecorder, r *http.Request, body []byte) {
	set := decode(m.t, r, body)
	if m.refuse(w, set, r.Header.Get("Content-Encoding")) {
		return
	}
	m.sets = append(m.sets, set)
	answer := threeport.ReportSetAnswer{Items: []threeport.ReportAnswer{}}
	for _, report := range set.Reports {
		got := threeport.ReportAnswer{}
		if m.verdict != nil {
			got = m.verdict(report)
		}
		if got.Outcome == "" {
			got = m.upsert(report)
		}
		answer.Items = append(answer.Items, got)
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// upsert stores a report if it is newer.
func (m *model) upsert(r threeport.Report) threeport.ReportAnswer {
	switch {
	case r.Event != nil:
		return m.upsertEvent(r)
	case r.Operation != nil:
		key := "object/" + r.Operation.Object.UID
		deletes := r.Operation.Operation == threeport.OperationDeleted
		if m.ended[key] || !deletes && r.Version <= m.versions[key] {
			return threeport.ReportAnswer{Outcome: threeport.OutcomeStale, Version: m.versions[key]}
		}
		m.ended[key] = deletes
		m.rows[fmt.Sprint("/v0/workload-resource-instances/", int64(r.Operation.ResourceInstanceID))] = r.Operation.Operation + string(r.Operation.Definition)
		return m.newer(key, r.Version)
	}
	key, content := "tree", ""
	if r.Status != nil {
		key, content = "status", r.Status.Status+" "+r.Status.Cause
	}
	key += fmt.Sprint(int64(r.Instance.ID))
	if r.Version <= m.versions[key] {
		return threeport.ReportAnswer{Outcome: threeport.OutcomeStale, Version: m.versions[key]}
	}
	m.rows[key] = content
	return m.newer(key, r.Version)
}

func (m *model) newer(key string, version threeport.ID) threeport.ReportAnswer {
	_, known := m.versions[key]
	m.versions[key] = max(version, m.versions[key])
	if known {
		return threeport.ReportAnswer{Outcome: threeport.OutcomeUpdated}
	}
	return threeport.ReportAnswer{Outcome: threeport.OutcomeCreated}
}

func (m *model) upsertEvent(r threeport.Report) threeport.ReportAnswer {
	found := m.find(func(e *modelEvent) bool { return e.RuntimeEventUID == r.Event.UID })
	if len(found) == 0 {
		m.ids++
		m.events = append(m.events, &modelEvent{m.ids, r.Event.UID, r.Event.Message, r.Version})
		return threeport.ReportAnswer{Outcome: threeport.OutcomeCreated}
	}
	switch e := found[0]; cmp.Compare(r.Version, e.version) {
	case 1:
		e.version, e.Message = r.Version, r.Event.Message
		return threeport.ReportAnswer{Outcome: threeport.OutcomeUpdated}
	case 0:
		return threeport.ReportAnswer{Outcome: threeport.OutcomeUnchanged}
	default:
		return threeport.ReportAnswer{Outcome: threeport.OutcomeStale, Version: e.version}
	}
}

// expectEvents checks that each Event has one row, with the wanted message.
func (m *model) expectEvents(want map[string]string) {
	m.t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	counts := map[string]int{}
	for _, e := range m.events {
		counts[e.RuntimeEventUID]++
		if e.Message != want[e.RuntimeEventUID] {
			m.t.Errorf("the row of %s says %q, want %q", e.RuntimeEventUID, e.Message, want[e.RuntimeEventUID])
		}
	}
	for uid := range want {
		if counts[uid] != 1 {
			m.t.Errorf("%s has %d rows", uid, counts[uid])
		}
	}
}

// sizes returns the number of reports of each set, without heartbeats.
func (m *model) sizes() []int {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []int
	for _, set := range m.sets {
		if len(set.Reports) > 0 {
			out = append(out, len(set.Reports))
		}
	}
	return out
}

// pods returns the number of Pods with facts in each tree that was accepted.
func (m *model) pods() (pods []int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, set := range m.sets {
		for _, r := range set.Reports {
			if r.Tree == nil {
				continue
			}
			n := 0
			for _, o := range r.Tree.Objects {
				if o.Pod != nil {
					n++
				}
			}
			pods = append(pods, n)
		}
	}
	return pods
}

func (m *model) row(key string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rows[key]
}

func (m *model) sent() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.singles)
}
