package informers

import (
	"context"
	"errors"
	"io"
	"net/http"
)

// Limits of the answers of the API server to reads other than those of informers, in bytes. client-go holds a whole answer. The API server
// bounds an object to about 1.5 MiB, also if that is all metadata, and the answers of an aggregated API by nothing.
const (
	maxDiscoveryBytes = 4 << 20 // a group with hundreds of kinds takes less than 1 MiB
	maxMetadataBytes  = 4 << 20 // of a page
	maxObjectBytes    = 8 << 20
)

// errLargeAnswer means that an answer exceeds its limit.
var errLargeAnswer = errors.New("the answer of the API server is too large")

type answerLimitKey struct{}

// withAnswerLimit limits the body of each answer to a request of this context.
func withAnswerLimit(ctx context.Context, bytes int64) context.Context {
	return context.WithValue(ctx, answerLimitKey{}, bytes)
}

// limitingTransport fails the read of an answer beyond the limit of its request.
type limitingTransport struct{ next http.RoundTripper }

func (t limitingTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(req)
	if limit, ok := req.Context().Value(answerLimitKey{}).(int64); ok && err == nil {
		resp.Body = &limitedBody{resp.Body, limit}
	}
	return resp, err
}

type limitedBody struct {
	io.ReadCloser
	left int64
}

func (b *limitedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, errLargeAnswer
	}
	return n, err
}
