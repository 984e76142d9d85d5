package server

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/iotest"
	"time"

	"github.com/threeport/threeport-agent/internal/server/auth"
)

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// TestBodyLimit_Read_ReservesWhatArrives compares the reserved memory with the received bytes, at each read.
func TestBodyLimit_Read_ReservesWhatArrives(t *testing.T) {
	const limit = 10 * firstRead
	for _, size := range []int{0, 1, firstRead - 1, firstRead, firstRead + 1, 3 * firstRead, limit - 1, limit, limit + 1} {
		for _, announced := range []bool{true, false} {
			l := newMemoryLimiter(2*limit, 2*limit, testWait)
			held, err := l.acquire(t.Context(), sender{name: "a"}, firstRead)
			if err != nil {
				t.Fatal(err)
			}
			body := bytes.Repeat([]byte("b"), size)
			req := requestOf(t, auth.Principal{}, "192.0.2.1:1", body)
			arrived := 0
			req.Body = io.NopCloser(readerFunc(func(p []byte) (int, error) {
				if held.bytes > max(firstRead, 2*int64(arrived)) {
					t.Errorf("%d bytes: %d bytes are reserved after %d arrived, want at most twice as many", size, held.bytes, arrived)
				}
				n, err := iotest.DataErrReader(bytes.NewReader(body[arrived:])).Read(p[:min(len(p), 1000)])
				arrived += n
				return n, err
			}))
			if !announced {
				req.ContentLength = -1
			}
			got, err := bodyLimit{limit, time.Minute}.read(httptest.NewRecorder(), req, held.bytes, held.grow)
			if size > limit {
				if _, tooLarge := errors.AsType[*http.MaxBytesError](err); !tooLarge {
					t.Errorf("%d bytes, limit %d: the error is %v, want a MaxBytesError", size, limit, err)
				}
			} else if err != nil || !bytes.Equal(got, body) {
				t.Errorf("read of %d bytes returned %d, error %v; want the whole body", size, len(got), err)
			}
			held.release()
			expectAllFree(t, "after release", l, 2*limit)
		}
	}
}
