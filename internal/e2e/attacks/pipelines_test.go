package attacks

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"golang.org/x/sync/errgroup"
)

// Two viewers open watches over HTTP/2 and send bodies, which no handler reads.
func TestMemory_BodiesAreNotRead(t *testing.T) {
	a := newAPI(t, "sqlite:"+filepath.Join(t.TempDir(), "controlplane.db"))
	a.start()
	var clients errgroup.Group
	clients.SetLimit(10) // on a busy machine, the handshakes of all may take longer than the API waits for headers
	for i := range 400 {
		bearer := a.viewer
		if i%2 == 0 {
			bearer = a.otherViewer
		}
		clients.Go(func() error {
			return a.sendBody(append(requestFields("/v0/workloads/watch", 0, ""), hpack.HeaderField{Name: "authorization", Value: bearer}))
		})
	}
	a.must(clients.Wait())
	a.expectAlive()
}

// sendBody sends as much of a body as the server permits, and waits until the server has it.
func (a *api) sendBody(fields []hpack.HeaderField) error {
	connection, err := a.dial(a.Context(), nil, "h2")
	if err != nil {
		return err
	}
	var sent, block bytes.Buffer
	sent.WriteString(http2.ClientPreface)
	out, encoder := http2.NewFramer(&sent, connection), hpack.NewEncoder(&block)
	for _, field := range fields {
		err = errors.Join(err, encoder.WriteField(field))
	}
	err = errors.Join(err, out.WriteSettings(),
		out.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true}),
		out.WritePing(false, [8]byte{}))
	if err != nil {
		return err
	}
	window, ofStream := 65535, 65535 // RFC 9113, section 6.9.2
	flush := func() error {
		if _, err := connection.Write(sent.Bytes()); err != nil {
			return err
		}
		sent.Reset()
		for {
			frame, err := out.ReadFrame()
			if err != nil {
				return err
			}
			switch f := frame.(type) {
			case *http2.SettingsFrame:
				if size, ok := f.Value(http2.SettingInitialWindowSize); ok {
					ofStream = int(size)
				}
			case *http2.WindowUpdateFrame:
				window += int(f.Increment)
			default:
				if isPingAnswer(frame) {
					return nil
				}
			}
		}
	}
	if err := flush(); err != nil {
		return err
	}
	for left := min(window, ofStream); left > 0; left -= 16 << 10 {
		err = errors.Join(err, out.WriteData(1, false, make([]byte, min(left, 16<<10))))
	}
	if err = errors.Join(err, out.WritePing(false, [8]byte{})); err != nil {
		return err
	}
	return flush()
}

// A client without a credential sends many requests in one record of TLS. They are answered at the permitted rate.
func TestPipeline_RequestsWithoutCredential_ArePaused(t *testing.T) {
	const (
		sent     = 450 // one record has 16 KiB
		expected = 60  // 28 beyond the burst of 32: at 10 per second, they take 2.7 seconds
	)
	a := newAPI(t, "sqlite:"+filepath.Join(t.TempDir(), "controlplane.db"))
	a.start()
	connection, err := a.dial(t.Context(), nil, "http/1.1")
	a.must(err)
	begin := time.Now()
	_, err = io.WriteString(connection, strings.Repeat("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n", sent))
	a.must(err)
	answers := bufio.NewReader(connection)
	for range expected {
		answer, err := http.ReadResponse(answers, nil)
		a.must(err)
		_, err = io.Copy(io.Discard, answer.Body)
		a.must(errors.Join(err, answer.Body.Close()))
	}
	if took := time.Since(begin); took < 2*time.Second {
		t.Errorf("%d requests took %v, want at least two seconds", expected, took)
	}
	a.expectAlive()
}
