package auth

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/threeport/threeport-agent/internal/threeport"
)

func TestAuditLog_AdministratorsRequests_AreRecorded(t *testing.T) {
	s := defaultOptions()
	s.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v0/panic":
			panic(http.ErrAbortHandler)
		case "/v0/teapot":
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusTeapot)
		case "/v0/body":
			_, _ = w.Write([]byte("x"))
			w.WriteHeader(http.StatusTeapot)
		}
	})
	w := start(t, s)
	named := w.client(t, certificate(t, w.authority, "ro\not\x7f é", "threeport:admins"))
	v0 := w.client(t, certificate(t, w.authority, "workload-agent"))
	opened := w.session(t, RoleAdmin)
	_, admin := w.token(t, RoleAdmin)
	_, agent := w.token(t, RoleAgent)
	_, viewer := w.token(t, RoleViewer)
	plain := w.plain
	for _, do := range []struct {
		client       *http.Client
		method, path string
		part         func(*http.Request)
	}{
		{client: plain, method: "POST", path: "/v0/tokens?secret=1", part: bearer(admin)},
		{client: plain, method: "DELETE", path: "/v0/tokens/7", part: cookie(opened)},
		{client: named, method: "PATCH", path: "/v0/workload-events/7"},
		{client: v0, method: "POST", path: "/v0/workload-instances"},
		{client: plain, method: "POST", path: "/v0/teapot", part: bearer(admin)},
		{client: plain, method: "POST", path: "/v0/body", part: bearer(admin)},
		{client: plain, method: "POST", path: "/v0/tokens", part: bearer(viewer)},
		{client: plain, method: "GET", path: "/v0/workload-resource-instances/7", part: bearer(viewer)},
		{client: plain, method: "PUT", path: "/v0/a%0Ab%ff" + strings.Repeat("x", maxAuditPath), part: bearer(admin)},
		{client: plain, method: strings.Repeat("M", 100), path: "/", part: bearer(admin)},
		// Requests without a record.
		{client: plain, method: "GET", path: "/v0/tokens", part: bearer(admin)},
		{client: named, method: "POST", path: "/v0/workload-report-sets"},
		{client: v0, method: "POST", path: "/v0/workload-report-sets"},
		{client: v0, method: "PATCH", path: "/v0/workload-events/7"},
		{client: plain, method: "POST", path: "/v0/workload-events", part: bearer(agent)},
		{client: plain, method: "GET", path: "/v0/workload-resource-instances/7", part: bearer(agent)},
		{client: v0, method: "GET", path: "/v0/workload-resource-instances/7"},
		{client: plain, method: "POST", path: "/v0/tokens", part: bearer(newToken(RoleAdmin))},
	} {
		part := do.part
		if part == nil {
			part = func(*http.Request) {}
		}
		w.do(t, do.client, do.method, do.path, part)
	}
	w.post(t, "/login", url.Values{"token": {"wrong"}})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.server.URL+"/v0/panic", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	bearer(admin)(req)
	if resp, err := plain.Do(req); err == nil {
		_ = resp.Body.Close()
		t.Error("the server answered a request whose handler panicked")
	}
	w.server.Close() // its handlers have returned
	want := []string{
		"session:a-admin admin POST /login 303",
		"token:a-admin admin POST /v0/tokens 200",
		"session:a-admin admin DELETE /v0/tokens/7 200",
		"certificate:ro?ot? ? admin PATCH /v0/workload-events/7 200",
		"certificate:workload-agent admin POST /v0/workload-instances 200",
		"token:a-admin admin POST /v0/teapot 418",
		"token:a-admin admin POST /v0/body 200",
		"token:a-viewer viewer POST /v0/tokens 403",
		"token:a-viewer viewer GET /v0/workload-resource-instances/7 200",
		"token:a-admin admin PUT " + ("/v0/a%0Ab%ff" + strings.Repeat("x", maxAuditPath))[:maxAuditPath] + " 200",
		"token:a-admin admin MMMMMMMMMMMMMMMM / 200",
		"anonymous:127.0.0.1  POST /login 401",
		"token:a-admin admin POST /v0/panic 500",
	}
	got := w.records()
	for i, record := range got {
		text := fmt.Sprintf("%s %s %s %s %d", record.Principal, record.Role, record.Method, record.Path, record.Code)
		if i >= len(want) || text != want[i] || !record.At.Equal(w.now()) {
			t.Errorf("record %d: %s at %v, want %s", i, text, record.At, want[i])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d records, want %d", len(got), len(want))
	}
}

