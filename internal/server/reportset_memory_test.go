package server

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/threeport/threeport-agent/internal/server/auth"
)

// holders is the number of requests that hold memory or wait for it.
func holders(l *limiter) (requests int) {
	l.senders.mu.Lock()
	defer l.senders.mu.Unlock()
	for _, limit := range l.senders.limits {
		requests += limit.requests
	}
	return requests
}

// Two clusters send from one address. Neither takes more than its limit of the memory, so the other one still gets as much.
func TestReportSetMemory_Cluster_HasNoMoreThanItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := Limits{BodyBytes: minBytes, DecodedBytes: minBytes}
		memory, largest := newReportSetMemory(limits), largestSetMemory(limits)
		senderOfCluster := func(uid, address string) sender {
			return senderOf(requestOf(t, auth.Principal{Role: auth.RoleAgent, ClusterUID: uid, Credential: auth.CredentialToken}, address, nil))
		}
		ours, theirs := senderOfCluster("ours", "192.0.2.1:1"), senderOfCluster("theirs", "192.0.2.1:2")
		for _, tc := range []struct {
			name         string
			limiter      *limiter
			limit, total int64
		}{
			{name: "small", limiter: memory.small, limit: smallBodiesPerSender * smallBody, total: smallBodies * smallBody},
			{name: "received", limiter: memory.received, limit: largestReceivedPerSender * minBytes, total: largestReceived * minBytes},
			{name: "decoded", limiter: memory.decoded, limit: largestDecodedPerSender * largest, total: largestDecoded * largest},
		} {
			held, err := tc.limiter.acquire(t.Context(), ours, firstRead)
			if err != nil {
				t.Fatal(err)
			}
			if err := held.grow(tc.limit); err != nil {
				t.Errorf("%s: grow to the limit of a cluster: %v", tc.name, err)
			}
			if err := held.grow(tc.limit + 1); !errors.Is(err, errLimitReached) {
				t.Errorf("%s: grow beyond the limit of a cluster: got %v, want %v", tc.name, err, errLimitReached)
			}
			if _, err := tc.limiter.acquire(t.Context(), ours, firstRead); !errors.Is(err, errLimitReached) {
				t.Errorf("%s: acquire beyond the limit of a cluster: got %v, want %v", tc.name, err, errLimitReached)
			}
			rest, err := tc.limiter.acquire(t.Context(), theirs, firstRead)
			if err != nil {
				t.Fatalf("%s: acquire for another cluster at the same address: %v", tc.name, err)
			}
			if err := rest.grow(tc.limit); err != nil {
				t.Errorf("%s: grow to the limit of another cluster: %v", tc.name, err)
			}
			held.release()
			rest.release()
			expectAllFree(t, tc.name, tc.limiter, tc.total)
		}
	})
}

// Some clusters send large bodies that never end. Others still get memory for a large body. If more of them take all of it, a
// small body is still received.
func TestReportSetMemory_StalledLargeBodies_LeaveMemoryToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := DefaultLimits()
		memory := newReportSetMemory(limits)
		receive := func(cluster int, size int64) (*bodyMemory, error) {
			from := sender{name: fmt.Sprint("cluster:", cluster)}
			first, err := memory.small.acquire(t.Context(), from, firstRead)
			if err != nil {
				return nil, err
			}
			body := &bodyMemory{reservation: first, from: from, large: memory.received}
			for held := int64(firstRead); held < size && err == nil; {
				held = min(2*held, size)
				err = body.grow(held)
			}
			if err != nil {
				body.release()
			}
			return body, err
		}
		const stalling = 7
		var held []*bodyMemory
		hold := func(cluster int) {
			for range 8 {
				if body, err := receive(cluster, limits.BodyBytes); err == nil {
					held = append(held, body)
				}
			}
		}
		for cluster := range stalling {
			hold(cluster)
		}
		begin := time.Now()
		honest, err := receive(stalling, limits.BodyBytes)
		if err != nil || time.Since(begin) > 0 {
			t.Fatalf("a large body while %d clusters stall: %v after %v, want it at once", stalling, err, time.Since(begin))
		}
		honest.release()
		hold(stalling)
		if _, err := receive(stalling+1, smallBody+1); !errors.Is(err, errLimitReached) {
			t.Errorf("a large body while %d clusters stall: %v, want %v", stalling+1, err, errLimitReached)
		}
		small, err := receive(stalling+1, smallBody)
		if err != nil || time.Since(begin) > 0 {
			t.Fatalf("a small body while %d clusters stall: %v after %v, want it at once", stalling+1, err, time.Since(begin))
		}
		small.release()
		for _, body := range held {
			body.release()
		}
		expectAllFree(t, "received", memory.received, largestReceived*limits.BodyBytes)
		expectAllFree(t, "small", memory.small, smallBodies*smallBody)
	})
}

