package server

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/iotest"
	"testing/synctest"
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
			l := newLimiter("test", 2*limit, 2*limit, testWait)
			held, err := l.acquire(t.Context(), sender{name: "a"}, firstRead)
			if err != nil {
				t.Fatal(err)
			}
			body := bytes.Repeat([]byte("b"), size)
			req := requestOf(t, auth.Principal{}, "192.0.2.1:1", body)
			arrived := 0
			req.Body = io.NopCloser(readerFunc(func(p []byte) (int, error) {
				if held.held > max(firstRead, 2*int64(arrived)) {
					t.Errorf("%d bytes: %d bytes are reserved after %d arrived, want at most twice as many", size, held.held, arrived)
				}
				n, err := iotest.DataErrReader(bytes.NewReader(body[arrived:])).Read(p[:min(len(p), 1000)])
				arrived += n
				return n, err
			}))
			if !announced {
				req.ContentLength = -1
			}
			got, err := bodyLimit{limit, time.Minute}.read(httptest.NewRecorder(), req, held.held, held.grow)
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

// deadlineWriter records the deadline of the connection.
type deadlineWriter struct {
	http.ResponseWriter
	deadline time.Time
}

func (w *deadlineWriter) SetReadDeadline(deadline time.Time) error {
	w.deadline = deadline
	return nil
}

// A body has progressTimeout for each progressBytes, and its timeout in all. So a client that stalls holds no memory for long.
func TestBodyLimit_Read_SlowBody_HasDeadlineForEachPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size, part, timeout = 8 * progressBytes, progressBytes / 2, 4 * progressTimeout
		begin := time.Now()
		end := begin.Add(timeout)
		req := requestOf(t, auth.Principal{}, "192.0.2.1:1", make([]byte, size))
		w := &deadlineWriter{ResponseWriter: httptest.NewRecorder()}
		arrived, progress := 0, begin
		body := req.Body
		req.Body = io.NopCloser(readerFunc(func(p []byte) (int, error) {
			want := progress.Add(progressTimeout)
			if want.After(end) {
				want = end
			}
			if !w.deadline.Equal(want) {
				t.Errorf("after %d bytes in %v the deadline is in %v, want %v", arrived, time.Since(begin), time.Until(w.deadline), time.Until(want))
			}
			time.Sleep(progressTimeout / 3)
			n, err := io.ReadFull(body, p[:min(len(p), part)])
			if arrived += n; arrived%progressBytes == 0 {
				progress = time.Now()
			}
			if arrived == size {
				err = io.EOF
			}
			return n, err
		}))
		got, err := bodyLimit{size, timeout}.read(w, req, size, func(int64) error { return nil })
		if len(got) != size || err != nil {
			t.Errorf("read returned %d bytes, error %v; want %d", len(got), err, size)
		}
		if !w.deadline.IsZero() {
			t.Errorf("the deadline after the body is %v, want none: it would end the request while it is served", w.deadline)
		}
	})
}
