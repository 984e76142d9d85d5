package threeport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve starts a server and a client of it.
func serve(t *testing.T, handler http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return clientOf(t, server.URL)
}

func clientOf(t *testing.T, url string) *Client {
	t.Helper()
	c := DefaultConfig()
	c.Server, c.AuthEnabled = url, false
	client, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func reply(w http.ResponseWriter, code int, rows, reason string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = fmt.Fprintf(w, `{"Meta":{"Page":1,"Size":50,"TotalCount":1},"Type":"X","Data":%s,"Status":{"code":%d,"message":"","error":%q}}`, rows, code, reason)
}

// bigID cannot be held by a float64.
const bigID int64 = 1234567890123456789

func TestRequests(t *testing.T) {
	when := time.Date(2026, 1, 2, 3, 4, 5, 600_000_000, time.FixedZone("", -3600))
	id := fmt.Sprint(bigID)
	for _, tc := range []struct {
		reason string
		call   func(context.Context, *Client) error
		want   string // METHOD URI BODY
	}{
		{
			"instance status",
			func(ctx context.Context, c *Client) error {
				return c.UpdateWorkloadInstanceStatus(ctx, bigID, "Healthy")
			},
			"PATCH /v0/workload-instances/" + id + ` {"Status":"Healthy"}`,
		},
		{
			"helm instance status, made acceptable",
			func(ctx context.Context, c *Client) error {
				return c.UpdateHelmWorkloadInstanceStatus(ctx, bigID, "Do\x00wn")
			},
			"PATCH /v0/helm-workload-instances/" + id + ` {"Status":"Do` + "\uFFFD" + `wn"}`,
		},
		{
			"resource instance, without the server's fields",
			func(ctx context.Context, c *Client) error {
				return c.UpdateWorkloadResourceInstance(ctx, bigID, WorkloadResourceInstance{
					ID: new(int64(5)), UpdatedAt: &when,
					LastOperation:     new(OperationAdded),
					RuntimeDefinition: json.RawMessage(`{"b":"<\u0000>","a":12345678901234567890}`),
				})
			},
			"PATCH /v0/workload-resource-instances/" + id + ` {"LastOperation":"ADDED","RuntimeDefinition":{"b":"<\ufffd>","a":12345678901234567890}}`,
		},
		{
			"event, required strings present",
			func(ctx context.Context, c *Client) error {
				got, _, err := c.CreateWorkloadEvent(ctx, WorkloadEvent{
					ID: new(int64(5)), RuntimeEventUID: new("uid"), Message: new("a\xffb"), Timestamp: &when,
					WorkloadInstanceID: new(bigID + 2),
				})
				if err == nil && got != bigID {
					return fmt.Errorf("ID %d", got)
				}
				return err
			},
			`POST /v0/workload-events {"RuntimeEventUID":"uid","Type":"","Reason":"","Message":"a` + "\uFFFD" +
				`b","Timestamp":"2026-01-02T04:04:05.6Z","WorkloadInstanceID":1234567890123456791}`,
		},
		{
			"event update, omitted fields left alone",
			func(ctx context.Context, c *Client) error {
				return c.UpdateWorkloadEvent(ctx, bigID, WorkloadEvent{Message: new("")})
			},
			"PATCH /v0/workload-events/" + id + ` {"Message":""}`,
		},
		{
			"event lookup",
			func(ctx context.Context, c *Client) error {
				got, found, err := c.FindWorkloadEvent(ctx, "u&d")
				if err == nil && (!found || got != bigID) {
					return fmt.Errorf("found %v %d", found, got)
				}
				return err
			},
			"GET /v0/workload-events?runtimeeventuid=u%26d ",
		},
		{
			"resource instance read",
			func(ctx context.Context, c *Client) error {
				got, err := c.GetWorkloadResourceInstance(ctx, bigID)
				if err == nil && (*got.WorkloadInstanceID != bigID+1 || string(got.RuntimeDefinition) != `{"n":1}`) {
					return fmt.Errorf("got %+v", got)
				}
				return err
			},
			"GET /v0/workload-resource-instances/" + id + " ",
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			var got string
			client := serve(t, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				got = r.Method + " " + r.RequestURI + " " + strings.TrimSuffix(string(body), "\n")
				if len(body) > 0 && r.Header.Get("Content-Type") != "application/json" {
					got += " as " + r.Header.Get("Content-Type")
				}
				reply(w, http.StatusOK, fmt.Sprintf(`[{"ID":%d,"WorkloadInstanceID":%d,"RuntimeEventUID":"u&d","RuntimeDefinition":{"n":1}}]`, bigID, bigID+1), "")
			})
			if err := tc.call(t.Context(), client); err != nil {
				t.Fatal(err)
			}
			if got != tc.want {
				t.Errorf("sent\n%s, want\n%s", got, tc.want)
			}
		})
	}
}

