package server

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/threeport/threeport-agent/internal/server/auth"
)

// A client without a credential repeats frames of HTTP/2 that are no requests. The server reads them at the permitted rate.
func TestServer_FramesThatAreNoRequests_PauseTheirConnection(t *testing.T) {
	const duration = 3 * time.Second
	s := startTLS(t, "sqlite:"+filepath.Join(t.TempDir(), "rows.db"), nil)
	dialer := &tls.Dialer{Config: trust(s.authority.PEM())}
	dialer.Config.NextProtos = []string{"h2"}
	connection, err := dialer.DialContext(t.Context(), "tcp", strings.TrimPrefix(s.url, "https://"))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close() //nolint:errcheck // the server may have closed it
	if err := connection.SetDeadline(time.Now().Add(duration)); err != nil {
		t.Fatal(err)
	}
	var answered atomic.Int64
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		n, _ := io.Copy(io.Discard, connection) // until the deadline
		answered.Store(n)
	}()
	const ping = "\x00\x00\x08\x06\x00\x00\x00\x00\x00" + "repeated" // RFC 9113, section 6.7
	_, err = io.WriteString(connection, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"+"\x00\x00\x00\x04\x00\x00\x00\x00\x00")
	for pings := strings.Repeat(ping, 100); err == nil; {
		_, err = io.WriteString(connection, pings)
	}
	<-ended
	const most = 2 * (anonymousBytesBurst + anonymousBytesPerSecond*int64(duration/time.Second)) // one read may exceed the burst
	if got := answered.Load(); got > most || got < anonymousBytesBurst/2 {
		t.Errorf("the server answered %d bytes of PING within %s, want %d to %d", got, duration, anonymousBytesBurst/2, most)
	}
	if answer := s.send(t, "", http.MethodGet, "/healthz", ""); answer.code != http.StatusOK {
		t.Errorf("/healthz: %d", answer.code)
	}
}

// A connection pauses in a debt, which bodies that are read do not make.
func TestOverhead_Wait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOverhead(time.Now())
		expect := func(want time.Duration) {
			t.Helper()
			if got := o.wait(o.place(), time.Now(), 1).Round(time.Millisecond); got != want {
				t.Errorf("the pause is %s, want %s", got, want)
			}
		}
		o.spend(anonymousBytesBurst)
		expect(0)
		o.spend(2 * anonymousBytesPerSecond)
		expect(2 * time.Second)
		o.giveBack(anonymousBytesPerSecond)
		expect(time.Second)
		if got := o.wait(o.place(), time.Now(), 3).Round(time.Millisecond); got != 3*time.Second {
			t.Errorf("in a crowd, the pause is %s", got)
		}
		time.Sleep(time.Second)
		expect(0)

		o = newSharedOverhead(time.Now())
		o.giveBack(10 * overheadBurst) // at most a full bucket
		first, second := o.spend(overheadBurst+overheadPerSecond), o.spend(overheadPerSecond)
		expect(2 * time.Second)
		if got := o.wait(first, time.Now(), 1).Round(time.Millisecond); got != time.Second {
			t.Errorf("the connection that sent first pauses for %s, want half of the last one's pause", got)
		}
		time.Sleep(time.Second)
		if o.wait(first, time.Now(), 1) > 0 || o.wait(second, time.Now(), 1) == 0 {
			t.Error("the connections do not go on one after the other")
		}
	})
}

// openPipes returns a function that opens a connection which is in no handshake.
func openPipes(t *testing.T, all *connections) func() *connection {
	t.Helper()
	return func() *connection {
		t.Helper()
		ours, theirs := net.Pipe()
		t.Cleanup(func() { _ = theirs.Close() })
		added := all.add(ours)
		added.handshake.Store(0)
		t.Cleanup(func() { _ = added.Close() })
		return added
	}
}

// Neither a TLS handshake nor a trusted proxy has the limit.
func TestConnection_Received_CountsAfterTheHandshake(t *testing.T) {
	all := newConnections(1, nil)
	opened := openPipes(t, all)()
	pauses := func() bool {
		o := opened.overhead.Load()
		return o.wait(o.place(), time.Now(), 1) > 0
	}
	opened.handshake.Store(1)
	if opened.received(make([]byte, 1<<20)); pauses() {
		t.Error("the bytes of a handshake count")
	}
	opened.handshake.Store(0)
	refused := opened.refused
	opened.refused = nil // as that of a trusted proxy
	if opened.received(make([]byte, 1<<20)); pauses() {
		t.Error("the bytes of a trusted proxy count")
	}
	opened.refused = refused
	if opened.received(make([]byte, 1<<20)); !pauses() {
		t.Error("after the handshake, there is no pause")
	}
}

