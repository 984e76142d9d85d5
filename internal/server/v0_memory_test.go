package server

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
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

// v0RequestOf is a request for Events with limits.
func v0RequestOf(req *http.Request, limits *v0Limits) *v0Request {
	return &v0Request{Request: req, w: httptest.NewRecorder(), resource: eventResource(), body: bodyLimit{limits.body, readTimeout}}
}

// eventResource is the resource of Events.
func eventResource() *store.Resource {
	i := slices.IndexFunc(store.Resources, func(r *store.Resource) bool { return r.Object == objectEvent })
	return store.Resources[i]
}

const testBody = 16 << 20

func TestV0Limits_OneSender_LeavesMemoryToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := newV0Limits(testBody)
		acquire := func(address string) (*reservation, error) {
			return v0RequestOf(bodyFrom(t, address, nil), limits).acquire(limits.bodies, largestV0Memory(testBody)/v0Copies)
		}
		var held []*reservation
		take := func(address string) {
			t.Helper()
			r, err := acquire(address)
			if err != nil {
				t.Fatalf("memory for %s: %v", address, err)
			}
			held = append(held, r)
		}
		refused := func(address string) {
			t.Helper()
			begin := time.Now()
			if _, err := acquire(address); !errors.Is(err, errLimitReached) || time.Since(begin) != v0Wait {
				t.Errorf("%s: %v after %v, want %v after %v", address, err, time.Since(begin), errLimitReached, v0Wait)
			}
		}
		take(oneAddress)
		refused(oneAddress)
		take(anotherAddress)
		refused("192.0.2.3:1")
		for _, r := range held {
			r.release()
		}
		expectAllFree(t, "bodies", limits.bodies, largestV0Bodies*largestV0Memory(testBody))
	})
}

// TestV0Request_ReadBody_ReservesWhatArrives compares the reserved memory with the received bytes, at each read.
func TestV0Request_ReadBody_ReservesWhatArrives(t *testing.T) {
	const stored = 1000 // bytes of the row
	for _, size := range []int{0, 1, firstRead - 1, firstRead, firstRead + 1, 10 * firstRead, 1 << 20, testBody} {
		for _, announced := range []bool{true, false} {
			limits := newV0Limits(testBody)
			body := bytes.Repeat([]byte("b"), size)
			req := v0RequestOf(bodyFrom(t, oneAddress, nil), limits)
			if announced {
				req.ContentLength = int64(size)
			}
			held, err := req.acquire(limits.bodies, stored+req.firstBytes())
			if err != nil {
				t.Fatal(err)
			}
			arrived := 0
			req.Body = io.NopCloser(readerFunc(func(p []byte) (int, error) {
				if held.held > v0Copies*(stored+max(firstRead, 2*int64(arrived))) {
					t.Errorf("%d bytes: %d bytes are reserved after %d arrived, want at most %d times twice as many", size, held.held, arrived, v0Copies)
				}
				n, err := bytes.NewReader(body[arrived:]).Read(p)
				arrived += n
				return n, err
			}))
			got, err := req.readBody(held)
			if err != nil || !bytes.Equal(got, body) || held.held < v0Copies*int64(stored+size) {
				t.Errorf("read of %d bytes returned %d, error %v; want the whole body", size, len(got), err)
			}
			held.release()
			expectAllFree(t, "after release", limits.bodies, largestV0Bodies*largestV0Memory(testBody))
		}
	}
}

// An agent needs no body of the size that an administrator may send.
func TestV0Request_BodyLimit_IsSmallerForAgents(t *testing.T) {
	for _, r := range store.Resources {
		want := int64(1 << 20)
		if r.Object == "WorkloadResourceInstance" {
			want += 4 << 20
		}
		for role, want := range map[auth.Role]int64{auth.RoleAgent: want, auth.RoleAdmin: testBody} {
			req := httptest.NewRequestWithContext(auth.WithPrincipal(t.Context(), auth.Principal{Role: role}), http.MethodPost, "/", nil)
			asked := &v0Request{Request: req, resource: r, body: bodyLimit{testBody, readTimeout}}
			if got := asked.bodyLimit().bytes; got != want {
				t.Errorf("%s by %s: the limit is %d, want %d", r.Object, role, got, want)
			}
		}
	}
}

