package otlplogs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/threeport/threeport-agent/internal/otlp"
	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/threeport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memoryQueue is a queue of one goroutine, which is always one record too long.
type memoryQueue struct {
	records []store.LogRecord
	trims   int64
}

// TrimLogs implements Queue. Another goroutine calls it.
func (q *memoryQueue) TrimLogs(context.Context) (int64, error) {
	q.trims++
	return 1, nil
}

// ExportLogs implements Queue.
func (q *memoryQueue) ExportLogs(ctx context.Context, send func(context.Context, []store.LogRecord) (int, error)) (store.LogExport, error) {
	if len(q.records) == 0 {
		return store.LogExport{}, nil
	}
	n, err := send(ctx, q.records)
	q.records = q.records[n:]
	return store.LogExport{Records: n}, err
}

// LogBacklog implements Queue.
func (q *memoryQueue) LogBacklog(context.Context) (int64, *time.Time, error) {
	at := time.Now().Add(-time.Minute)
	return int64(len(q.records)), &at, nil
}

// events are records with these UIDs.
func events(uids ...string) []store.LogRecord {
	var all []store.LogRecord
	for _, uid := range uids {
		all = append(all, store.LogRecord{UID: uid, Event: &threeport.TimelineEvent{}})
	}
	return all
}

// received returns the UIDs of the records of a request.
func received(t *testing.T, body io.Reader) (uids []string) {
	t.Helper()
	raw, err := io.ReadAll(body)
	if err != nil {
		t.Error(err)
	}
	var request logspb.LogsData
	if err := proto.Unmarshal(raw, &request); err != nil {
		t.Error(err)
	}
	for _, resource := range request.ResourceLogs {
		for _, scope := range resource.ScopeLogs {
			for _, record := range scope.LogRecords {
				for _, attribute := range record.Attributes {
					if attribute.Key == "log.record.uid" {
						uids = append(uids, attribute.Value.GetStringValue())
					}
				}
			}
		}
	}
	return uids
}

// partialAnswer is an ExportLogsServiceResponse.
func partialAnswer(rejected uint64, message string) []byte {
	partial := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), rejected)
	partial = protowire.AppendString(protowire.AppendTag(partial, 2, protowire.BytesType), message)
	return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), partial)
}

// newExporter returns an exporter to a receiver, and its log.
func newExporter(t *testing.T, config otlp.Config, queue Queue) (*Exporter, *bytes.Buffer) {
	t.Helper()
	if err := config.Validate(); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	e, err := New(queue, config, "v1", slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.client.Close)
	return e, &log
}

func TestExport_AnswersOfBackend(t *testing.T) {
	refuse := func(code int, poison string) func(uids []string) (int, []byte) {
		return func(uids []string) (int, []byte) {
			if slices.Contains(uids, poison) {
				return code, []byte("bad record")
			}
			return http.StatusOK, nil
		}
	}
	always := func(code int, body []byte) func([]string) (int, []byte) {
		return func([]string) (int, []byte) { return code, body }
	}
	for _, tc := range []struct {
		reason   string
		answer   func(uids []string) (code int, body []byte)
		accepted []string
		exported float64
		refused  float64
		err      string // a part of the error; empty for none
		log      string // a part of the log
	}{
		{reason: "accepted", answer: always(http.StatusOK, nil), accepted: []string{"a", "b", "c", "d"}, exported: 4},
		{
			reason: "partial success", answer: always(http.StatusOK, partialAnswer(3, "too old")), accepted: []string{"a", "b", "c", "d"},
			exported: 1, refused: 3, log: `records=3 reason="too old"`,
		},
		{
			reason: "a warning in a partial success", answer: always(http.StatusOK, partialAnswer(0, "deprecated")), accepted: []string{"a", "b", "c", "d"},
			exported: 4,
		},
		{reason: "an answer that is no protobuf", answer: always(http.StatusOK, []byte("OK, thank you")), accepted: []string{"a", "b", "c", "d"}, exported: 4},
		{reason: "more rejected than sent", answer: always(http.StatusOK, partialAnswer(1<<40, "")), accepted: []string{"a", "b", "c", "d"}, refused: 4},
		{
			reason: "one record is refused", answer: refuse(http.StatusBadRequest, "c"), accepted: []string{"a", "b", "d"}, exported: 3, refused: 1,
			log: `records=1 reason="HTTP 400: \"bad record\""`,
		},
		{reason: "one record is too large", answer: refuse(http.StatusRequestEntityTooLarge, "a"), accepted: []string{"b", "c", "d"}, exported: 3, refused: 1},
		{reason: "one record is invalid", answer: refuse(http.StatusUnprocessableEntity, "d"), accepted: []string{"a", "b", "c"}, exported: 3, refused: 1},
		{reason: "overload", answer: always(http.StatusTooManyRequests, nil), err: "HTTP 429"},
		{reason: "a bad gateway", answer: always(http.StatusBadGateway, nil), err: "HTTP 502"},
		{reason: "outage", answer: always(http.StatusServiceUnavailable, []byte("down")), err: `HTTP 503: "down"`},
		{reason: "a timeout of a gateway", answer: always(http.StatusGatewayTimeout, nil), err: "HTTP 504"},
		{reason: "an internal error", answer: always(http.StatusInternalServerError, nil), err: "HTTP 500"},
		{reason: "an expired token", answer: always(http.StatusUnauthorized, nil), err: "HTTP 401"},
		{reason: "a wrong path", answer: always(http.StatusNotFound, nil), err: "HTTP 404"},
		{reason: "a redirect", answer: always(http.StatusFound, nil), err: "HTTP 302"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			var accepted []string
			receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				uids := received(t, r.Body)
				if r.URL.Path != "/v1/logs" || r.Header.Get("Content-Type") != "application/x-protobuf" {
					t.Errorf("the request is %s with the type %s", r.URL, r.Header.Get("Content-Type"))
				}
				code, body := tc.answer(uids)
				if code == http.StatusOK {
					accepted = append(accepted, uids...)
				}
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(code)
				_, _ = w.Write(body)
			}))
			defer receiver.Close()
			e, log := newExporter(t, otlp.Config{Endpoint: receiver.URL}, &memoryQueue{})
			_, err := e.export(t.Context(), events("a", "b", "c", "d"))
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("the error is %v, want %q", err, tc.err)
			}
			if !slices.Equal(accepted, tc.accepted) {
				t.Errorf("%q were accepted, want %q", accepted, tc.accepted)
			}
			if got := testutil.ToFloat64(e.metrics.exported); got != tc.exported {
				t.Errorf("%v records count as exported, want %v", got, tc.exported)
			}
			if got := testutil.ToFloat64(e.metrics.dropped.WithLabelValues("refused")); got != tc.refused {
				t.Errorf("%v records count as refused, want %v", got, tc.refused)
			}
			if !strings.Contains(log.String(), tc.log) || tc.refused > 0 && log.Len() == 0 {
				t.Errorf("the log is %q, want %q", log, tc.log)
			}
		})
	}
}

