package endpoints

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// start starts a server that answers with ok, and returns its address.
func start(t *testing.T) string {
	t.Helper()
	return startWith(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
}

func startWith(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server, err := New(t.Context(), "test", "127.0.0.1:0", handler, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return server.Listener.Addr().String()
}

func connect(t *testing.T, address, text string) net.Conn {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	if err == nil {
		_, err = io.WriteString(conn, text)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	return conn
}

// Clients hold connections with requests that do not end. The oldest ones are closed, and others are served.
func TestServer_ManyConnections_ServesOthers(t *testing.T) {
	address := start(t)
	held := make([]net.Conn, 3*maxConnections)
	for i := range held {
		held[i] = connect(t, address, "GET / HTTP/1.1\r\nHost: x\r\nX-A: ")
	}
	resp, err := http.Get(fmt.Sprintf("http://%s/", address)) //nolint:noctx // on loopback
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // it is read
	if text, err := io.ReadAll(resp.Body); err != nil || string(text) != "ok" {
		t.Errorf("the answer is %q, %v", text, err)
	}
	for i, conn := range held[:2*maxConnections] {
		if n, err := conn.Read(make([]byte, 1)); err == nil {
			t.Errorf("connection %d of %d reads %d bytes, want that it is closed", i, len(held), n)
		}
	}
}

// New connections do not interrupt the answer to a request.
func TestServer_ManyConnections_DoNotInterruptAnswers(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan struct{})
	address := startWith(t, func(w http.ResponseWriter, _ *http.Request) {
		asked <- struct{}{}
		<-answer
		_, _ = io.WriteString(w, "ok")
	})
	scrape := connect(t, address, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	<-asked
	flood := make([]net.Conn, 3*maxConnections)
	for i := range flood {
		flood[i] = connect(t, address, "")
	}
	for _, conn := range flood[:2*maxConnections] { // each is closed for a newer one
		_, _ = conn.Read(make([]byte, 1))
	}
	close(answer)
	resp, err := http.ReadResponse(bufio.NewReader(scrape), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // it is read
	if text, err := io.ReadAll(resp.Body); err != nil || string(text) != "ok" {
		t.Errorf("the answer is %q, %v", text, err)
	}
}

func TestServer_LongHeaders_AreRefused(t *testing.T) {
	conn := connect(t, start(t), "GET / HTTP/1.1\r\nHost: x\r\nX-A: "+strings.Repeat("a", 2*maxHeaderBytes))
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // the status is enough
	if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("the answer is %d, want %d", resp.StatusCode, http.StatusRequestHeaderFieldsTooLarge)
	}
}