// HTTP/2 allows any method; the record must be ASCII, which every database stores.
func TestAuditLog_Method_IsASCII(t *testing.T) {
	w := start(t, defaultOptions())
	w.auditLog.add(w.now(), "token:x", RoleAdmin, &http.Request{Method: "P\xffT\x00 é", URL: &url.URL{Path: "/"}}, http.StatusMethodNotAllowed)
	if got := w.records(); len(got) != 1 || got[0].Method != "P?T? ?" {
		t.Errorf("the audit log has %+v, want one record with an ASCII method", got)
	}
}

// The store hangs: requests do not wait for it, and Close writes all records.
func TestAuditLog_SlowStore_DoesNotBlockRequests(t *testing.T) {
	w := start(t, defaultOptions())
	_, admin := w.token(t, RoleAdmin)
	hang := make(chan struct{})
	w.store.mu.Lock()
	w.store.writing = func() { <-hang }
	w.store.mu.Unlock()
	const requests = 50
	client := w.plain
	for i := range requests {
		if got := w.do(t, client, http.MethodDelete, fmt.Sprintf("/v0/tokens/%d", i), bearer(admin)); got.code != http.StatusOK {
			t.Fatalf("the answer is %d, want %d", got.code, http.StatusOK)
		}
	}
	close(hang)
	for i, record := range w.records() {
		if want := fmt.Sprintf("/v0/tokens/%d", i); record.Path != want {
			t.Fatalf("record %d has path %s, want %s", i, record.Path, want)
		}
	}
	if got := len(w.store.audit); got != requests {
		t.Errorf("%d records, want %d", got, requests)
	}
}

func TestAuditLog_StoreFails_GoesToLog(t *testing.T) {
	w := start(t, defaultOptions())
	_, admin := w.token(t, RoleAdmin)
	w.do(t, w.plain, http.MethodGet, "/v0/tokens", bearer(admin)) // so that the token is cached
	w.store.fail(errors.New("disk full"))
	w.do(t, w.plain, http.MethodDelete, "/v0/tokens/7", bearer(admin))
	w.Close()
	if text := w.log.String(); lostRecords(w.log) != 1 || !strings.Contains(text, "disk full") || !strings.Contains(text, "/v0/tokens/7") {
		t.Errorf("%d failures, logged %s, want 1", lostRecords(w.log), text)
	}
	w.do(t, w.plain, http.MethodDelete, "/v0/tokens/8", bearer(admin)) // after Close
	if text := w.log.String(); lostRecords(w.log) != 2 || !strings.Contains(text, "/v0/tokens/8") {
		t.Errorf("%d failures, logged %s, want 2", lostRecords(w.log), text)
	}
}

func TestAuditLog_FullQueue_GoesToLog(t *testing.T) {
	w := start(t, defaultOptions())
	hang, hanging := make(chan struct{}), make(chan struct{})
	var once sync.Once
	w.store.mu.Lock()
	w.store.writing = func() { once.Do(func() { close(hanging); <-hang }) }
	w.store.mu.Unlock()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.server.URL+"/x", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	w.auditLog.add(w.now(), "token:x", RoleAdmin, req, 200)
	<-hanging
	for range maxQueuedWrites + 3 {
		w.auditLog.add(w.now(), "token:x", RoleAdmin, req, 200)
	}
	close(hang)
	if got := len(w.records()); got != maxQueuedWrites+1 || lostRecords(w.log) != 3 {
		t.Errorf("%d records, %d failures, want %d and 3", got, lostRecords(w.log), maxQueuedWrites+1)
	}
}

// A store may take any time to finish a write.
func TestAuthenticator_Close_LogsUnwrittenRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow, log := newFakeStore(), &logBuffer{}
		slow.writing = func() { time.Sleep(time.Minute) }
		a, err := New(slow, DefaultConfig(), slog.New(slog.NewJSONHandler(log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, fmt.Sprintf("/x/%d", i), http.NoBody)
			a.auditLog.add(time.Now(), "token:x", RoleAdmin, r, http.StatusOK)
		}
		begun := time.Now()
		a.Close()
		if took := time.Since(begun); took != time.Minute || lostRecords(log) != 3 {
			t.Errorf("took %v, %d failures, want %v and 3", took, lostRecords(log), time.Minute)
		}
		for i := range 3 {
			if path := fmt.Sprintf("/x/%d", i); strings.Count(log.String(), path) != 1 {
				t.Errorf("the log does not have the record of %s exactly once: %s", path, log)
			}
		}
	})
}