// ofCluster are n records of a cluster.
func ofCluster(uid string, n int) []store.LogRecord {
	var all []store.LogRecord
	for i := range n {
		all = append(all, store.LogRecord{UID: fmt.Sprint(uid, " ", i), ClusterUID: uid, Event: &threeport.TimelineEvent{}})
	}
	return all
}

// backend is a backend whose answers depend on the UIDs of a request.
func backend(t *testing.T, answer func(uids []string) int) (e *Exporter, requests *int) {
	t.Helper()
	requests = new(int)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*requests++
		w.WriteHeader(answer(received(t, r.Body)))
	}))
	t.Cleanup(receiver.Close)
	e, _ = newExporter(t, otlp.Config{Endpoint: receiver.URL}, &memoryQueue{})
	return e, requests
}

func (m metrics) expect(t *testing.T, exported, refused float64) {
	t.Helper()
	if got := testutil.ToFloat64(m.exported); got != exported {
		t.Errorf("%v records count as exported, want %v", got, exported)
	}
	if got := testutil.ToFloat64(m.dropped.WithLabelValues("refused")); got != refused {
		t.Errorf("%v records count as refused, want %v", got, refused)
	}
}

// The backend refuses all records of one cluster. They take a limited number of requests, and no record of others is lost.
func TestExport_ClusterIsRefused_OthersAreAccepted(t *testing.T) {
	e, requests := backend(t, func(uids []string) int {
		if slices.ContainsFunc(uids, func(uid string) bool { return strings.HasPrefix(uid, "bad") }) {
			return http.StatusBadRequest
		}
		return http.StatusOK
	})
	settled, err := e.export(t.Context(), slices.Concat(ofCluster("a", 100), ofCluster("bad", 300), ofCluster("z", 100)))
	if settled != 500 || err != nil {
		t.Errorf("%d records are settled, %v, want all", settled, err)
	}
	e.metrics.expect(t, 200, 300)
	if want := 1 + 1 + maxRefusals + 1; *requests != want {
		t.Errorf("there were %d requests, want %d", *requests, want)
	}
}

// Of a cluster, three records are refused. The others arrive.
func TestExport_FewRecordsAreRefused_OthersOfTheClusterAreAccepted(t *testing.T) {
	e, _ := backend(t, func(uids []string) int {
		for _, bad := range []string{"a 7", "a 250", "a 499"} {
			if slices.Contains(uids, bad) {
				return http.StatusBadRequest
			}
		}
		return http.StatusOK
	})
	if settled, err := e.export(t.Context(), ofCluster("a", 500)); settled != 500 || err != nil {
		t.Errorf("%d records are settled, %v, want all", settled, err)
	}
	e.metrics.expect(t, 497, 3)
}