func TestTLSRecords_AreCountedAcrossReads(t *testing.T) {
	records := []byte{22, 3, 1, 0, 2, 'a', 'b', 23, 3, 3, 0, 0, 23, 3, 3, 1, 0}
	records = append(records, make([]byte, 256)...)
	records = append(records, 23, 3, 3, 0, 1, 'c')
	for size := 1; size <= len(records); size++ {
		var r tlsRecords
		n := 0
		for piece := range slices.Chunk(records, size) {
			n += r.next(piece)
		}
		if n != 4 || r.rest != 0 || len(r.header) != 0 {
			t.Errorf("pieces of %d bytes have %d records and leave %+v, want 4 and nothing", size, n, r)
		}
	}
}

// All connections of a sender share one overhead, also those beyond its bounds and later ones.
func TestConnections_Overhead_IsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newConnections(1, nil)
		open := openPipes(t, all)
		viewer := sender{"viewer", auth.RoleViewer}
		authenticated := func(by sender) *connection {
			t.Helper()
			opened := open()
			all.authenticate(opened, by)
			return opened
		}
		first, beyond, other := authenticated(viewer), authenticated(viewer), authenticated(sender{"other", auth.RoleViewer})
		if !first.isAuthenticated.Load() || beyond.isAuthenticated.Load() {
			t.Fatal("a person has one authenticated connection in this test")
		}
		if first.overhead.Load() != beyond.overhead.Load() || first.overhead.Load() == other.overhead.Load() {
			t.Error("the connections of a sender do not share an overhead, or two senders do")
		}
		debt := first.overhead.Load().spend(overheadBurst + overheadPerSecond)
		_, _ = first.Close(), first.Close()
		_ = beyond.Close()
		again := authenticated(viewer)
		if rest := again.overhead.Load().wait(debt, time.Now(), 1).Round(time.Millisecond); rest != time.Second {
			t.Errorf("after the sender has connected again, it pauses for %s, want 1s", rest)
		}
		_ = again.Close()
		time.Sleep(time.Hour)
		authenticated(sender{"third", auth.RoleViewer})
		if n := len(all.overheads); n != 2 {
			t.Errorf("%d overheads are kept, want those of the two senders with connections", n)
		}
		for range 64 {
			open()
		}
		for few, want := range map[int]int{anonymousCrowd: 4, refusedCrowd: 2} {
			if crowd := all.crowd(few); crowd != want {
				t.Errorf("64 connections without an authenticated request are a crowd of %d where %d are few, want %d", crowd, few, want)
			}
		}
	})
}

// The bytes of a body do not count, also not those of chunks of HTTP/1.1.
func TestServer_LongBody_IsReadAtOnce(t *testing.T) {
	const size = 8 << 20 // 30 s at the rate of a sender
	s := startTLS(t, "sqlite:"+filepath.Join(t.TempDir(), "rows.db"), nil)
	header := asJSON()
	header.Set("Authorization", "Bearer "+s.token(t, "--role=admin", "--name=jane"))
	for _, isHTTP2 := range []bool{false, true} {
		transport := &http.Transport{TLSClientConfig: trust(s.authority.PEM()), ForceAttemptHTTP2: isHTTP2}
		body := io.MultiReader(strings.NewReader(`{"Name":"`), io.LimitReader(endless{}, size), strings.NewReader(`"}`)) // of unknown length
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/v0/workload-instances", body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header = header
		begun := time.Now()
		resp, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		transport.CloseIdleConnections()
		if took := time.Since(begun); resp.StatusCode != http.StatusBadRequest || took > 15*time.Second {
			t.Errorf("HTTP/2 %t: %d after %s, want the refusal of a long name at once", isHTTP2, resp.StatusCode, took)
		}
	}
}

// endless is a text without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// A refusal does not wait for the rest of a body, whatever the reason. Later requests of a sender keep their connection.
func TestServer_RefusedBody_IsAnsweredAtOnce(t *testing.T) {
	s := startTLS(t, "sqlite:"+filepath.Join(t.TempDir(), "rows.db"), nil)
	body := strings.Repeat("x", 200<<10)
	viewer := s.token(t, "--role=viewer", "--name=jane")
	for name, token := range map[string]string{"without a credential": "", "without the permission": viewer, "with a wrong credential": "wrong"} {
		header := asJSON()
		if token != "" {
			header.Set("Authorization", "Bearer "+token)
		}
		transport := &http.Transport{TLSClientConfig: trust(s.authority.PEM())} // of HTTP/1.1, with a connection of its own
		begun := time.Now()
		answer := send(t, &http.Client{Transport: transport}, http.MethodPost, s.url+"/v0/workload-instances", header, []byte(body))
		transport.CloseIdleConnections()
		if took := time.Since(begun); answer.code/100 != 4 || took > 5*time.Second {
			t.Errorf("%s: %d after %s, want a refusal at once", name, answer.code, took)
		}
	}
}
