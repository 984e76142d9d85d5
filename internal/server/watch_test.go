package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/threeport/threeport-agent/internal/server/auth"
	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// fakeSubscription is a subscription with results from a test.
type fakeSubscription struct {
	query  store.WatchQuery
	rows   chan []*store.Change
	errs   chan error
	closed chan struct{}
}

func (s *fakeSubscription) Next(ctx context.Context) ([]*store.Change, error) {
	select {
	case rows := <-s.rows:
		return rows, nil
	case err := <-s.errs:
		return nil, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *fakeSubscription) Position() threeport.ID { return 1 << 61 }

func (s *fakeSubscription) Close() { close(s.closed) }

// changesOf returns versions of rows.
func changesOf(rows ...threeport.Workload) []*store.Change {
	changes := make([]*store.Change, len(rows))
	for i, row := range rows {
		changes[i] = store.NewChange(row)
	}
	return changes
}

// newWatchServer serves watches of fake subscriptions, and passes each to the test.
func newWatchServer(t *testing.T, ping time.Duration) (url string, subscribed <-chan *fakeSubscription, stop context.CancelFunc) {
	t.Helper()
	scripts := make(chan *fakeSubscription, 10)
	ctx, stop := context.WithCancel(t.Context())
	ws := &watches{
		subscribe: func(_ context.Context, q store.WatchQuery) (subscription, error) {
			if q.Filter.Text == "broken" {
				return nil, errors.New("hunter2")
			}
			s := &fakeSubscription{q, make(chan []*store.Change), make(chan error), make(chan struct{})}
			scripts <- s
			return s, nil
		},
		pingInterval: ping, metrics: newMetrics(), slots: newWatchSlots(DefaultLimits().Watches),
		onStop: func(end func()) func() bool { return context.AfterFunc(ctx, end) },
	}
	router := newRouter()
	router.api = newAPI(router, "test", false)
	served := recordRoute(router.serve([]route{{"GET", "/v0/workloads/watch", anyone, noBody, operation(watchWorkloadsOperation, ws.watch)}}))
	server := httptest.NewUnstartedServer(instrument(served, ws.metrics, slog.New(slog.DiscardHandler)))
	server.EnableHTTP2 = true
	server.Start()
	t.Cleanup(func() {
		stop()
		server.Close()
		if open := ws.slots.count(); open != 0 {
			t.Errorf("%d watches are open, want 0", open)
		}
	})
	return server.URL, scripts, stop
}

// events is the client of a stream.
type events struct {
	*bufio.Scanner
	response *http.Response
	close    context.CancelFunc
}

// open opens a stream until the end of the test.
func open(t *testing.T, url string, header http.Header) *events {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for name := range header {
		req.Header.Set(name, header.Get(name))
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = resp.Body.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return &events{bufio.NewScanner(resp.Body), resp, cancel}
}

// next returns the lines of the next event.
func (e *events) next(t *testing.T) string {
	t.Helper()
	var lines []string
	for e.Scan() {
		if e.Text() == "" {
			return strings.Join(lines, "\n")
		}
		lines = append(lines, e.Text())
	}
	t.Fatalf("the stream ended after %q: %v", lines, e.Err())
	return ""
}

// until returns the next event with a text. It fails after the pings of two minutes.
func (e *events) until(t *testing.T, text string) string {
	t.Helper()
	for pings := 0; pings < int(2*time.Minute/pingInterval); {
		event := e.next(t)
		if strings.Contains(event, text) {
			return event
		}
		if strings.Contains(event, "event: ping") {
			pings++
		}
	}
	t.Fatalf("the watch sent no event with %s", text)
	return ""
}

func TestWatch_Events(t *testing.T) {
	url, subscribed, _ := newWatchServer(t, time.Minute)
	stream := open(t, url+"/v0/workloads/watch?status=Down,Error&type=WorkloadInstance&cluster=c&text=x&lastEventID=5", http.Header{})
	script := <-subscribed
	if q := script.query; *q.After != 5 || len(q.Filter.Statuses) != 2 || q.Filter.Types[0] != "WorkloadInstance" ||
		q.Filter.Cluster != "c" || q.Filter.Text != "x" || q.Instance != nil {
		t.Errorf("the store received the query %+v", q)
	}
	for name, want := range map[string]string{"Content-Type": "text/event-stream", "Cache-Control": "no-store"} {
		if got := stream.response.Header.Get(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if got := stream.next(t); got != "retry: 2000" {
		t.Errorf("got %s, want \"retry: 2000\"", got)
	}
	row := threeport.Workload{
		Instance: threeport.Instance{Type: threeport.TypeWorkloadInstance, ID: 1<<62 + 1},
		Name:     "a\nb\r\u2028<&", Status: "Down", Changed: 1<<60 + 1,
	}
	script.rows <- changesOf(row, threeport.Workload{Changed: 7, Gone: true})
	want := "id: 1152921504606846977\nevent: workload\n" +
		`data: {"type":"WorkloadInstance","id":"4611686018427387905","name":"a\nb\r\u2028<&","status":"Down","delaySeconds":0,"changed":"1152921504606846977"}`
	if got := stream.next(t); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
	if got := stream.next(t); !strings.HasPrefix(got, "id: 7\nevent: workload\n") || !strings.Contains(got, `"gone":true`) {
		t.Errorf("the watch sent %s, want the removal of version 7", got)
	}
	script.errs <- store.ErrReset
	if got := stream.next(t); got != "id: 2305843009213693952\nevent: reset\ndata: {}" {
		t.Errorf("got %s, want %s", got, "id: 2305843009213693952\nevent: reset\ndata: {}")
	}
	script.rows <- changesOf(threeport.Workload{Changed: 8})
	if got := stream.next(t); !strings.HasPrefix(got, "id: 8\n") {
		t.Errorf("after a reset the watch sent %s, want version 8", got)
	}
	stream.close()
	<-script.closed
}

func TestWatch_Silence_SendsPings(t *testing.T) {
	url, subscribed, _ := newWatchServer(t, time.Millisecond)
	stream := open(t, url+"/v0/workloads/watch", http.Header{})
	script := <-subscribed
	if got := stream.next(t); got != "retry: 2000\nid: 2305843009213693952" {
		t.Errorf("got %s, want %s", got, "retry: 2000\nid: 2305843009213693952")
	}
	for range 3 {
		if got := stream.next(t); got != "id: 2305843009213693952\nevent: ping\ndata: {}" {
			t.Errorf("got %s, want %s", got, "id: 2305843009213693952\nevent: ping\ndata: {}")
		}
	}
	script.errs <- store.ErrEnded
	if rest, err := io.ReadAll(stream.response.Body); err != nil {
		t.Errorf("at the end the stream has %s, error %v; want no error", rest, err)
	}
}

// endedSubscription ends when the wait of Next does.
type endedSubscription struct{ *fakeSubscription }

func (*endedSubscription) Next(ctx context.Context) ([]*store.Change, error) {
	<-ctx.Done()
	return nil, store.ErrEnded
}

// A ping instead of the end would keep the stream open.
func TestWatch_EndDuringSilence_EndsStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ws := &watches{pingInterval: pingInterval}
		written := &writesRecorder{}
		stream := newEventStream(written, newWatchBudget(auth.Principal{}))
		if err := ws.step(t.Context(), stream, &endedSubscription{&fakeSubscription{}}); !errors.Is(err, store.ErrEnded) {
			t.Errorf("the stream continues with %q, error %v; want error %v", written.text.String(), err, store.ErrEnded)
		}
	})
}

func TestWatch_Parameters(t *testing.T) {
	url, subscribed, _ := newWatchServer(t, time.Minute)
	open(t, url+"/v0/workloads/watch?lastEventID=5&type=HelmWorkloadInstance&id=9", http.Header{"Last-Event-Id": {"6"}})
	script := <-subscribed
	if want := (threeport.Instance{Type: "HelmWorkloadInstance", ID: 9}); *script.query.After != 6 || *script.query.Instance != want {
		t.Errorf("the store received the query %+v, want version 6 of %v", script.query, want)
	}
	for _, tc := range []struct {
		query string
		code  int
	}{
		{"status=down", 422},
		{"status=Down&status=Down", 422},
		{"type=Pod", 422},
		{"sort=name", 422},
		{"x=1", 422},
		{"id=9", 422},
		{"id=9&type=WorkloadInstance,HelmWorkloadInstance", 422},
		{"id=x&type=WorkloadInstance", 422},
		{"id=9&type=WorkloadInstance&text=a", 422},
		{"id=9223372036854775808&type=WorkloadInstance", 422},
		{"lastEventID=x", 422},
		{"lastEventID=-1", 422},
		{"lastEventID=9999999999999999999", 422},
		{"text=%zz", 400},
		{"text=a;b", 400},
		{"text=broken", 503},
	} {
		code, answer := call(t, exchange{method: http.MethodGet, path: url + "/v0/workloads/watch?" + tc.query})
		if code != tc.code || !strings.Contains(answer, `"status":`) || strings.Contains(answer, "hunter2") {
			t.Errorf("%s: the answer is %d %s, want %d", tc.query, code, answer, tc.code)
		}
	}
}

func TestWatch_ServerStop_EndsStreams(t *testing.T) {
	url, subscribed, stop := newWatchServer(t, time.Minute)
	streams := make([]*events, 5)
	for i := range streams {
		streams[i] = open(t, url+"/v0/workloads/watch", http.Header{})
		<-subscribed
	}
	stop()
	for _, stream := range streams {
		if _, err := io.ReadAll(stream.response.Body); err != nil {
			t.Error(err)
		}
	}
}

// blockedWriter is a writer whose client reads nothing.
type blockedWriter struct {
	*httptest.ResponseRecorder
	conn net.Conn
}

func (s *blockedWriter) Write(text []byte) (int, error)      { return s.conn.Write(text) }
func (s *blockedWriter) SetWriteDeadline(at time.Time) error { return s.conn.SetWriteDeadline(at) }
func (s *blockedWriter) SetReadDeadline(at time.Time) error  { return s.conn.SetReadDeadline(at) }
func (s *blockedWriter) FlushError() error                   { return nil }

func TestEventStream_SlowClient_IsCutOff(t *testing.T) {
	near, far := net.Pipe() // without a buffer
	defer func() { _ = near.Close(); _ = far.Close() }()
	stream := newEventStream(&blockedWriter{httptest.NewRecorder(), near}, newWatchBudget(auth.Principal{}))
	stream.timeout = time.Millisecond
	err := stream.workloads(changesOf(make([]threeport.Workload, flushBytes/64)...))
	gone, ok := errors.AsType[*streamError](err)
	if !ok {
		t.Fatalf("the stream ended with %v, want a stream error", err)
	}
	if timeout, ok := errors.AsType[net.Error](gone); !ok || !timeout.Timeout() {
		t.Errorf("writing to the slow client ended with %v, want a timeout", err)
	}
}

// writesRecorder records the size of each write.
type writesRecorder struct {
	blockedWriter
	sizes []int
	text  strings.Builder
}

func (r *writesRecorder) Write(text []byte) (int, error) {
	r.sizes = append(r.sizes, len(text))
	return r.text.Write(text)
}

func (*writesRecorder) SetWriteDeadline(time.Time) error { return nil }

func TestEventStream_LongRows_AreFlushedByBytes(t *testing.T) {
	const length = 4096
	rows := make([]threeport.Workload, 100)
	for i := range rows {
		rows[i].Cause = strings.Repeat("<", length)
	}
	var written writesRecorder
	if err := newEventStream(&written, newWatchBudget(auth.Principal{})).workloads(changesOf(rows...)); err != nil {
		t.Fatal(err)
	}
	for _, size := range written.sizes {
		if size > flushBytes+length+512 {
			t.Errorf("a write has %d bytes, want at most %d and an event", size, flushBytes)
		}
	}
	if n := strings.Count(written.text.String(), "<"); n != len(rows)*length {
		t.Errorf("the events have %d unescaped characters, want %d", n, len(rows)*length)
	}
}

// Two streams of a principal send as much as the budget has at once, and then wait for each other's bytes.
func TestEventStream_Budget_IsOfPrincipal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := newWatchSlots(2)
		open := func(name string) *eventStream {
			slot, err := slots.acquire(auth.Principal{Name: name, Role: auth.RoleViewer, Credential: auth.CredentialToken})
			if err != nil {
				t.Fatal(err)
			}
			return newEventStream(&writesRecorder{}, slot.budget)
		}
		first, second, other := open("one"), open("one"), open("other")
		begin := time.Now()
		send := func(stream *eventStream, bytes int, want time.Duration) {
			t.Helper()
			if err := stream.send(make([]byte, bytes)); err != nil {
				t.Fatal(err)
			}
			if err := stream.wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			if waited := time.Since(begin).Round(time.Millisecond); waited != want {
				t.Errorf("the stream continues after %v, want %v", waited, want)
			}
		}
		send(first, watchBurst-writeCost, 0)
		send(second, watchRate-writeCost, time.Second)
		send(first, watchRate/2-writeCost, 3*time.Second/2)
		send(other, watchBurst-writeCost, 3*time.Second/2)
		if err := first.send(make([]byte, watchBurst)); err != nil {
			t.Fatal(err)
		}
		ended, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := first.wait(ended); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a stream that waits when its client leaves: %v, want %v", err, context.DeadlineExceeded)
		}
	})
}