// The backend fails after it accepted some records and refused one.
func TestExport_FailureInTheMiddle_KeepsSettledRecords(t *testing.T) {
	e, _ := backend(t, func(uids []string) int {
		switch {
		case slices.Contains(uids, "a 1"):
			return http.StatusBadRequest
		case slices.Contains(uids, "b 0"):
			return http.StatusServiceUnavailable
		default:
			return http.StatusOK
		}
	})
	settled, err := e.export(t.Context(), slices.Concat(ofCluster("a", 4), ofCluster("b", 4)))
	if settled != 4 || err == nil {
		t.Errorf("%d records are settled, %v, want the four of the first cluster and an error", settled, err)
	}
	e.metrics.expect(t, 3, 1)
}

// answers are the answers of a backend in a bubble, which has no network.
type answers func() (*otlp.Answer, error)

// Post implements client.
func (a answers) Post(context.Context, []byte) (*otlp.Answer, error) { return a() }

// Close implements client.
func (a answers) Close() {}

// An outage delays the next request more and more, up to a minute, and the records arrive after it.
func TestRun_Outage_BacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const outage = time.Hour
		queue := &memoryQueue{records: events("a")}
		e, log := newExporter(t, otlp.Config{Endpoint: "http://127.0.0.1:1"}, queue)
		begin, requests := time.Now(), 0
		e.client = answers(func() (*otlp.Answer, error) {
			requests++
			if time.Since(begin) < outage {
				return nil, errors.New("connection refused")
			}
			return &otlp.Answer{Code: http.StatusOK}, nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), outage+2*maxBackoff)
		defer cancel()
		if err := e.Run(ctx); err != nil {
			t.Error(err)
		}
		if requests < 60 || requests > 130 {
			t.Errorf("there were %d requests within an hour, want one or two per minute", requests)
		}
		if got := testutil.ToFloat64(e.metrics.failures); got != float64(requests-1) {
			t.Errorf("%v failures of %d requests count", got, requests)
		}
		if len(queue.records) > 0 || !strings.Contains(log.String(), "Export of logs works again") {
			t.Errorf("after the outage %d records wait, and the log ends with %.300q", len(queue.records), log.String()[max(0, log.Len()-300):])
		}
	})
}

func TestRun_RetryAfter_IsHonoured(t *testing.T) {
	for _, tc := range []struct {
		header      string
		least, most time.Duration
	}{
		{"300", 5 * time.Minute, 5 * time.Minute},
		{"100000", maxRetryAfter, maxRetryAfter},
		{"soon", 0, time.Second},
		{"", 0, time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			e, _ := newExporter(t, otlp.Config{Endpoint: "http://127.0.0.1:1"}, &memoryQueue{records: events("a")})
			var at []time.Time
			ctx, cancel := context.WithCancel(t.Context())
			e.client = answers(func() (*otlp.Answer, error) {
				if at = append(at, time.Now()); len(at) == 2 {
					cancel()
				}
				return &otlp.Answer{Code: http.StatusServiceUnavailable, Header: http.Header{"Retry-After": {tc.header}}}, nil
			})
			if err := e.Run(ctx); err != nil {
				t.Error(err)
			}
			if wait := at[1].Sub(at[0]); wait < tc.least || wait > tc.most {
				t.Errorf("after Retry-After %q the exporter waits %v, want %v to %v", tc.header, wait, tc.least, tc.most)
			}
		})
	}
}

// The queue grows while the backend asks for a pause.
func TestRun_RetryAfter_QueueIsTrimmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := &memoryQueue{records: events("a")}
		e, _ := newExporter(t, otlp.Config{Endpoint: "http://127.0.0.1:1"}, queue)
		e.client = answers(func() (*otlp.Answer, error) {
			return &otlp.Answer{Code: http.StatusServiceUnavailable, Header: http.Header{"Retry-After": {"600"}}}, nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute+time.Millisecond)
		defer cancel()
		if err := e.Run(ctx); err != nil {
			t.Error(err)
		}
		if want := int64(5 * time.Minute / trimInterval); queue.trims != want {
			t.Errorf("the queue was trimmed %d times, want %d", queue.trims, want)
		}
		if got := testutil.ToFloat64(e.metrics.dropped.WithLabelValues("expired")); got != float64(queue.trims) {
			t.Errorf("%v records count as expired, want %d", got, queue.trims)
		}
	})
}

func TestRetryAfter_Date(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"Fri, 01 May 2026 12:02:00 GMT": 2 * time.Minute, "Fri, 01 May 2026 11:00:00 GMT": 0, "-5": 0, "0": 0,
	} {
		if got := retryAfter(header, now); got != want {
			t.Errorf("retryAfter(%q) = %v, want %v", header, got, want)
		}
	}
}

func TestCollectors_Backlog(t *testing.T) {
	e, _ := newExporter(t, otlp.Config{Endpoint: "http://127.0.0.1:1"}, &memoryQueue{records: events("a", "b")})
	want := `# HELP controlplane_otlp_log_records_waiting Log records that wait for export.
# TYPE controlplane_otlp_log_records_waiting gauge
controlplane_otlp_log_records_waiting 2
`
	for _, c := range e.Collectors() {
		if c == e.metrics.backlog {
			if err := testutil.CollectAndCompare(c, strings.NewReader(want), "controlplane_otlp_log_records_waiting"); err != nil {
				t.Error(err)
			}
		}
	}
}