func TestFailures(t *testing.T) {
	create := func(ctx context.Context, c *Client) error {
		_, _, err := c.CreateWorkloadEvent(ctx, WorkloadEvent{RuntimeEventUID: new("u"), Timestamp: new(time.Unix(1, 0))})
		return err
	}
	update := func(ctx context.Context, c *Client) error { return c.UpdateWorkloadInstanceStatus(ctx, 1, "Down") }
	find := func(ctx context.Context, c *Client) error { _, _, err := c.FindWorkloadEvent(ctx, "u"); return err }
	get := func(ctx context.Context, c *Client) error {
		_, err := c.GetWorkloadResourceInstance(ctx, 1)
		return err
	}
	answer := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code); _, _ = io.WriteString(w, body) }
	}
	envelope := func(code int, reason string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "3")
			reply(w, code, "null", reason)
		}
	}
	cut := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, `{"Meta"`)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	const secret = "hunter2"
	for _, tc := range []struct {
		reason  string
		call    func(context.Context, *Client) error
		handler http.HandlerFunc
		kind    Kind
		text    string
	}{
		{"bad field", create, envelope(400, "Unsupported fields are not allowed : X"), KindPermanent, "create workload event: HTTP 400: Unsupported fields are not allowed : X"},
		{"create, server error", create, envelope(500, "database"), KindRetryable, "HTTP 500: database"},
		{"update, server error", update, envelope(500, "database"), KindRetryable, "update workload instance 1: HTTP 500"},
		{"no row", update, envelope(404, "record not found"), KindNotFound, "record not found"},
		{"no route", update, answer(404, `{"message":"Not Found"}`), KindRetryable, "HTTP 404"},
		{"throttled", create, envelope(429, "slow down"), KindRetryable, "slow down"},
		{"instance of another cluster", update, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set(ProblemHeader, ProblemForbidden)
			envelope(403, "assign it")(w, r)
		}, KindForbidden, "HTTP 403: assign it"},
		{"header of an unknown problem", update, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set(ProblemHeader, "other")
			envelope(403, "no")(w, r)
		}, KindUnauthorized, "HTTP 403: no"},
		{"gateway page", create, answer(502, "<html>"+secret), KindRetryable, "HTTP 502"},
		{"redirect", create, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/login", http.StatusFound) }, KindRetryable, "HTTP 302"},
		{"create, garbled success", create, answer(201, secret), KindRetryable, "not one of the control-plane API"},
		{"create, empty success", create, answer(201, ""), KindRetryable, "not one of the control-plane API"},
		{"create, success without a row", create, func(w http.ResponseWriter, _ *http.Request) { reply(w, 201, "[]", "") }, KindRetryable, "not one of"},
		{"create, success without an ID", create, func(w http.ResponseWriter, _ *http.Request) { reply(w, 201, "[{}]", "") }, KindRetryable, "not one of"},
		{"update, another API's success", update, answer(200, `{"ok":true}`), KindRetryable, "not one of"},
		{"update, another row", update, func(w http.ResponseWriter, _ *http.Request) { reply(w, 200, `[{"ID":2}]`, "") }, KindRetryable, "not one of"},
		{"get, another row", get, func(w http.ResponseWriter, _ *http.Request) { reply(w, 200, `[{"ID":2}]`, "") }, KindRetryable, "not one of"},
		{"create, cut off", create, cut, KindRetryable, "unexpected EOF"},
		{"update, cut off", update, cut, KindRetryable, "unexpected EOF"},
		{"create, no answer", create, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, KindRetryable, "EOF"},
		{"find, filter ignored", find, func(w http.ResponseWriter, _ *http.Request) { reply(w, 200, `[{"ID":1,"RuntimeEventUID":"v"}]`, "") }, KindPermanent, "does not filter"},
		{"answer too large", get, func(w http.ResponseWriter, _ *http.Request) {
			reply(w, 200, `[{"ID":1,"LastOperation":"`+strings.Repeat("x", maxAnswer)+`"}]`, "")
		}, KindRetryable, "too large"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			err := tc.call(t.Context(), serve(t, tc.handler))
			if err == nil {
				t.Fatal("no error")
			}
			if KindOf(err) != tc.kind || !strings.Contains(err.Error(), tc.text) || strings.Contains(err.Error(), secret) {
				t.Errorf("%v: %v; want %v, %q", err, KindOf(err), tc.kind, tc.text)
			}
		})
	}
	if err := create(t.Context(), serve(t, envelope(503, ""))); RetryAfter(err) != 3*time.Second {
		t.Errorf("RetryAfter %v", RetryAfter(err))
	}
}