// A client that is cut off before the first event resumes from the ID in the opening. The other client keeps the feed running,
// which looks back ten seconds for its first subscriber.
func TestWatch_ResumesWithoutEvents(t *testing.T) {
	url := run(t, onFile(t))
	steady := open(t, url+"/v0/workloads/watch", http.Header{})
	steady.next(t)
	cut := open(t, url+"/v0/workloads/watch", http.Header{})
	_, last, ok := strings.Cut(cut.next(t), "\nid: ")
	if !ok {
		t.Fatal("the first event has no ID")
	}
	cut.close()
	create(t, url+"/v0/workload-instances", `{"Name":"meanwhile"}`)
	if event := steady.next(t); !strings.Contains(event, `"name":"meanwhile"`) {
		t.Fatalf("the watch sent %s, want workload meanwhile", event)
	}
	again := open(t, url+"/v0/workloads/watch", http.Header{"Last-Event-Id": {last}})
	again.next(t)
	if event := again.next(t); !strings.Contains(event, `"name":"meanwhile"`) {
		t.Errorf("the resumed watch sent %s, want workload meanwhile", event)
	}
}

// A client receives a change, another receives it after it reconnects, and streams do not delay the stop of the server.
func TestWatch_Resumes(t *testing.T) {
	s, err := New(t.Context(), onFile(t), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	url := s.URL()
	stream := open(t, url+"/v0/workloads/watch", http.Header{})
	stream.next(t)
	first := create(t, url+"/v0/workload-instances", `{"Name":"first"}`)
	event := stream.next(t)
	if !strings.Contains(event, `"name":"first"`) {
		t.Errorf("the watch sent %s, want workload first", event)
	}
	stream.close()
	second := create(t, url+"/v0/workload-instances", `{"Name":"second"}`)

	last, _, _ := strings.Cut(strings.TrimPrefix(event, "id: "), "\n")
	again := open(t, url+"/v0/workloads/watch", http.Header{"Last-Event-Id": {last}})
	again.next(t)
	again.until(t, fmt.Sprintf(`"id":"%d"`, second))
	only := open(t, fmt.Sprintf("%s/v0/workloads/watch?type=WorkloadInstance&id=%d", url, first), http.Header{})
	only.next(t)
	for _, x := range []exchange{
		{method: http.MethodPatch, path: fmt.Sprintf("%s/v0/workload-instances/%d", url, second), body: `{"Status":"Down"}`},
		{method: http.MethodDelete, path: fmt.Sprintf("%s/v0/workload-instances/%d", url, first)},
	} {
		if code, answer := call(t, x); code != http.StatusOK {
			t.Fatalf("%s: the answer is %d %s, want %d", x.method, code, answer, http.StatusOK)
		}
	}
	if event := only.until(t, "event: workload"); !strings.Contains(event, `"name":"first"`) || !strings.Contains(event, `"gone":true`) {
		t.Errorf("the watch of one workload sent %s, want the removal of workload first", event)
	}
	for _, id := range []string{"0", "1"} {
		forgotten := open(t, url+"/v0/workloads/watch?lastEventID="+id, http.Header{})
		forgotten.next(t)
		if event := forgotten.next(t); !strings.Contains(event, "event: reset") {
			t.Errorf("after ID %s the watch sent %s, want a reset", id, event)
		}
	}

	begin := time.Now()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if took := time.Since(begin); took > drainTimeout/2 {
		t.Errorf("the server took %v to stop, want at most %v", took, drainTimeout/2)
	}
}

// count is the number of open streams.
func (s *watchSlots) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}
