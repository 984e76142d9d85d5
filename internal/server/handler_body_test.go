package server

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/threeport/threeport-agent/internal/server/auth"
	"github.com/threeport/threeport-agent/internal/server/store"
)

const (
	oneAddress     = "192.0.2.1:1"
	anotherAddress = "192.0.2.2:1"
)

// bodyFrom is a request from an address whose body has no announced length.
func bodyFrom(t *testing.T, address string, body io.Reader) *http.Request {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v0/workload-events", body)
	req.Header.Set("Content-Type", "application/json")
	req.RemoteAddr = address
	req.ContentLength = -1
	return req
}

// fill takes room for a body of n bytes.
func fill(t *testing.T, b *bodies, address string, n int64) (*room, error) {
	t.Helper()
	req := bodyFrom(t, address, nil)
	r, err := b.enter(req)
	if err != nil {
		return nil, err
	}
	if err := r.grow(req.Context(), n); err != nil {
		r.free()
		return nil, err
	}
	return r, nil
}

func TestBodiesOfOneSenderKeepNoOtherOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBodies()
		var held []*room
		take := func(address string, n int64) {
			t.Helper()
			r, err := fill(t, b, address, n)
			if err != nil {
				t.Fatalf("%d bytes of %s: %v", n, address, err)
			}
			held = append(held, r)
		}
		refused := func(address string, n int64) {
			t.Helper()
			begin := time.Now()
			if _, err := fill(t, b, address, n); !errors.Is(err, errBusy) || time.Since(begin) != bodiesWait {
				t.Errorf("%d bytes of %s: %v after %v", n, address, err, time.Since(begin))
			}
		}
		take(oneAddress, maxBody+1)
		refused(oneAddress, ordinaryBody+1) // it has a large one
		take(oneAddress, ordinaryBody)
		refused(oneAddress, 1)
		take(anotherAddress, maxBody+1)
		take(anotherAddress, ordinaryBody)
		refused("192.0.2.3:1", 1)

		got := make(chan error)
		go func() {
			r, err := fill(t, b, "192.0.2.3:1", ordinaryBody+1)
			if err == nil {
				held = append(held, r)
			}
			got <- err
		}()
		time.Sleep(bodiesWait / 2)
		held[0].free()
		if err := <-got; err != nil {
			t.Errorf("what was given back while it waited: %v", err)
		}
		for _, r := range held[1:] {
			r.free()
		}
		if len(b.shares.each) > 0 {
			t.Errorf("%d senders are remembered", len(b.shares.each))
		}
		if !b.bytes.TryAcquire(bodiesBytes) || !b.large.TryAcquire(largeBodies) {
			t.Error("not all was given back")
		}
	})
}

// TestReceiveV0 holds what is taken against what has arrived.
func TestReceiveV0(t *testing.T) {
	for _, size := range []int{0, 1, leastRoom - 1, leastRoom, leastRoom + 1, 10 * leastRoom, ordinaryBody, ordinaryBody + 1, 36 << 20} {
		for _, announced := range []bool{true, false} {
			b := newBodies()
			body := bytes.Repeat([]byte("b"), size)
			req := bodyFrom(t, oneAddress, nil)
			if announced {
				req.ContentLength = int64(size)
			}
			r, err := b.enter(req)
			if err != nil {
				t.Fatal(err)
			}
			arrived := 0
			req.Body = io.NopCloser(readerFunc(func(p []byte) (int, error) {
				if r.bytes.bytes > max(leastRoom, 2*int64(arrived)) {
					t.Errorf("%d bytes: %d are taken for %d", size, r.bytes.bytes, arrived)
				}
				n, err := bytes.NewReader(body[arrived:]).Read(p)
				arrived += n
				return n, err
			}))
			got, err := r.receive(httptest.NewRecorder(), req)
			if err != nil || !bytes.Equal(got, body) || (r.large.bytes > 0) != (size >= ordinaryBody) {
				t.Errorf("%d bytes: got %d, %v", size, len(got), err)
			}
			if r.free(); !b.bytes.TryAcquire(bodiesBytes) {
				t.Errorf("%d bytes: not all was given back", size)
			}
		}
	}
}

// TestV0AnswersWhenThereIsNoRoom has a sender's bodies arrive in part, and no further.
func TestV0AnswersWhenThereIsNoRoom(t *testing.T) {
	s, err := store.Open(t.Context(), store.Config{Address: "sqlite::memory:", StrictV0: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	a := &api{store: s, log: slog.New(slog.DiscardHandler), bodies: newBodies()}
	a.bodies.wait = 50 * time.Millisecond
	handler := a.handler()
	post := func(address string, body io.Reader) *httptest.ResponseRecorder {
		got := httptest.NewRecorder()
		handler.ServeHTTP(got, bodyFrom(t, address, body))
		return got
	}
	half := strings.Repeat(" ", ordinaryBody-1)
	var stalled []*io.PipeWriter
	ended := make(chan int)
	for range bodiesShare / ordinaryBody {
		body, arriving := io.Pipe()
		go func() { ended <- post(oneAddress, body).Code }()
		if _, err := io.WriteString(arriving, half); err != nil {
			t.Fatal(err)
		}
		stalled = append(stalled, arriving)
	}

	one := event + "}"
	got := post(oneAddress, strings.NewReader(one))
	want := badEnvelope + `503,"message":"Service Unavailable","error":"too many bodies at once: send it again"}}`
	if got.Code != http.StatusServiceUnavailable || !strings.Contains(got.Body.String(), want) || got.Header().Get("Retry-After") != "1" {
		t.Errorf("of the same sender: %d %v %s", got.Code, got.Header(), got.Body)
	}
	if got := post(anotherAddress, strings.NewReader(one)); got.Code != http.StatusCreated {
		t.Errorf("of another sender: %d %s", got.Code, got.Body)
	}
	for _, arriving := range stalled {
		_ = arriving.Close()
		if code := <-ended; code != http.StatusInternalServerError { // v0's answer to what is no JSON
			t.Errorf("one that ended: %d", code)
		}
	}
	if got := post(oneAddress, strings.NewReader(one)); got.Code != http.StatusCreated {
		t.Errorf("when there is room again: %d %s", got.Code, got.Body)
	}
}

// BenchmarkSmallBody is what the bound costs a small body.
func BenchmarkSmallBody(b *testing.B) {
	bound := newBodies()
	body := []byte(event + "}")
	req := httptest.NewRequestWithContext(auth.WithPrincipal(b.Context(), auth.Principal{Name: "agent", Credential: auth.CredentialCertificate}), http.MethodPost, "/", nil)
	req.RemoteAddr = oneAddress
	req.ContentLength = int64(len(body))
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			one := *req
			one.Body = io.NopCloser(bytes.NewReader(body))
			r, err := bound.enter(&one)
			if err != nil {
				b.Error(err)
				return
			}
			if _, err := r.receive(nil, &one); err != nil {
				b.Error(err)
			}
			r.free()
		}
	})
}
