package attacks

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// Clients without a credential send requests with many headers over HTTP/2, and give the server no window for the answers.
func TestMemory_ClientsWithoutCredential_ReadNoAnswers(t *testing.T) {
	a := newAPI(t, "sqlite:"+filepath.Join(t.TempDir(), "controlplane.db"))
	a.start()
	var attempts [][]byte
	for _, path := range []string{"/login", "/v0/workloads", "/page/none"} {
		sent, err := requestsWithoutWindow(100, requestFields(path, 90, strings.Repeat("x", 120)))
		a.must(err)
		attempts = append(attempts, sent)
	}
	var clients sync.WaitGroup
	for i := range 250 {
		clients.Go(func() {
			if err := a.holdAnswers(attempts[i%len(attempts)], isPingAnswer, 20*time.Second); err != nil { // the server reads slowly
				t.Errorf("connection %d: %v", i, err)
			}
		})
	}
	clients.Wait()
	if code, _, err := a.request(t.Context(), "", http.MethodGet, "/healthz", http.NoBody); err != nil || code != http.StatusOK {
		t.Errorf("/healthz during the attack: %d, %v, want %d", code, err, http.StatusOK)
	}
	a.expectAlive()
}

// An agent and a viewer send requests with many headers over HTTP/2, and give the server no window for the answers. Others are served.
func TestMemory_PrincipalsReadNoAnswers(t *testing.T) {
	a := newAPI(t, "sqlite:"+filepath.Join(t.TempDir(), "controlplane.db"))
	a.start()
	var attempts [][]byte
	for path, bearer := range map[string]string{"/openapi.json": a.agent, "/metrics": a.viewer, "/v0/workloads/watch?type=none": a.viewer} {
		for _, fields := range [][]hpack.HeaderField{requestFields(path, 460, ""), requestFields(path, 90, strings.Repeat("x", 120))} {
			sent, err := requestsWithoutWindow(32, append(fields, hpack.HeaderField{Name: "authorization", Value: bearer}))
			a.must(err)
			attempts = append(attempts, sent)
		}
	}
	var clients sync.WaitGroup
	for i := range 200 {
		clients.Go(func() {
			if err := a.holdAnswers(attempts[i%len(attempts)], isPingAnswer, patience); err != nil {
				t.Errorf("connection %d: %v", i, err)
			}
		})
	}
	clients.Wait()
	for path, want := range map[string]int{"/healthz": http.StatusOK, "/metrics": http.StatusOK, "/v0/workloads": http.StatusOK} {
		if code, _, err := a.request(t.Context(), a.otherViewer, http.MethodGet, path, http.NoBody); err != nil || code != want {
			t.Errorf("%s during the attack: %d, %v, want %d", path, code, err, want)
		}
	}
	a.expectAlive()
}

// Clients without a credential announce log-in forms, and never send them. Others at their address still get the log-in
// page, its files and the answer that a credential is needed.
func TestLogin_FormsThatDoNotArrive_DelayNobody(t *testing.T) {
	a := newAPI(t, "sqlite:"+filepath.Join(t.TempDir(), "controlplane.db"))
	a.start()
	for range 256 {
		a.must(a.announceForm())
	}
	for path, want := range map[string]int{"/login": http.StatusOK, "/login/style.css": http.StatusOK, "/v0/workloads": http.StatusUnauthorized} {
		if code, _, err := a.request(t.Context(), "Bearer none", http.MethodGet, path, http.NoBody); err != nil || code != want {
			t.Errorf("%s during the attack: %d, %v, want %d", path, code, err, want)
		}
	}
	a.expectAlive()
}

// announceForm opens a connection until the end of the test, and announces a form. It returns when the server waits for the form, or
// refuses it.
func (a *api) announceForm() error {
	connection, err := a.dial(a.Context(), nil, "http/1.1")
	if err != nil {
		return err
	}
	// The server answers 100 when it begins to read.
	_, err = io.WriteString(connection, "POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\n"+
		"Content-Length: 100\r\nExpect: 100-continue\r\n\r\n")
	if err != nil {
		return err
	}
	_, err = connection.Read(make([]byte, 100))
	return err
}

// requestsWithoutWindow encodes an HTTP/2 connection with requests, a ping, and no window for the answers.
func requestsWithoutWindow(requests int, fields []hpack.HeaderField) ([]byte, error) {
	var sent, block bytes.Buffer
	sent.WriteString(http2.ClientPreface)
	framer, encoder := http2.NewFramer(&sent, nil), hpack.NewEncoder(&block)
	err := framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	for i := range requests {
		block.Reset()
		for _, field := range fields {
			err = errors.Join(err, encoder.WriteField(field))
		}
		err = errors.Join(err, framer.WriteHeaders(http2.HeadersFrameParam{
			StreamID: uint32(2*i + 1), BlockFragment: block.Bytes(), EndHeaders: true, EndStream: true,
		}))
	}
	err = errors.Join(err, framer.WritePing(false, [8]byte{}))
	return sent.Bytes(), err
}

// isPingAnswer reports whether the server has received the requests before a ping.
func isPingAnswer(frame http2.Frame) bool {
	ping, ok := frame.(*http2.PingFrame)
	return ok && ping.IsAck()
}

// patience is a limit that only a server exceeds that hangs.
const patience = 2 * time.Minute

// holdAnswers opens a connection until the end of the test. It returns when the server has sent the last frame that the caller
// waits for, or has ended the connection because of too many requests, or after a time.
func (a *api) holdAnswers(sent []byte, isLast func(http2.Frame) bool, limit time.Duration) error {
	var connection net.Conn
	var err error
	for range 10 { // on a busy machine the server ends a handshake that takes too long
		if connection, err = a.dial(a.Context(), nil, "h2"); err == nil {
			break
		}
	}
	if err != nil {
		return err
	}
	if err := connection.SetDeadline(time.Now().Add(limit)); err != nil {
		return err
	}
	written := make(chan struct{})
	go func() { // the server answers meanwhile
		defer close(written)
		_, _ = connection.Write(sent) // fails if the server ends the connection
	}()
	defer func() { <-written }()
	for framer := http2.NewFramer(io.Discard, connection); ; {
		frame, err := framer.ReadFrame()
		if err != nil {
			return nil // the server has ended the connection, or the time is over
		}
		if isLast(frame) {
			return nil
		}
	}
}

// requestFields are the headers of a request with many of one value.
func requestFields(path string, headers int, value string) []hpack.HeaderField {
	fields := []hpack.HeaderField{
		{Name: ":method", Value: http.MethodGet},
		{Name: ":scheme", Value: "https"},
		{Name: ":authority", Value: "localhost"},
		{Name: ":path", Value: path},
	}
	for i := range headers {
		fields = append(fields, hpack.HeaderField{Name: fmt.Sprintf("x%x", i), Value: value})
	}
	return fields
}
