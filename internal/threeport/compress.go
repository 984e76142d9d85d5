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

// minCompressed is the size in bytes from which on a body is compressed. A smaller one fits into two packets.
const minCompressed = 1 << 10

// zstdEncoder starts no goroutine: it encodes one body at a time, in that of the caller. A larger window would cost memory
// and gain little, because similar reports are close to each other.
var zstdEncoder = sync.OnceValue(func() *zstd.Encoder {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithWindowSize(256<<10), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic("zstd: " + err.Error()) // the options are constants
	}
	return encoder
})

// compress returns a body in an encoding, and the encoding. The body is not encoded if the encoding is unknown or gains
// nothing.
func compress(body []byte, encoding string) (out []byte, encoded string) {
	if len(body) < minCompressed {
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