func TestEventsKeptAfter(t *testing.T) {
	at := time.Date(2026, 5, 1, 12, 0, 0, 123456000, time.UTC)
	for _, tc := range []struct {
		reason, body string
		code         int
		want         time.Time
		kind         Kind
	}{
		{"reported", `{"keptAfter":"2026-05-01T12:00:00.123456Z"}`, 200, at, KindNone},
		{"v0 does not know it", `{"message":"Not Found"}`, 404, time.Time{}, KindNone},
		{"an older server, whose rules grant it to no agent", `{"detail":"this is not for your role"}`, 403, time.Time{}, KindNone},
		{"the database is away", `{"detail":"ask again"}`, 503, time.Time{}, KindRetryable},
		{"a proxy's page", `<html>`, 200, time.Time{}, KindRetryable},
	} {
		client := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method+r.URL.Path != fmt.Sprintf("GET/v0/workloads/HelmWorkloadInstance/%d/event-retention", bigID) {
				t.Errorf("asked was %s %s", r.Method, r.URL)
			}
			w.WriteHeader(tc.code)
			_, _ = io.WriteString(w, tc.body)
		})
		got, err := client.EventsKeptAfter(t.Context(), Instance{TypeHelmWorkloadInstance, ID(bigID)})
		if !got.Equal(tc.want) || KindOf(err) != tc.kind {
			t.Errorf("%s: %v, %v", tc.reason, got, err)
		}
	}
}

func TestClient_Unreachable_IsRetryable(t *testing.T) {
	// No process listens on that port, and the system does not assign it.
	_, _, err := clientOf(t, "http://127.0.0.1:1").CreateWorkloadEvent(t.Context(), WorkloadEvent{Timestamp: new(time.Unix(1, 0))})
	if KindOf(err) != KindRetryable {
		t.Errorf("%v: %v", err, KindOf(err))
	}
}

func TestCancellation(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	client := serve(t, func(http.ResponseWriter, *http.Request) {
		close(arrived)
		<-release
	})
	defer close(release)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-arrived
		cancel()
	}()
	_, _, err := client.CreateWorkloadEvent(ctx, WorkloadEvent{Timestamp: new(time.Unix(1, 0))})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("after it was sent: %v", err)
	}
	_, _, err = client.CreateWorkloadEvent(ctx, WorkloadEvent{Timestamp: new(time.Unix(1, 0))})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("before it was sent: %v", err)
	}
}

