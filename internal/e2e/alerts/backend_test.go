package alerts

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

// logBackend takes the logs and spans of the programs with OTLP, and refuses them on demand.
type logBackend struct {
	url     string
	refuses atomic.Bool
}

func newLogBackend(t *testing.T) *logBackend {
	t.Helper()
	b := &logBackend{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-protobuf")
		if b.refuses.Load() {
			w.WriteHeader(http.StatusBadRequest)
		}
	}))
	t.Cleanup(server.Close)
	b.url = server.URL
	return b
}
