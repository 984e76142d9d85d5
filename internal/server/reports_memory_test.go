package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/threeport/threeport-agent/internal/server/auth"
)

func TestMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := Limits{BodyBytes: 10, DecodedBytes: 100}
		m := newMemory(limits)
		all := largestDecoded * largestRoom(limits)
		most, err := m.reserve(t.Context(), all-100, m.decoded)
		if err != nil {
			t.Fatal(err)
		}
		defer most.free()
		last, err := m.reserve(t.Context(), 100, m.decoded)
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		if _, err := m.reserve(t.Context(), 1, m.decoded); !errors.Is(err, errNoMemory) || time.Since(begin) != memoryWait {
			t.Errorf("more than there is: %v after %v", err, time.Since(begin))
		}
		if _, err := m.reserve(t.Context(), 10, m.received); err != nil {
			t.Errorf("of another kind: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := m.reserve(ctx, 1, m.decoded); !errors.Is(err, errNoMemory) {
			t.Errorf("a client that has gone: %v", err)
		}

		got := make(chan error)
		go func() {
			_, err := m.reserve(t.Context(), 90, m.decoded)
			got <- err
		}()
		synctest.Wait()
		last.shrink(20)
		synctest.Wait()
		select {
		case err := <-got:
			t.Errorf("80 bytes were free, and 90 were given: %v", err)
		default:
		}
		last.shrink(10)
		if err := <-got; err != nil {
			t.Error(err)
		}
		last.free()
		last.free()
		if _, err := m.reserve(t.Context(), 10, m.decoded); err != nil {
			t.Errorf("what was given back: %v", err)
		}
	})
}

// sending is how many bodies are on their way.
func sending(m *memory) (bodies int) {
	m.shares.mu.Lock()
	defer m.shares.mu.Unlock()
	for _, one := range m.shares.each {
		bodies += one.requests
	}
	return bodies
}

// TestStalledBodiesKeepNoOneOut has a client announce many times the memory there is, and send a byte of each body.
func TestStalledBodiesKeepNoOneOut(t *testing.T) {
	limits := DefaultLimits()
	memory := newMemory(limits)
	address := reportsAlone(t, failing{}, memory, slog.New(slog.DiscardHandler))
	at, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	const stalled = 8 * largestReceived
	for i := range stalled {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", at.Host)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		length := fmt.Sprintf("Content-Length: %d\r\n\r\n{", limits.BodyBytes)
		if i%2 == 0 {
			length = "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"
		}
		if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n%s", at.Path, at.Host, length); err != nil {
			t.Fatal(err)
		}
	}
	hangs := time.After(2 * time.Minute)
	for sending(memory) < stalled {
		select {
		case <-time.After(time.Millisecond):
		case <-hangs:
			t.Fatalf("%d of %d bodies are on their way", sending(memory), stalled)
		}
	}
	heartbeat := []byte(`{` + someAgent + `,"reports":[]}`)
	if got := send(t, http.DefaultClient, http.MethodPost, address, asJSON(), heartbeat); got.code != http.StatusOK {
		t.Errorf("a heartbeat is answered with %d: %s", got.code, got.body)
	}
	if n := sending(memory); n != stalled {
		t.Errorf("%d of %d bodies are on their way still: the heartbeat had to wait for the others to end", n, stalled)
	}
}

// requestOf is a request of a principal's, or of an address, with a body that says how long it is.
func requestOf(t *testing.T, who auth.Principal, address string, body []byte) *http.Request {
	t.Helper()
	req := httptest.NewRequestWithContext(auth.WithPrincipal(t.Context(), who), http.MethodPost, "/", bytes.NewReader(body))
	req.RemoteAddr = address
	return req
}

func TestASenderHasNoMoreThanItsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := Limits{BodyBytes: leastBytes, DecodedBytes: leastBytes}
		m := newMemory(limits)
		ours := requestOf(t, auth.Principal{Role: auth.RoleAgent, ClusterUID: "ours", Credential: auth.CredentialToken}, "192.0.2.1:1", nil)
		theirs := requestOf(t, auth.Principal{Role: auth.RoleAgent, ClusterUID: "theirs", Credential: auth.CredentialToken}, "192.0.2.1:2", nil)
		one, leave := m.shares.shareOf(senderOf(ours))
		other, leaveToo := m.shares.shareOf(senderOf(theirs))
		for kind, k := range map[string]struct {
			one, other, all *semaphore.Weighted
			share           int64
		}{
			"received": {one.received, other.received, m.received, largestReceivedOfOne * leastBytes},
			"decoded":  {one.decoded, other.decoded, m.decoded, largestDecodedOfOne * largestRoom(limits)},
		} {
			all, err := m.reserve(t.Context(), leastRoom, k.one, k.all)
			if err != nil {
				t.Fatal(err)
			}
			if err := all.grow(k.share); err != nil {
				t.Fatal(err)
			}
			if err := all.grow(k.share + 1); !errors.Is(err, errNoMemory) {
				t.Errorf("%s: grew beyond the share: %v", kind, err)
			}
			if _, err := m.reserve(t.Context(), leastRoom, k.one, k.all); !errors.Is(err, errNoMemory) {
				t.Errorf("%s: began beyond the share: %v", kind, err)
			}
			rest, err := m.reserve(t.Context(), leastRoom, k.other, k.all)
			if err != nil {
				t.Fatalf("%s: of another's share: %v", kind, err)
			}
			if err := rest.grow(k.share); err != nil {
				t.Errorf("%s: what no one has is not given: %v", kind, err)
			}
			all.free()
			rest.free()
			if !k.one.TryAcquire(k.share) || !k.all.TryAcquire(2*k.share) {
				t.Errorf("%s: not all was given back", kind)
			}
		}
		leave()
		leaveToo()
		if len(m.shares.each) != 0 {
			t.Errorf("%d senders are remembered", len(m.shares.each))
		}
	})
}

// setOf is a set with an Event whose message has so many bytes, in gzip.
func setOf(t *testing.T, message int) []byte {
	t.Helper()
	return encoded(t, "gzip", reportOf(`,"event":{"uid":"u","involved":{"kind":"Pod","name":"a"},"type":"Normal","reason":"r",`+
		`"time":"2026-01-02T03:04:05Z","message":"`+strings.Repeat("m", message)+`"}`))
}

// TestLargeSetsKeepNoOneOut has a cluster send sets of a few kilobytes that become large, and the database not take them.
func TestLargeSetsKeepNoOneOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := Limits{Reports: 1, BodyBytes: leastBytes, DecodedBytes: 1 << 20}
		r := &reports{limits: limits, memory: newMemory(limits)}
		large, heartbeat := setOf(t, 1<<20-1000), encoded(t, "gzip", `{`+someAgent+`,"reports":[]}`)
		one, leave := r.memory.shares.shareOf("one")
		var sets []*decodedSet
		for {
			set, err := r.decode(t.Context(), large, "gzip", one)
			if err != nil {
				wantProblem(t, err, http.StatusServiceUnavailable, "")
				break
			}
			if sets = append(sets, set); len(sets) > 100 {
				t.Fatal("a cluster has as much memory as it likes")
			}
		}
		if len(sets) == 0 {
			t.Fatal("no set fits")
		}
		begin := time.Now()
		other, leaveToo := r.memory.shares.shareOf("other")
		for reason, body := range map[string][]byte{"a heartbeat": heartbeat, "a large set": large} {
			set, err := r.decode(t.Context(), body, "gzip", other)
			if err != nil || time.Since(begin) > 0 {
				t.Fatalf("%s of another cluster, after %v: %v", reason, time.Since(begin), err)
			}
			sets = append(sets, set)
		}
		for _, set := range sets {
			set.room.free()
		}
		leave()
		leaveToo()
		if !one.decoded.TryAcquire(largestRoom(limits)) || !r.memory.decoded.TryAcquire(largestDecoded*largestRoom(limits)) {
			t.Error("not all was given back")
		}
	})
}

// A small set that is compressed needs little room, though nobody can see how small it is.
func TestSmallSetsNeedLittleRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := DefaultLimits()
		r := &reports{limits: limits, memory: newMemory(limits)}
		const free = 3 << 20
		if !r.memory.decoded.TryAcquire(largestDecoded*largestRoom(limits) - free) {
			t.Fatal("not free")
		}
		one, leave := r.memory.shares.shareOf("one")
		defer leave()
		for _, coding := range encodings {
			set, err := r.decode(t.Context(), encoded(t, coding, `{`+someAgent+`,"reports":[]}`), coding, one)
			if err != nil {
				t.Fatalf("%s: %v", coding, err)
			}
			if set.room.bytes > 2*leastRoom {
				t.Errorf("%s: %d bytes are kept", coding, set.room.bytes)
			}
			set.room.free()
		}
		if _, err := r.decode(t.Context(), setOf(t, free), "gzip", one); err == nil {
			t.Error("there was room for a large set")
		}
	})
}

