package server

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// encoded is a text in a content encoding.
func encoded(tb testing.TB, coding, text string) []byte {
	tb.Helper()
	var out bytes.Buffer
	var w io.WriteCloser
	switch coding {
	case "":
		return []byte(text)
	case "gzip":
		w = gzip.NewWriter(&out)
	case "zstd":
		var err error
		if w, err = zstd.NewWriter(&out); err != nil {
			tb.Fatal(err)
		}
	}
	if _, err := io.WriteString(w, text); err != nil {
		tb.Fatal(err)
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

func TestDecoded_Encodings(t *testing.T) {
	text := strings.Repeat("control plane ", 1000)
	for _, coding := range []string{"", "gzip", "zstd"} {
		t.Run("coding "+coding, func(t *testing.T) {
			body := encoded(t, coding, text)
			if got, err := readDecoded(t, body, coding, int64(len(text))); err != nil || got != text {
				t.Errorf("decoding returned %d bytes, error %v; want the whole text", len(got), err)
			}
			got, err := readDecoded(t, body, coding, int64(len(text))-1)
			if !errors.Is(err, errDecodedTooLarge) || len(got) > len(text)-1 {
				t.Errorf("a byte too many: got %d bytes, %v, want %v", len(got), err, errDecodedTooLarge)
			}
			if coding == "" {
				return
			}
			_, err = readDecoded(t, body[:len(body)-3], coding, 1<<20)
			wantProblem(t, err, http.StatusBadRequest, "")
			_, err = readDecoded(t, append(bytes.Clone(body), "garbage"...), coding, 1<<20)
			wantProblem(t, err, http.StatusBadRequest, "")
			body[len(body)/2] ^= 0xff
			_, err = readDecoded(t, body, coding, 1<<20)
			wantProblem(t, err, http.StatusBadRequest, "")
			_, err = readDecoded(t, []byte(text), coding, 1<<20)
			wantProblem(t, err, http.StatusBadRequest, "")
		})
	}
}

func readDecoded(t *testing.T, body []byte, coding string, limit int64) (string, error) {
	t.Helper()
	r, err := decoded(body, coding, limit)
	if err != nil {
		return "", err
	}
	defer func() { _ = r.Close() }()
	got, err := io.ReadAll(r)
	return string(got), err
}

// gzip compresses spaces a thousandfold, and zstd more.
func TestDecoded_Bomb_StopsAtLimit(t *testing.T) {
	const limit = 1 << 18
	blanks := strings.Repeat(" ", 8<<20)
	for _, coding := range encodings {
		body := encoded(t, coding, blanks)
		if len(body) > limit/4 {
			t.Fatalf("%s: the compressed body has %d bytes, want at most %d", coding, len(body), limit/4)
		}
		r, err := decoded(body, coding, limit)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decodeReportSet(r, 1); !errors.Is(err, errDecodedTooLarge) {
			t.Errorf("%s: %v, want %v", coding, err, errDecodedTooLarge)
		}
		if n, err := r.Read(make([]byte, 10)); n != 0 || !errors.Is(err, errDecodedTooLarge) {
			t.Errorf("%s: after the limit a read returned %d bytes, error %v; want 0 and %v", coding, n, err, errDecodedTooLarge)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestDecoded_ZstdWindow_IsLimited(t *testing.T) {
	var out bytes.Buffer
	w, err := zstd.NewWriter(&out, zstd.WithWindowSize(64<<20))
	if err != nil {
		t.Fatal(err)
	}
	// Several writes: a frame that is written at once has a window of its content's size.
	for range 3 {
		if _, err := io.WriteString(w, strings.Repeat("control plane ", 1<<16)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = readDecoded(t, out.Bytes(), "zstd", 1<<30)
	wantProblem(t, err, http.StatusRequestEntityTooLarge, "")
}

func TestContentEncoding(t *testing.T) {
	for given, want := range map[string]string{"": "", "identity": "", "GZIP": "gzip", "zstd": "zstd"} {
		if got, err := contentEncoding(http.Header{"Content-Encoding": {given}}); got != want || err != nil {
			t.Errorf("%q: got %q, %v, want %q and no error", given, got, err, want)
		}
	}
	for _, given := range [][]string{{"br"}, {"gzip, zstd"}, {"gzip", "gzip"}, {"x-gzip"}} {
		_, err := contentEncoding(http.Header{"Content-Encoding": given})
		wantProblem(t, err, http.StatusUnsupportedMediaType, "")
	}
}

func TestCheckContentType(t *testing.T) {
	for _, given := range []string{"application/json", "application/json; charset=UTF-8", "Application/JSON"} {
		if err := checkContentType(http.Header{"Content-Type": {given}}); err != nil {
			t.Errorf("content type %q: %v", given, err)
		}
	}
	for _, given := range []string{"", "text/plain", "application/json; charset=latin1", "application/x-www-form-urlencoded", "application/json; charset"} {
		wantProblem(t, checkContentType(http.Header{"Content-Type": {given}}), http.StatusUnsupportedMediaType, "")
	}
}
