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

// bodyFrom is a request from an address, with a body of unknown length.
func bodyFrom(t *testing.T, address string, body io.Reader) *http.Request {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v0/workload-events", body)
	req.Header.Set("Content-Type", "application/json")
	req.RemoteAddr = address
	req.ContentLength = -1
	return req
}

// reserve reserves memory for a body of n bytes.
func reserve(t *testing.T, m *v0Memory, address string, n int64) (*v0Reservation, error) {
	t.Helper()
	r, err := m.acquire(bodyFrom(t, address, nil))
	if err != nil {
		return nil, err
	}
	if err := r.grow(n); err != nil {
		r.release()
		return nil, err
	}
	return r, nil
}

func TestV0Memory_OneSender_LeavesMemoryToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newV0Memory()
		var held []*v0Reservation
		take := func(address string, n int64) {
			t.Helper()
			r, err := reserve(t, m, address, n)
			if err != nil {
				t.Fatalf("reserve %d bytes for %s: %v", n, address, err)
			}
			held = append(held, r)
		}
		refused := func(address string, n int64, after time.Duration) {
			t.Helper()
			begin := time.Now()
			if _, err := reserve(t, m, address, n); !errors.Is(err, errNoMemory) || time.Since(begin) != after {
				t.Errorf("%d bytes of %s: %v after %v, want %v after %v", n, address, err, time.Since(begin), errNoMemory, after)
			}
		}
		take(oneAddress, v0Body.bytes+1)
		refused(oneAddress, v0Ordinary+1, 0) // it has a large body; a body that arrives does not wait
		take(oneAddress, v0Ordinary)
		refused(oneAddress, 1, v0Wait)
		take(anotherAddress, v0Body.bytes+1)
		take(anotherAddress, v0Ordinary)
		refused("192.0.2.3:1", 1, v0Wait)

		got := make(chan error)
		go func() {
			r, err := reserve(t, m, "192.0.2.3:1", v0Ordinary+1)
			if err == nil {
				held = append(held, r)
			}
			got <- err
		}()
		time.Sleep(v0Wait / 2)
		held[0].release()
		if err := <-got; err != nil {
			t.Errorf("a request that waits while memory is released: %v", err)
		}
		for _, r := range held[1:] {
			r.release()
		}
		expectAllFree(t, "bytes", m.bytes, v0MemoryBytes)
		expectAllFree(t, "large bodies", m.large, v0Large)
	})
}

// TestV0Memory_Read_ReservesWhatArrives compares the reserved memory with the received bytes, at each read.
func TestV0Memory_Read_ReservesWhatArrives(t *testing.T) {
	for _, size := range []int{0, 1, firstRead - 1, firstRead, firstRead + 1, 10 * firstRead, v0Ordinary, v0Ordinary + 1, 36 << 20} {
		for _, announced := range []bool{true, false} {
			m := newV0Memory()
			body := bytes.Repeat([]byte("b"), size)
			req := bodyFrom(t, oneAddress, nil)
			if announced {
				req.ContentLength = int64(size)
			}
			r, err := m.acquire(req)
			if err != nil {
				t.Fatal(err)
			}
			arrived := 0
			req.Body = io.NopCloser(readerFunc(func(p []byte) (int, error) {
				if r.bytes.bytes > max(firstRead, 2*int64(arrived)) {
					t.Errorf("%d bytes: %d bytes are reserved after %d arrived, want at most twice as many", size, r.bytes.bytes, arrived)
				}
				n, err := bytes.NewReader(body[arrived:]).Read(p)
				arrived += n
				return n, err
			}))
			got, err := r.read(httptest.NewRecorder(), req, v0Body)
			if err != nil || !bytes.Equal(got, body) || (r.large.bytes > 0) != (size >= v0Ordinary) {
				t.Errorf("read of %d bytes returned %d, error %v; want the whole body", size, len(got), err)
			}
			r.release()
			expectAllFree(t, "after release", m.bytes, v0MemoryBytes)
		}
	}
}

// TestV0_NoMemory_IsAnsweredWith503 stalls the bodies of one sender when a part has arrived.
func TestV0_NoMemory_IsAnsweredWith503(t *testing.T) {
	s, err := store.Open(t.Context(), store.Config{Address: "sqlite::memory:", StrictV0: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	v := newV0API(s, slog.New(slog.DiscardHandler))
	v.memory.bytes.wait = 50 * time.Millisecond
	handler := newRouter().serve(v.strictRoutes())
	post := func(address string, body io.Reader) *httptest.ResponseRecorder {
		got := httptest.NewRecorder()
		handler.ServeHTTP(got, bodyFrom(t, address, body))
		return got
	}
	half := strings.Repeat(" ", v0Ordinary-1)
	var stalled []*io.PipeWriter
	ended := make(chan int)
	for range v0MemoryPerSender / v0Ordinary {
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
		t.Errorf("the same sender: the answer is %d %v %s, want %d", got.Code, got.Header(), got.Body, http.StatusServiceUnavailable)
	}
	if got := post(anotherAddress, strings.NewReader(one)); got.Code != http.StatusCreated {
		t.Errorf("another sender: the answer is %d %s, want %d", got.Code, got.Body, http.StatusCreated)
	}
	for _, arriving := range stalled {
		_ = arriving.Close()
		if code := <-ended; code != http.StatusInternalServerError { // v0's answer to invalid JSON
			t.Errorf("an incomplete body: the answer is %d, want %d", code, http.StatusInternalServerError)
		}
	}
	if got := post(oneAddress, strings.NewReader(one)); got.Code != http.StatusCreated {
		t.Errorf("after the memory was given back: the answer is %d %s, want %d", got.Code, got.Body, http.StatusCreated)
	}
}

// BenchmarkSmallBody measures what the limit costs a small body.
func BenchmarkSmallBody(b *testing.B) {
	memory := newV0Memory()
	body := []byte(event + "}")
	req := httptest.NewRequestWithContext(auth.WithPrincipal(b.Context(), auth.Principal{Name: "agent", Credential: auth.CredentialCertificate}), http.MethodPost, "/", nil)
	req.RemoteAddr = oneAddress
	req.ContentLength = int64(len(body))
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			one := *req
			one.Body = io.NopCloser(bytes.NewReader(body))
			r, err := memory.acquire(&one)
			if err != nil {
				b.Error(err)
				return
			}
			if _, err := r.read(httptest.NewRecorder(), &one, v0Body); err != nil {
				b.Error(err)
			}
			r.release()
		}
	})
}