func TestAuthenticator_CloseTwice_Returns(t *testing.T) {
	a, err := New(newFakeStore(), DefaultConfig(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 3 {
		group.Go(a.Close)
	}
	group.Wait()
}

// lostRecords counts the audit records that went to the log instead of the store.
func lostRecords(log *logBuffer) int { return strings.Count(log.String(), "Audit record not written") }

func TestAuditLog_List(t *testing.T) {
	w := start(t, defaultOptions())
	post := func(path string) *http.Request {
		return httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, http.NoBody)
	}
	w.auditLog.add(w.now(), "token:jane", RoleAdmin, post("/v0/tokens"), 201)
	w.auditLog.add(w.now(), "anonymous:192.0.2.1", "", post("/login"), 401)
	w.Close()
	got, err := w.AuditLog().List(t.Context(), &ListAuditInput{Size: 10})
	if err != nil {
		t.Fatal(err)
	}
	newest, oldest := got.Body.Items[0], got.Body.Items[1]
	if newest.ID != threeport.ID(2) || newest.Principal != "anonymous:192.0.2.1" || newest.Code != 401 || got.Body.Total != 2 ||
		oldest.Role != RoleAdmin || oldest.Method != "POST" || oldest.Path != "/v0/tokens" || !oldest.At.Equal(w.now()) {
		t.Errorf("the page of the audit log is %+v", got.Body)
	}
}

func TestAuditLog_Refusals(t *testing.T) {
	w := start(t, defaultOptions())
	gone, revoked := w.token(t, RoleViewer)
	if _, err := w.store.RevokeToken(t.Context(), gone.ID); err != nil {
		t.Fatal(err)
	}
	const requests = 100
	for range requests {
		w.do(t, w.plain, http.MethodGet, "/v0/workloads", bearer(revoked))
		w.do(t, w.plain, http.MethodGet, "/v0/workloads", bearer(newToken(RoleAdmin)))
		w.do(t, w.plain, http.MethodGet, "/v0/workloads")
	}
	misspelled := w.client(t, certificate(t, w.authority, "jane", "threeport:viewer"))
	w.do(t, misspelled, http.MethodGet, "/v0/workloads")
	byPrincipal := map[string]int{}
	for _, record := range w.records() {
		byPrincipal[record.Principal]++
		if record.Code != http.StatusUnauthorized || record.Path != "/v0/workloads" {
			t.Errorf("the record is %+v, want a refused read of workloads", record)
		}
	}
	if n := byPrincipal["token:a-viewer"]; n != refusalRate.Burst || byPrincipal["certificate:jane"] != 1 || len(byPrincipal) != 2 {
		t.Errorf("the audit log has %v, want %d records of the revoked token, one of the certificate, and none of unknown tokens", byPrincipal, refusalRate.Burst)
	}
	if text := w.log.String(); !strings.Contains(text, `"principal":"certificate:jane"`) || !strings.Contains(text, "unknown organization") {
		t.Errorf("the log is %s, want the refused certificate with the reason", text)
	}
}

// Callers whose credentials are unknown can be many.
func TestAuditLog_RefusalsOfManyCallers_AreBounded(t *testing.T) {
	w := start(t, defaultOptions())
	for i := range 10 * allRefusalsRate.Burst {
		w.admitRefusal(fmt.Sprint("anonymous:", i), false)
	}
	if w.admitRefusal("anonymous:another", false) {
		t.Error("another address has a record, want none")
	}
	if !w.admitRefusal("token:jane", true) {
		t.Error("the refusal of a known credential has no record")
	}
}

func TestAuditLog_RepeatedReads_AreRecordedOnceAMinute(t *testing.T) {
	w := start(t, defaultOptions())
	_, viewer := w.token(t, RoleViewer)
	_, admin := w.token(t, RoleAdmin)
	read := func() {
		for range 5 {
			for _, secret := range []string{viewer, admin} {
				w.do(t, w.plain, http.MethodGet, "/v0/workload-resource-instances/7", bearer(secret))
				w.do(t, w.plain, http.MethodGet, "/v0/workload-resource-instances/8?x=1", bearer(secret))
			}
		}
	}
	read()
	w.clock.advance(time.Minute)
	read()
	if got := w.records(); len(got) != 8 {
		t.Errorf("two principals that read two rows for two minutes have %d records, want 8: %+v", len(got), got)
	}
}

func TestAuditLog_FailedReads_AreNotRecorded(t *testing.T) {
	options := defaultOptions()
	options.config.ViewerRate = Rate{PerSecond: 1, Burst: 4}
	options.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v0/workload-resource-instances/1":
			w.WriteHeader(http.StatusNotFound)
		case "/v0/workload-resource-instances/2":
			w.WriteHeader(http.StatusServiceUnavailable)
		case "/v0/workload-resource-instances/3":
			w.WriteHeader(http.StatusNotModified)
		}
	})
	w := start(t, options)
	_, viewer := w.token(t, RoleViewer)
	codes := map[int]int{}
	for i := range 10 {
		codes[w.do(t, w.plain, http.MethodGet, fmt.Sprintf("/v0/workload-resource-instances/%d", i), bearer(viewer)).code]++
	}
	if codes[http.StatusTooManyRequests] != 6 {
		t.Errorf("the answers have the codes %v, want 6 of 429", codes)
	}
	var got []string
	for _, record := range w.records() {
		got = append(got, fmt.Sprintf("%s %d", record.Path, record.Code))
	}
	if want := "/v0/workload-resource-instances/0 200, /v0/workload-resource-instances/3 304"; strings.Join(got, ", ") != want {
		t.Errorf("the audit log has %v, want %s", got, want)
	}
}

