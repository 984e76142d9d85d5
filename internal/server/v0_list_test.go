package server

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// createEvents creates Events with messages of a size.
func createEvents(t *testing.T, s *store.Store, n, size int) {
	t.Helper()
	for range n {
		values := []any{"", "Normal", "Created", strings.Repeat("x", size), int64(1), nil, nil, nil}
		if _, _, err := s.Create(t.Context(), eventResource(), values); err != nil {
			t.Fatal(err)
		}
	}
}

// beginList sends a request for a list of Events, and returns the body of the answer.
func beginList(t *testing.T, url, query string) io.ReadCloser {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/v0/workload-events?"+query, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("list %s: the answer is %d, want %d", query, resp.StatusCode, http.StatusOK)
	}
	return resp.Body
}

func TestV0List_ManyChunks_IsOneAnswer(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, address string) {
		t.Helper()
		opened, url := startStore(t, address)
		const rows = 40
		createEvents(t, opened, rows, 64<<10)
		for query, want := range map[string]int{"size=-1": rows, "size=30": 30, "size=30&page=2": 10} {
			var answer threeport.Response[struct {
				ID      int64
				Message string
			}]
			if err := json.NewDecoder(beginList(t, url, query)).Decode(&answer); err != nil {
				t.Fatal(err)
			}
			if len(answer.Data) != want || answer.Meta.TotalCount != rows || answer.Status.Code != http.StatusOK {
				t.Errorf("%s: %d rows, %+v, %+v, want %d of %d", query, len(answer.Data), answer.Meta, answer.Status, want, rows)
			}
			for i := 1; i < len(answer.Data); i++ {
				if answer.Data[i].ID <= answer.Data[i-1].ID {
					t.Errorf("%s: row %d follows row %d, want ascending IDs", query, answer.Data[i].ID, answer.Data[i-1].ID)
				}
			}
		}
	})
}

// A database in memory has one connection: another request would wait until the client has read the list.
func TestV0List_ClientThatDoesNotRead_HoldsNoConnection(t *testing.T) {
	opened, url := startStore(t, "sqlite::memory:")
	createEvents(t, opened, 300, 64<<10)
	stalled := beginList(t, url, "size=-1")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := opened.Ping(ctx); err != nil {
		t.Errorf("the database while a client does not read: %v", err)
	}
	_ = stalled.Close()
}

