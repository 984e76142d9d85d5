package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// encodings are the accepted content encodings besides identity.
var encodings = []string{"gzip", "zstd"}

// maxWindow bounds the window of a zstd frame, which is memory of the decompressor. RFC 8878 asks decompressors to support
// as much.
const maxWindow = 8 << 20

// smallWindow is the window that every zstd frame may have.
const smallWindow = 1 << 20

// errDecodedTooLarge is the error of a body that is too large once it is decompressed.
var errDecodedTooLarge = errors.New("the body is too large")

// contentEncoding is the Content-Encoding of a request, empty for identity.
func contentEncoding(header http.Header) (string, error) {
	given := strings.ToLower(strings.TrimSpace(strings.Join(header.Values("Content-Encoding"), ",")))
	switch given {
	case "", "identity":
		return "", nil
	case "gzip", "zstd":
		return given, nil
	default:
		return "", problem(http.StatusUnsupportedMediaType, "Content-Encoding: use identity, gzip or zstd")
	}
}

// checkContentType refuses a body that is not declared as JSON.
func checkContentType(header http.Header) error {
	media, parameters, err := mime.ParseMediaType(header.Get("Content-Type"))
	charset, given := parameters["charset"]
	if err != nil || media != "application/json" || given && !strings.EqualFold(charset, "utf-8") {
		return problem(http.StatusUnsupportedMediaType, "Content-Type: use application/json")
	}
	return nil
}

// decoded reads a body without its encoding. It fails with errDecodedTooLarge after limit bytes, so a small body cannot
// become a huge one. The caller closes the reader.
func decoded(body []byte, encoding string, limit int64) (io.ReadCloser, error) {
	// zstd would decompress a bytes.Buffer at once.
	plain := io.NopCloser(bytes.NewReader(body))
	var err error
	switch encoding {
	case "gzip":
		plain, err = gzip.NewReader(plain)
	case "zstd":
		plain, err = newZstd(plain, windowOf(body))
	}
	if err != nil {
		return nil, badEncoding(encoding, err)
	}
	return &boundedReader{encoding: encoding, plain: plain, left: limit}, nil
}

func newZstd(r io.Reader, window uint64) (io.ReadCloser, error) {
	d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(window), zstd.WithDecodeBuffersBelow(0))
	if err != nil {
		return nil, err
	}
	return d.IOReadCloser(), nil
}

// windowOf is the largest window that a zstd body may use: that of its first frame or smallWindow, or maxWindow if the first
// frame's is larger or unknown.
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

// badEncoding is the answer to a body that does not match its Content-Encoding.
func badEncoding(encoding string, err error) error {
	if errors.Is(err, zstd.ErrWindowSizeExceeded) {
		return problem(http.StatusRequestEntityTooLarge, fmt.Sprintf(
			"a zstd window of the body is too large: at most %d bytes, and after the first frame at most its window or %d", maxWindow, smallWindow))
	}
	return problem(http.StatusBadRequest, "the body is not "+encoding+", as its Content-Encoding says")
}

// boundedReader fails when its limit is exceeded, and maps errors of the decompressor to problems.
type boundedReader struct {
	encoding string
	plain    io.ReadCloser
	left     int64 // negative once it is exceeded
}

func (r *boundedReader) Read(p []byte) (int, error) {
	if r.left < 0 {
		return 0, errDecodedTooLarge
	}
	p = p[:min(int64(len(p)), r.left+1)] // one byte more shows that the limit is exceeded
	n, err := r.plain.Read(p)
	r.left -= int64(n)
	switch {
	case r.left < 0:
		return 0, errDecodedTooLarge
	case err == nil, err == io.EOF: // a plain io.EOF is the end; an error that wraps it is not
		return n, err
	default:
		return n, badEncoding(r.encoding, err)
	}
}

func (r *boundedReader) Close() error { return r.plain.Close() }