func TestAuditLog_ReadsOfManyPaths_AreBounded(t *testing.T) {
	w := start(t, defaultOptions())
	_, viewer := w.token(t, RoleViewer)
	_, admin := w.token(t, RoleAdmin)
	read := func(secret, path string) {
		w.do(t, w.plain, http.MethodGet, "/v0/workload-resource-instances/"+path, bearer(secret))
	}
	for i := range 3 * allReadsRate.Burst {
		read(viewer, fmt.Sprint(i))
	}
	read(admin, "7")
	w.clock.advance(time.Second)
	for i := range 3 * allReadsRate.Burst {
		read(viewer, fmt.Sprint("again-", i))
	}
	paths, further := map[string]int{}, 0
	for _, record := range w.records() {
		paths[record.Principal]++
		if record.Object.Type == furtherReads {
			further++
		}
	}
	if want := allReadsRate.Burst + 2; paths["token:a-viewer"] != want || paths["token:a-admin"] != 1 || further != 1 {
		t.Errorf("the audit log has %v records and %d of further reads, want %d of the viewer, 1 of the administrator, and 1 of further reads",
			paths, further, want)
	}
}

func TestAuditLog_RepeatedLogIns_AreBounded(t *testing.T) {
	w := start(t, defaultOptions())
	for range 2 * logInRate.Burst {
		w.session(t, RoleViewer) // with a token of its own: each token has a limit of its own
	}
	if got := len(w.records()); got != logInRate.Burst {
		t.Errorf("%d log-ins have %d records, want %d", 2*logInRate.Burst, got, logInRate.Burst)
	}
}

// The store hangs while reads and refusals flood the queue.
func TestAuditLog_Flood_LeavesRoomToAdministrators(t *testing.T) {
	w := start(t, defaultOptions())
	_, admin := w.token(t, RoleAdmin)
	w.do(t, w.plain, http.MethodGet, "/v0/tokens", bearer(admin)) // so that the token is cached
	w.flush()
	hang := make(chan struct{})
	w.store.mu.Lock()
	w.store.writing = func() { <-hang }
	w.store.mu.Unlock()
	read := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v0/clusters/x/objects/y", http.NoBody)
	const flood = 2 * maxQueuedWrites
	for i := range flood {
		if i%2 == 0 {
			w.auditLog.add(w.now(), "token:a-viewer", RoleViewer, read, http.StatusOK)
		} else {
			w.auditLog.add(w.now(), "token:a-admin", RoleAdmin, read, http.StatusForbidden)
		}
	}
	const writes = 10
	for i := range writes {
		w.do(t, w.plain, http.MethodDelete, fmt.Sprintf("/v0/tokens/%d", i), bearer(admin))
	}
	close(hang)
	recorded, protected := 0, 0
	for _, record := range w.records() {
		recorded++
		if record.Method == http.MethodDelete {
			protected++
		}
	}
	if protected != writes {
		t.Errorf("%d records of an administrator's %d writes, want all", protected, writes)
	}
	if lines := lostRecords(w.log); lines == 0 || lines > 2*lossBurst {
		t.Errorf("the log has %d lines about lost records, want 1 to %d", lines, 2*lossBurst)
	}
	lost := lostRecords(w.log)
	for line := range strings.SplitSeq(strings.TrimSpace(w.log.String()), "\n") {
		var counts struct{ Skipped, SkippedBefore int }
		if err := json.Unmarshal([]byte(line), &counts); err != nil {
			t.Fatal(err)
		}
		lost += counts.Skipped + counts.SkippedBefore
	}
	if want := flood + writes - recorded; lost != want {
		t.Errorf("the log counts %d lost records, want %d", lost, want)
	}
}
