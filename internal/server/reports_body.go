package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// encodings are the content codings of a request's body, besides identity.
var encodings = []string{"gzip", "zstd"}

// bodyTimeout is how long a body of a report set may take to arrive.
const bodyTimeout = time.Minute

// leastRoom is the memory, in bytes, that a body has when nothing of it has arrived: a heartbeat fits. What is more is
// never more than twice what has arrived.
const leastRoom = 4 << 10

// maxWindow is what a zstd frame may ask of the decoder's memory: the least that RFC 8878 wants a decoder to support.
const maxWindow = 8 << 20

// smallWindow is what every zstd frame may have.
const smallWindow = 1 << 20

// errDecodedTooLarge is a body that is larger than is accepted once it is not compressed any more.
var errDecodedTooLarge = errors.New("the body is too large")

// contentCoding reads the Content-Encoding of a request: empty for none.
func contentCoding(header http.Header) (string, error) {
	given := strings.ToLower(strings.TrimSpace(strings.Join(header.Values("Content-Encoding"), ",")))
	switch given {
	case "", "identity":
		return "", nil
	case "gzip", "zstd":
		return given, nil
	default:
		return "", problem(http.StatusUnsupportedMediaType, "Content-Encoding: accepted are identity, gzip and zstd")
	}
}

// checkMedia refuses a body that does not say it is JSON.
func checkMedia(header http.Header) error {
	media, parameters, err := mime.ParseMediaType(header.Get("Content-Type"))
	charset, given := parameters["charset"]
	if err != nil || media != "application/json" || given && !strings.EqualFold(charset, "utf-8") {
		return problem(http.StatusUnsupportedMediaType, "Content-Type: accepted is application/json")
	}
	return nil
}

// receive reads a body as it is on the wire, of at most limit bytes. Its room grows as the body arrives.
func receive(ctx context.Context, w http.ResponseWriter, req *http.Request, limit int64, room *reservation) ([]byte, error) {
	if req.ContentLength > limit {
		return nil, wireTooLarge(limit)
	}
	// Without a deadline a client could hold its share of the memory for ever. A writer that has none is a test's.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout))
	most := limit + 1 // the end is seen behind the last byte
	if req.ContentLength >= 0 {
		most = req.ContentLength + 1
	}
	r := http.MaxBytesReader(w, req.Body, limit)
	body := make([]byte, 0, room.bytes)
	for {
		if len(body) == cap(body) {
			if err := room.grow(min(2*room.bytes, most)); err != nil {
				return nil, tooManySets(ctx, err)
			}
			body = append(make([]byte, 0, room.bytes), body...)
		}
		n, err := r.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if err == io.EOF {
			return body, nil
		}
		if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
			return nil, wireTooLarge(limit)
		}
		if err != nil {
			return nil, unread(ctx, err)
		}
	}
}

func wireTooLarge(limit int64) error {
	return problem(http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is too large: accepted are %d bytes as sent", limit))
}

// unread is a body that did not arrive, so that there is mostly no one to tell.
func unread(ctx context.Context, cause error) error {
	note(ctx, fmt.Errorf("read body: %w", cause))
	return problem(http.StatusRequestTimeout, "the body did not arrive")
}

// decoded is a reader of a body without its coding. It fails with errDecodedTooLarge as soon as that is more than limit
// bytes, so that a small body cannot become a huge one. Close it when done with it.
func decoded(body []byte, coding string, limit int64) (io.ReadCloser, error) {
	// Not a bytes.Buffer: zstd would decode such a one at once.
	plain := io.NopCloser(bytes.NewReader(body))
	var err error
	switch coding {
	case "gzip":
		plain, err = gzip.NewReader(plain)
	case "zstd":
		plain, err = newZstd(plain, windowOf(body))
	}
	if err != nil {
		return nil, undecodable(coding, err)
	}
	return &boundedReader{coding: coding, plain: plain, left: limit}, nil
}

func newZstd(r io.Reader, window uint64) (io.ReadCloser, error) {
	d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(window), zstd.WithDecodeBuffersBelow(0))
	if err != nil {
		return nil, err
	}
	return d.IOReadCloser(), nil
}

// windowOf is the largest window of a body in zstd: that of its first frame, or a small one, or if that is too large or not
// to be seen, the largest there may be.
func windowOf(body []byte) uint64 {
	var first zstd.Header
	if err := first.Decode(body); err != nil || first.Skippable {
		return maxWindow
	}
	window := first.WindowSize
	if first.SingleSegment {
		window = first.FrameContentSize
	}
	return min(max(window, smallWindow), maxWindow)
}

// undecodable is a body that is not what its Content-Encoding says.
func undecodable(coding string, err error) error {
	if errors.Is(err, zstd.ErrWindowSizeExceeded) {
		return problem(http.StatusRequestEntityTooLarge, fmt.Sprintf(
			"a zstd window of the body is too large: accepted are %d bytes, and behind the first frame that one's or %d", maxWindow, smallWindow))
	}
	return problem(http.StatusBadRequest, "the body is not "+coding+", as its Content-Encoding says")
}

// boundedReader ends with an error where its limit is exceeded, and makes problems of what a decoder fails with.
type boundedReader struct {
	coding string
	plain  io.ReadCloser
	left   int64 // negative once it was exceeded
}

func (r *boundedReader) Read(p []byte) (int, error) {
	if r.left < 0 {
		return 0, errDecodedTooLarge
	}
	p = p[:min(int64(len(p)), r.left+1)] // one more tells too much from just enough
	n, err := r.plain.Read(p)
	r.left -= int64(n)
	switch {
	case r.left < 0:
		return 0, errDecodedTooLarge
	case err == nil, err == io.EOF: // a reader ends with io.EOF itself; a decoder's failure may wrap it
		return n, err
	default:
		return n, undecodable(r.coding, err)
	}
}

func (r *boundedReader) Close() error { return r.plain.Close() }