// TestReportSets_StalledBodies_DelayNobody announces bodies of many times the memory, and sends one byte of each.
func TestReportSets_StalledBodies_DelayNobody(t *testing.T) {
	limits := DefaultLimits()
	memory := newReportSetMemory(limits)
	address := serveReportSets(t, failingStore{}, memory, slog.New(slog.DiscardHandler))
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
	for holders(memory.small) < stalled {
		select {
		case <-time.After(time.Millisecond):
		case <-hangs:
			t.Fatalf("%d of %d requests have begun to send their bodies", holders(memory.small), stalled)
		}
	}
	heartbeat := []byte(`{` + someAgent + `,"reports":[]}`)
	if got := send(t, http.DefaultClient, http.MethodPost, address, asJSON(), heartbeat); got.code != http.StatusOK {
		t.Errorf("heartbeat: the answer is %d %s, want %d", got.code, got.body, http.StatusOK)
	}
	if n := holders(memory.small); n != stalled {
		t.Errorf("%d of %d stalled requests are pending after the heartbeat, want all: the heartbeat must not wait for them", n, stalled)
	}
}

// setOf is a gzipped set with an Event whose message has a number of bytes.
func setOf(t *testing.T, message int) []byte {
	t.Helper()
	return encoded(t, "gzip", reportOf(`,"event":{"uid":"u","involved":{"kind":"Pod","name":"a"},"type":"Normal","reason":"r",`+
		`"time":"2026-01-02T03:04:05Z","message":"`+strings.Repeat("m", message)+`"}`))
}

// TestReportSets_LargeSets_LeaveMemoryToOtherClusters keeps sets of one cluster that are a few kilobytes large as sent, as a
// database that does not answer would.
func TestReportSets_LargeSets_LeaveMemoryToOtherClusters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := Limits{Reports: 1, BodyBytes: minBytes, DecodedBytes: 1 << 20}
		r := newReportSets(nil, limits, nil, nil)
		large, heartbeat := setOf(t, 1<<20-1000), encoded(t, "gzip", `{`+someAgent+`,"reports":[]}`)
		var sets []*decodedSet
		for {
			set, err := r.decode(t.Context(), large, "gzip", sender{name: "one"})
			if err != nil {
				wantProblem(t, err, http.StatusServiceUnavailable, "")
				break
			}
			if sets = append(sets, set); len(sets) > 100 {
				t.Fatal("one cluster got memory for more than 100 sets, want a limit")
			}
		}
		if len(sets) == 0 {
			t.Fatal("the memory is too small for one set")
		}
		begin := time.Now()
		for reason, body := range map[string][]byte{"a heartbeat": heartbeat, "a large set": large} {
			set, err := r.decode(t.Context(), body, "gzip", sender{name: "other"})
			if err != nil || time.Since(begin) > 0 {
				t.Fatalf("%s of another cluster, after %v: %v; want a set at once", reason, time.Since(begin), err)
			}
			sets = append(sets, set)
		}
		for _, set := range sets {
			set.memory.release()
		}
		expectAllFree(t, "decoded", r.memory.decoded, largestDecoded*largestSetMemory(limits))
	})
}

// The size of a compressed set is unknown before it is decompressed.
func TestReportSets_SmallCompressedSets_ReserveLittleMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := DefaultLimits()
		r := newReportSets(nil, limits, nil, nil)
		const free = 3 << 20
		if !r.memory.decoded.total.TryAcquire(largestDecoded*largestSetMemory(limits) - free) {
			t.Fatal("the decoded-set memory is in use before the test")
		}
		for _, coding := range encodings {
			set, err := r.decode(t.Context(), encoded(t, coding, `{`+someAgent+`,"reports":[]}`), coding, sender{name: "one"})
			if err != nil {
				t.Fatalf("%s: %v", coding, err)
			}
			if set.memory.held > 2*firstRead {
				t.Errorf("%s: the set reserves %d bytes, want at most %d", coding, set.memory.held, 2*firstRead)
			}
			set.memory.release()
		}
		if _, err := r.decode(t.Context(), setOf(t, free), "gzip", sender{name: "one"}); err == nil {
			t.Error("a large set was decoded although its memory was not free")
		}
	})
}

// TestReportSets_MoreThanMemory_AllDecode decodes many more sets than fit into memory. A deadlock would make some fail.
func TestReportSets_MoreThanMemory_AllDecode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := Limits{Reports: 1, BodyBytes: minBytes, DecodedBytes: 1 << 18}
		r := newReportSets(nil, limits, nil, nil)
		bodies := [][]byte{setOf(t, 0), setOf(t, 1<<16), setOf(t, 1<<18-1000)}
		var all sync.WaitGroup
		for i := range 60 {
			all.Go(func() {
				set, err := r.decode(t.Context(), bodies[i%len(bodies)], "gzip", sender{name: string(rune('a' + i%4))})
				if err != nil {
					t.Error(err)
					return
				}
				set.memory.release()
			})
		}
		all.Wait()
	})
}
