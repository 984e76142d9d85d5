package threeport

import (
	"bytes"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// The encodings of a request's body.
const (
	EncodingZstd = "zstd"
	EncodingGzip = "gzip"
)

// leastCompressed is from how many bytes on a body is compressed: a smaller one fits into a packet or two anyway.
const leastCompressed = 1 << 10

// zstdEncoder starts no goroutine: it encodes in the caller's, one body at a time. Reports are alike within a small
// distance, so that a larger window gains little and costs memory.
var zstdEncoder = sync.OnceValue(func() *zstd.Encoder {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithWindowSize(256<<10), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic("controlplane: " + err.Error()) // the options are constants
	}
	return encoder
})

// compress returns a body in an encoding, or as it is if that is not known or gains nothing, and which one it is in then.
func compress(body []byte, encoding string) (out []byte, encoded string) {
	if len(body) < leastCompressed {
		return body, ""
	}
	switch encoding {
	case EncodingZstd:
		out = zstdEncoder().EncodeAll(body, make([]byte, 0, len(body)/4))
	case EncodingGzip:
		out = gzipped(body)
	default:
		return body, ""
	}
	if len(out) >= len(body) {
		return body, ""
	}
	return out, encoding
}

func gzipped(body []byte) []byte {
	var buf bytes.Buffer
	w, _ := gzip.NewWriterLevel(&buf, gzip.BestSpeed) // the level is a valid one
	_, _ = w.Write(body)                              // a buffer takes all
	_ = w.Close()
	return buf.Bytes()
}