// A list that ends early has to look incomplete.
func TestV0List_FailureOfALaterChunk_CutsTheAnswerOff(t *testing.T) {
	config := onFile(t)
	opened, url := startStore(t, config.Database)
	createEvents(t, opened, 300, 64<<10)
	begun := beginList(t, url, "size=-1")
	file, err := sql.Open("sqlite", strings.TrimPrefix(config.Database, "sqlite:"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if _, err := file.ExecContext(t.Context(), "PRAGMA busy_timeout = 5000; ALTER TABLE workload_events RENAME TO hidden"); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(begun)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the answer has %d bytes, error %v, want %v", len(text), err, io.ErrUnexpectedEOF)
	}
}

func TestV0List_SecondLongListOfASender_IsAnsweredWith503(t *testing.T) {
	s, err := store.Open(t.Context(), store.Config{Address: "sqlite::memory:"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	v := newV0API(s, slog.New(slog.DiscardHandler), testBody)
	v.limits.longLists.wait = 10 * time.Millisecond
	handler := newRouter().serve(v.strictRoutes())
	get := func(address, size string) *httptest.ResponseRecorder {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v0/workload-events?size="+size, http.NoBody)
		req.RemoteAddr = address
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, req)
		return answer
	}
	first := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
	first.RemoteAddr = oneAddress
	held, err := v.acquireList(v0RequestOf(first, v.limits), store.Selection{Size: -1})
	if err != nil {
		t.Fatal(err)
	}
	held.search.release() // its rows are counted
	for _, tc := range []struct {
		address, size string
		code          int
	}{
		{oneAddress, "-1", 503}, {oneAddress, "1001", 503}, {oneAddress, "1000", 200}, {oneAddress, "", 200}, {anotherAddress, "-1", 200},
	} {
		got := get(tc.address, tc.size)
		if got.Code != tc.code || (tc.code == http.StatusServiceUnavailable) != (got.Header().Get("Retry-After") != "") {
			t.Errorf("size %q of %s: %d %v %s, want %d", tc.size, tc.address, got.Code, got.Header(), got.Body, tc.code)
		}
	}
	held.release()
	if got := get(oneAddress, "-1"); got.Code != http.StatusOK {
		t.Errorf("after the first list: the answer is %d, want %d", got.Code, http.StatusOK)
	}
	expectAllFree(t, "answers", v.limits.answers, answerBytes)
	expectAllFree(t, "long lists", v.limits.longLists, v0LongLists)
}

func TestSearches_SecondOfASender_IsAnsweredWith503(t *testing.T) {
	s, err := store.Open(t.Context(), store.Config{Address: "sqlite::memory:"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	v := newV0API(s, slog.New(slog.DiscardHandler), testBody)
	v.limits.searches.wait = 10 * time.Millisecond
	router := newRouter()
	router.api = newAPI(router, "test", false)
	w := &workloads{store: s, answers: answerMemory{v.limits.answers}, searches: v.limits.searches}
	rows := append(v.strictRoutes(), route{"GET", "/v0/workloads", viewers, noBody, v.limits.reads.limit(operation(listWorkloadsOperation, w.list))})
	handler := router.serve(rows)
	requestFrom := func(address, path string) *http.Request {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)
		req.RemoteAddr = address
		return req
	}
	slot, err := v.limits.searches.acquire(t.Context(), senderOf(requestFrom(oneAddress, "/")), 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		address, path string
		code          int
	}{
		{oneAddress, "/v0/workload-events?message=x", 503},
		{oneAddress, "/v0/workloads?text=x", 503},
		{oneAddress, "/v0/workload-events?size=1", 503},
		{oneAddress, "/v0/workload-events?page=600000", 503},
		{oneAddress, "/v0/workload-events?workloadinstanceid=1", 200},
		{oneAddress, "/v0/workloads", 200},
		{anotherAddress, "/v0/workload-events?message=x", 200},
		{anotherAddress, "/v0/workload-events?size=1", 200},
		{anotherAddress, "/v0/workloads?text=x", 200},
	} {
		got := httptest.NewRecorder()
		handler.ServeHTTP(got, requestFrom(tc.address, tc.path))
		if got.Code != tc.code || (tc.code == http.StatusServiceUnavailable) != (got.Header().Get("Retry-After") != "") {
			t.Errorf("%s of %s: %d %v %s, want %d", tc.path, tc.address, got.Code, got.Header(), got.Body, tc.code)
		}
	}
	slot.release()
	expectAllFree(t, "answers", v.limits.answers, answerBytes)
	expectAllFree(t, "searches", v.limits.searches, searchSlots)
}

// TestV0_NoPermission_IsAnsweredBeforeTheBody sends no byte of the body.
func TestV0_NoPermission_IsAnsweredBeforeTheBody(t *testing.T) {
	n := newTwoClusters(t)
	owned := n.createRows("owned")
	n.assign(owned, "c")
	for _, tc := range []struct {
		reason, bearer, method, path string
		code                         int
	}{
		{"an agent changes another cluster's resource", n.other, "PATCH", fmt.Sprintf("workload-resource-instances/%d", owned.resource), 403},
		{"an agent changes another cluster's Event", n.other, "PATCH", fmt.Sprintf("workload-events/%d", owned.event), 403},
		{"an agent changes a row that does not exist", n.own, "PATCH", "workload-events/1", 404},
		{"an agent creates an instance", n.own, "POST", "workload-instances", 403},
	} {
		body, arriving := io.Pipe()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		req, err := http.NewRequestWithContext(ctx, tc.method, n.url+"/v0/"+tc.path, body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", tc.bearer)
		req.Header.Set("Content-Type", "application/json")
		resp, err := n.client.Do(req)
		if err != nil {
			t.Errorf("%s: %v, want an answer without a body", tc.reason, err)
		} else {
			if resp.StatusCode != tc.code {
				t.Errorf("%s: the answer is %d, want %d", tc.reason, resp.StatusCode, tc.code)
			}
			_ = resp.Body.Close()
		}
		_ = arriving.Close()
		cancel()
	}
}

func TestV0_BodyBeyondTheAgentsLimit_IsAnsweredWith413(t *testing.T) {
	n := newTwoClusters(t)
	owned := n.createRows("owned")
	n.assign(owned, "c")
	space := strings.Repeat(" ", 1<<20)
	patch := fmt.Sprintf("workload-events/%d", owned.event)
	n.expectCode(http.StatusRequestEntityTooLarge, n.own, http.MethodPatch, patch, `{"Message":"m"}`+space)
	n.expectCode(http.StatusOK, n.admin, http.MethodPatch, patch, `{"Message":"m"}`+space)
	resource := fmt.Sprintf("workload-resource-instances/%d", owned.resource)
	n.expectCode(http.StatusOK, n.own, http.MethodPatch, resource, `{"RuntimeDefinition":"`+strings.Repeat("x", 4<<20-2)+`"}`)
	n.expectCode(http.StatusBadRequest, n.own, http.MethodPatch, resource, `{"RuntimeDefinition":"`+strings.Repeat("x", 4<<20-1)+`"}`)
}

// The order of the keys of a map is random, so each list is read several times.
func TestV0_List_SameFilterInDifferentCase_IsDeterministic(t *testing.T) {
	n := newTwoClusters(t)
	first, second := n.createRows("first"), n.createRows("second")
	for _, tc := range []struct {
		reason, keys string
		want         int64
	}{
		{reason: "the key in lower case counts", keys: "WorkloadInstanceID=%[2]d&workloadinstanceid=%[1]d", want: first.event},
		{reason: "the first key in the order of bytes counts", keys: "workloadInstanceID=%[2]d&WorkloadInstanceID=%[1]d", want: first.event},
	} {
		for range 30 {
			code, id := n.request(n.admin, http.MethodGet, "workload-events?"+fmt.Sprintf(tc.keys, first.instance, second.instance), "")
			if code != http.StatusOK || id != tc.want {
				t.Fatalf("%s: the answer is %d with the Event %d, want %d", tc.reason, code, id, tc.want)
			}
		}
	}
}