// TestV0_NoMemory_IsAnsweredWith503 stalls the body of a sender when a part has arrived.
func TestV0_NoMemory_IsAnsweredWith503(t *testing.T) {
	s, err := store.Open(t.Context(), store.Config{Address: "sqlite::memory:", StrictV0: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	v := newV0API(s, slog.New(slog.DiscardHandler), testBody)
	const part = 2 << 20
	v.limits.bodies = newLimiter("test", 2*v0Copies*part, v0Copies*part, 50*time.Millisecond)
	handler := newRouter().serve(v.strictRoutes())
	serve := func(req *http.Request) *httptest.ResponseRecorder {
		got := httptest.NewRecorder()
		handler.ServeHTTP(got, req)
		return got
	}
	post := func(address string) *httptest.ResponseRecorder {
		one := event + "}"
		req := bodyFrom(t, address, strings.NewReader(one))
		req.ContentLength = int64(len(one))
		return serve(req)
	}
	body, arriving := io.Pipe()
	ended := make(chan int)
	go func() { ended <- serve(bodyFrom(t, oneAddress, body)).Code }()
	if _, err := io.WriteString(arriving, strings.Repeat(" ", part-1)); err != nil {
		t.Fatal(err)
	}

	got := post(oneAddress)
	want := badEnvelope + `503,"message":"Service Unavailable","error":"too many large requests at once: send it again"}}`
	if got.Code != http.StatusServiceUnavailable || !strings.Contains(got.Body.String(), want) || got.Header().Get("Retry-After") != "1" {
		t.Errorf("the same sender: the answer is %d %v %s, want %d", got.Code, got.Header(), got.Body, http.StatusServiceUnavailable)
	}
	if got := post(anotherAddress); got.Code != http.StatusCreated {
		t.Errorf("another sender: the answer is %d %s, want %d", got.Code, got.Body, http.StatusCreated)
	}
	_ = arriving.Close()
	if code := <-ended; code != http.StatusInternalServerError { // v0's answer to invalid JSON
		t.Errorf("an incomplete body: the answer is %d, want %d", code, http.StatusInternalServerError)
	}
	if got := post(oneAddress); got.Code != http.StatusCreated {
		t.Errorf("after the memory was given back: the answer is %d %s, want %d", got.Code, got.Body, http.StatusCreated)
	}
}

// BenchmarkSmallBody measures what the limit costs a small body.
func BenchmarkSmallBody(b *testing.B) {
	limits := newV0Limits(testBody)
	body := []byte(event + "}")
	req := httptest.NewRequestWithContext(auth.WithPrincipal(b.Context(), auth.Principal{Name: "agent", Credential: auth.CredentialCertificate}), http.MethodPost, "/", nil)
	req.RemoteAddr = oneAddress
	req.ContentLength = int64(len(body))
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			one := *req
			one.Body = io.NopCloser(bytes.NewReader(body))
			asked := v0RequestOf(&one, limits)
			held, err := asked.acquire(limits.bodies, asked.firstBytes())
			if err != nil {
				b.Error(err)
				return
			}
			if _, err := asked.readBody(held); err != nil {
				b.Error(err)
			}
			held.release()
		}
	})
}

// TestV0_Writes_OfOneSender_AreLimited writes while a sender has as many writes as it may.
func TestV0_Writes_OfOneSender_AreLimited(t *testing.T) {
	for _, tc := range []struct {
		name    string
		role    auth.Role
		address string
		err     error
	}{
		{"the same agent", auth.RoleAgent, oneAddress, errWrites},
		{"another agent", auth.RoleAgent, anotherAddress, nil},
		{"an administrator", auth.RoleAdmin, oneAddress, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := &v0API{limits: newV0Limits(testBody)}
				end := make(chan struct{})
				for range writesPerSender {
					go func() { _ = v.write(as(t, tc.role, oneAddress), func() error { <-end; return nil }) }()
				}
				synctest.Wait()
				if err := v.write(as(t, tc.role, tc.address), func() error { return nil }); !errors.Is(err, tc.err) {
					t.Errorf("got %v, want %v", err, tc.err)
				}
				close(end)
				synctest.Wait()
				expectAllFree(t, "writes", v.limits.writes, math.MaxInt64)
			})
		})
	}
}
