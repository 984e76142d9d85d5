package attacks

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// Clients without a credential at another address open connections without end, and begin a request on each. Agents that connect
// meanwhile still report, and so do the probes of Kubernetes get their answer.
func TestMemory_ClientsWithoutCredential_OpenManyConnections(t *testing.T) {
	const (
		opened  = 5000 // before the first report
		dialers = 32
		reports = 20
	)
	a := newAPI(t, "sqlite:"+filepath.Join(t.TempDir(), "controlplane.db"))
	a.start()
	sent, err := requestWithoutEnd()
	a.must(err)
	ctx, cancel := context.WithCancel(t.Context())
	var opening, clients sync.WaitGroup
	for range dialers {
		opening.Add(1)
		clients.Go(func() {
			ready := sync.OnceFunc(opening.Done)
			defer ready()
			for i := 0; ctx.Err() == nil; i++ {
				if i == opened/dialers {
					ready()
				}
				_ = a.holdConnection(ctx, sent) // the server may close it at once
			}
		})
	}
	opening.Wait()
	begin := time.Now()
	for i := range reports {
		a.client.CloseIdleConnections()
		if err := a.report(ctx, fmt.Sprint("during-", i)); err != nil {
			t.Errorf("report %d on a new connection during the attack: %v", i, err)
		}
		a.client.CloseIdleConnections()
		if code, _, err := a.request(ctx, "", http.MethodGet, "/healthz", http.NoBody); err != nil || code != http.StatusOK {
			t.Errorf("probe %d on a new connection during the attack: %d, %v, want %d", i, code, err, http.StatusOK)
		}
	}
	t.Logf("a report and a probe took %v", time.Since(begin)/reports)
	cancel()
	clients.Wait()
	a.expectAlive()
}

// requestWithoutEnd encodes an HTTP/2 connection with a request whose headers do not end. It lives longer than one of HTTP/1.1.
func requestWithoutEnd() ([]byte, error) {
	var sent, block bytes.Buffer
	sent.WriteString(http2.ClientPreface)
	framer, encoder := http2.NewFramer(&sent, nil), hpack.NewEncoder(&block)
	err := framer.WriteSettings()
	for _, field := range requestFields("/", 90, strings.Repeat("x", 120)) {
		err = errors.Join(err, encoder.WriteField(field))
	}
	err = errors.Join(err, framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndStream: true}))
	return sent.Bytes(), err
}

// dial opens a connection until the end of the test. It fills the records of TLS. An address is one of this machine; nil for any.
func (a *api) dial(ctx context.Context, from net.IP, protocol string) (net.Conn, error) {
	to, err := url.Parse(a.url)
	if err != nil {
		return nil, err
	}
	dialer := tls.Dialer{
		NetDialer: &net.Dialer{LocalAddr: &net.TCPAddr{IP: from}},
		Config:    &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}, DynamicRecordSizingDisabled: true},
	}
	connection, err := dialer.DialContext(ctx, "tcp", to.Host)
	if err == nil {
		a.Cleanup(func() { _ = connection.Close() })
	}
	return connection, err
}

// holdConnection opens a connection from another address of this machine and sends this. It stays open until the end of the test, or
// until the server closes it.
func (a *api) holdConnection(ctx context.Context, sent []byte) error {
	connection, err := a.dial(ctx, net.IPv4(127, 0, 0, 2), "h2")
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, connection)
		_ = connection.Close()
	}()
	_, err = connection.Write(sent)
	return err
}