// TestNoTwoSetsWaitForEachOther has many more sets than there is room for: each has to get it in the end.
func TestNoTwoSetsWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := Limits{Reports: 1, BodyBytes: leastBytes, DecodedBytes: 1 << 18}
		r := &reports{limits: limits, memory: newMemory(limits)}
		bodies := [][]byte{setOf(t, 0), setOf(t, 1<<16), setOf(t, 1<<18-1000)}
		var all sync.WaitGroup
		for i := range 60 {
			all.Go(func() {
				one, leave := r.memory.shares.shareOf(string(rune('a' + i%4)))
				defer leave()
				set, err := r.decode(t.Context(), bodies[i%len(bodies)], "gzip", one)
				if err != nil {
					t.Error(err)
					return
				}
				set.room.free()
			})
		}
		all.Wait()
	})
}

func TestSenderOf(t *testing.T) {
	everyone := auth.Principal{Name: "everyone", Role: auth.RoleAdmin, Credential: auth.CredentialNone}
	agent := auth.Principal{Name: "a", Role: auth.RoleAgent, ClusterUID: "c", Credential: auth.CredentialToken}
	for _, tc := range []struct {
		reason    string
		who       auth.Principal
		one, two  string
		different bool
	}{
		{"a cluster at two addresses", agent, "192.0.2.1:1", "192.0.2.2:1", false},
		{"two connections", everyone, "192.0.2.1:1", "192.0.2.1:2", false},
		{"two addresses", everyone, "192.0.2.1:1", "192.0.2.2:1", true},
		{"one address in two notations", everyone, "192.0.2.1:1", "[::ffff:192.0.2.1]:1", false},
		{"one network", everyone, "[2001:db8::1]:1", "[2001:db8::2]:1", false},
		{"two networks", everyone, "[2001:db8::1]:1", "[2001:db8:0:1::1]:1", true},
	} {
		one, two := senderOf(requestOf(t, tc.who, tc.one, nil)), senderOf(requestOf(t, tc.who, tc.two, nil))
		if (one != two) != tc.different {
			t.Errorf("%s: %q and %q", tc.reason, one, two)
		}
	}
}

// TestReceive holds what is reserved against what has arrived.
func TestReceive(t *testing.T) {
	const limit = 10 * leastRoom
	for _, size := range []int{0, 1, leastRoom - 1, leastRoom, leastRoom + 1, 3 * leastRoom, limit - 1, limit, limit + 1} {
		for _, announced := range []bool{true, false} {
			m := newMemory(Limits{BodyBytes: limit, DecodedBytes: limit})
			room, err := m.reserve(t.Context(), leastRoom, m.received)
			if err != nil {
				t.Fatal(err)
			}
			body := bytes.Repeat([]byte("b"), size)
			req := requestOf(t, auth.Principal{}, "192.0.2.1:1", body)
			arrived := 0
			req.Body = io.NopCloser(readerFunc(func(p []byte) (int, error) {
				if room.bytes > max(leastRoom, 2*int64(arrived)) {
					t.Errorf("%d bytes: %d are reserved for %d", size, room.bytes, arrived)
				}
				n, err := iotest.DataErrReader(bytes.NewReader(body[arrived:])).Read(p[:min(len(p), 1000)])
				arrived += n
				return n, err
			}))
			if !announced {
				req.ContentLength = -1
			}
			got, err := receive(t.Context(), httptest.NewRecorder(), req, limit, room)
			if size > limit {
				wantProblem(t, err, http.StatusRequestEntityTooLarge, "")
			} else if err != nil || !bytes.Equal(got, body) {
				t.Errorf("%d bytes: got %d, %v", size, len(got), err)
			}
			room.free()
			if !m.received.TryAcquire(largestReceived * limit) {
				t.Errorf("%d bytes: not all was given back", size)
			}
		}
	}
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
