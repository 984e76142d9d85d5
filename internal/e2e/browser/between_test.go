package browser

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// between is a proxy in front of a control plane, which answers questions to the API with an error when told to.
type between struct {
	*httptest.Server

	mu   sync.Mutex
	code func(path string) int
}

func newBetween(t *testing.T, api *API) *between {
	t.Helper()
	target, err := url.Parse(api.URL)
	if err != nil {
		t.Fatal(err)
	}
	b := &between{}
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if code := b.codeFor(req.URL.Path); code != 0 {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(code)
			_, _ = w.Write([]byte(`{"title":"No","detail":"It was told to fail."}`))
			return
		}
		defer func() { _ = recover() }() // the proxy panics to cut a stream off whose server is gone
		proxy.ServeHTTP(w, req)
	}))
	t.Cleanup(func() {
		b.CloseClientConnections()
		b.Close()
	})
	return b
}

// answer lets it answer paths of the API with a code; 0 is for the control plane to answer.
func (b *between) answer(code func(path string) int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.code = code
}

func (b *between) codeFor(path string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.code == nil || !strings.HasPrefix(path, "/v0/") {
		return 0
	}
	return b.code(path)
}

// isNetworkError is what a browser says by itself of a request that fails.
func isNetworkError(problem string) bool { return strings.HasPrefix(problem, "network: ") }