func TestTimeout(t *testing.T) {
	arrived, release := make(chan struct{}, 1), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		select {
		case arrived <- struct{}{}:
		default:
		}
		<-release
	}))
	t.Cleanup(server.Close)
	defer close(release)
	// On a busy machine the time may be over before there is a connection.
	for timeout := 20 * time.Millisecond; ; timeout *= 2 {
		client, err := New(Config{Server: server.URL, Timeout: timeout})
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = client.CreateWorkloadEvent(t.Context(), WorkloadEvent{Timestamp: new(time.Unix(1, 0))})
		client.Close()
		if !errors.Is(err, context.DeadlineExceeded) || KindOf(err) != KindRetryable {
			t.Fatalf("%v: %v", err, KindOf(err))
		}
		select {
		case <-arrived:
			return
		default:
		}
	}
}

func TestUnsendable(t *testing.T) {
	var requests atomic.Int32
	client := serve(t, func(http.ResponseWriter, *http.Request) { requests.Add(1) })
	_, _, noTime := client.CreateWorkloadEvent(t.Context(), WorkloadEvent{})
	_, _, noUID := client.FindWorkloadEvent(t.Context(), "")
	for reason, err := range map[string]error{
		"no time":   noTime,
		"no UID":    noUID,
		"zero time": client.UpdateWorkloadEvent(t.Context(), 1, WorkloadEvent{Timestamp: &time.Time{}}),
		"bad JSON": client.UpdateWorkloadResourceInstance(t.Context(), 1, WorkloadResourceInstance{
			RuntimeDefinition: json.RawMessage(`{`),
		}),
	} {
		if KindOf(err) != KindPermanent {
			t.Errorf("%s: %v: %v", reason, err, KindOf(err))
		}
	}
	if requests.Load() != 0 {
		t.Errorf("%d requests were made", requests.Load())
	}
}

func TestFindWorkloadEventOldestWins(t *testing.T) {
	client := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		reply(w, 200, `[{"ID":1,"RuntimeEventUID":"U"},{"ID":9,"RuntimeEventUID":"u"},{"ID":7,"RuntimeEventUID":"u"}]`, "")
	})
	if id, found, err := client.FindWorkloadEvent(t.Context(), "u"); id != 7 || !found || err != nil {
		t.Errorf("got %d, %v, %v", id, found, err)
	}
	none := serve(t, func(w http.ResponseWriter, _ *http.Request) { reply(w, 200, `[]`, "") })
	if _, found, err := none.FindWorkloadEvent(t.Context(), "u"); found || err != nil {
		t.Errorf("got %v, %v", found, err)
	}
}

func TestClient_ReusesConnections(t *testing.T) {
	var connections atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		reply(w, 400, "null", "no")
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	client := clientOf(t, server.URL)
	for range 20 {
		if err := client.UpdateWorkloadInstanceStatus(t.Context(), 1, "Down"); KindOf(err) != KindPermanent {
			t.Fatal(err)
		}
	}
	if n := connections.Load(); n != 1 {
		t.Errorf("%d connections for 20 requests", n)
	}
}

func TestClient_Allowed_IsCheckedBeforeEachRequest(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer server.Close()
	refusal := errors.New("somebody else leads")
	client, err := New(Config{Server: server.URL, Timeout: DefaultTimeout, Allowed: func() error { return refusal }})
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = client.CreateWorkloadEvent(t.Context(), WorkloadEvent{Timestamp: new(time.Now())})
	if !errors.Is(err, refusal) || KindOf(err) != KindRetryable || asked.Load() > 0 {
		t.Errorf("got %v, after %d requests", err, asked.Load())
	}
}
