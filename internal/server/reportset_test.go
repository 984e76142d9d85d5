package server

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/server/auth"
	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/threeport"
)

func TestReportSets_Bodies(t *testing.T) {
	config := onFile(t)
	config.Limits.Reports, config.Limits.BodyBytes, config.Limits.DecodedBytes = 5, minBytes, 4*minBytes
	url := run(t, config) + "/v0/workload-report-sets"
	set := func(padding int) string {
		return `{` + someAgent + strings.Repeat(" ", padding) + `,"reports":[]}`
	}
	for _, tc := range []struct {
		reason string
		header http.Header
		body   []byte
		code   int
		has    string
	}{
		{reason: "plain", header: asJSON(), body: []byte(set(0)), code: 200, has: `{"items":[]}`},
		{reason: "gzip", header: asJSON("Content-Encoding", "gzip"), body: encoded(t, "gzip", set(3*minBytes)), code: 200, has: `{"items":[]}`},
		{reason: "zstd", header: asJSON("Content-Encoding", "zstd"), body: encoded(t, "zstd", set(3*minBytes)), code: 200, has: `{"items":[]}`},
		{
			reason: "gzip bomb", header: asJSON("Content-Encoding", "gzip"), body: encoded(t, "gzip", set(64*minBytes)),
			code: 413, has: "at most 262144 bytes before compression",
		},
		{
			reason: "zstd bomb", header: asJSON("Content-Encoding", "zstd"), body: encoded(t, "zstd", set(64*minBytes)),
			code: 413, has: "at most 262144 bytes before compression",
		},
		{reason: "large", header: asJSON(), body: []byte(set(minBytes)), code: 413, has: "at most 65536 bytes as sent"},
		{
			reason: "too many reports", header: asJSON(), body: []byte(`{` + someAgent + `,"reports":[{},{},{},{},{},{}]}`),
			code: 413, has: "at most 5 items",
		},
		{reason: "unknown coding", header: asJSON("Content-Encoding", "br"), body: []byte(set(0)), code: 415, has: "use identity, gzip or zstd"},
		{reason: "not gzip", header: asJSON("Content-Encoding", "gzip"), body: []byte(set(0)), code: 400, has: "not gzip"},
		{
			reason: "another type", header: http.Header{"Content-Type": {"text/plain"}},
			body: []byte(set(0)), code: 415, has: "use application/json",
		},
		{reason: "no type", header: http.Header{}, body: []byte(set(0)), code: 415, has: "use application/json"},
		{reason: "an empty body", header: asJSON(), code: 400, has: "ends before"},
	} {
		got := send(t, http.DefaultClient, http.MethodPost, url, tc.header, tc.body)
		if got.code != tc.code || !strings.Contains(got.body, tc.has) {
			t.Errorf("%s: the answer is %d %s, want %d", tc.reason, got.code, got.body, tc.code)
		}
	}
}

// failingStore is a store that fails.
type failingStore struct{ err error }

func (f failingStore) ApplyAs(context.Context, threeport.ReportSet, store.ClaimPolicy) (threeport.ReportSetAnswer, []threeport.Instance, error) {
	return threeport.ReportSetAnswer{}, nil, f.err
}

// serveReportSets serves report sets of an administrator.
func serveReportSets(t *testing.T, s reportStore, memory *reportSetMemory, log *slog.Logger) string {
	t.Helper()
	r := newReportSets(s, DefaultLimits(), newMetrics(), &claims{})
	r.memory = memory
	return serveSets(t, r, log)
}

// serveSets serves the report sets of an administrator.
func serveSets(t *testing.T, r *reportSets, log *slog.Logger) string {
	t.Helper()
	return serveSetsOf(t, auth.Principal{Role: auth.RoleAdmin}, r, log)
}

// serveSetsOf serves the sets of one principal.
func serveSetsOf(t *testing.T, sender auth.Principal, r *reportSets, log *slog.Logger) string {
	t.Helper()
	router := newRouter()
	router.api = newAPI(router, "test", false)
	served := recordRoute(router.serve([]route{
		{"POST", "/v0/workload-report-sets", anyone, r.bodyLimit(), operation(applyReportSetOperation, r.apply)},
	}))
	asSender := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		served.ServeHTTP(w, req.WithContext(auth.WithPrincipal(req.Context(), sender)))
	})
	server := httptest.NewServer(instrument(asSender, r.metrics, log))
	t.Cleanup(server.Close)
	return server.URL + "/v0/workload-report-sets"
}

func TestReportSets_Failures(t *testing.T) {
	body := []byte(`{` + someAgent + `,"reports":[]}`)
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	url := serveReportSets(t, failingStore{errors.New("connection refused")}, newReportSetMemory(DefaultLimits()), logger)
	got := send(t, http.DefaultClient, http.MethodPost, url, asJSON(), body)
	if got.code != http.StatusServiceUnavailable || got.header.Get("Retry-After") != "1" || strings.Contains(got.body, "refused") {
		t.Errorf("the database is away: the answer is %d %v %s, want %d", got.code, got.header, got.body, http.StatusServiceUnavailable)
	}
	if !strings.Contains(log.String(), "connection refused") || strings.Contains(log.String(), "clusterUID") {
		t.Errorf("the log is %s, want the error of the database and no report", log.String())
	}

	full := newReportSetMemory(DefaultLimits())
	full.decoded.wait = time.Millisecond
	all := largestDecoded * largestSetMemory(DefaultLimits())
	if !full.decoded.total.TryAcquire(all) {
		t.Fatal("the decoded-set memory is in use before the test")
	}
	url = serveReportSets(t, failingStore{}, full, slog.New(slog.DiscardHandler))
	got = send(t, http.DefaultClient, http.MethodPost, url, asJSON(), body)
	if got.code != http.StatusServiceUnavailable || got.header.Get("Retry-After") != "1" {
		t.Errorf("no memory: the answer is %d %s, want %d", got.code, got.body, http.StatusServiceUnavailable)
	}
	full.decoded.total.Release(all)
	for _, body := range []string{string(body), "hunter2", `{"x":1}`} {
		send(t, http.DefaultClient, http.MethodPost, url, asJSON(), []byte(body))
	}
	expectAllFree(t, "decoded", full.decoded, all)
	expectAllFree(t, "received", full.received, largestReceived*DefaultLimits().BodyBytes)
}
