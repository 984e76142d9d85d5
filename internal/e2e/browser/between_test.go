package browser

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// between is a proxy in front of a control plane that injects errors into answers of the API.
type between struct {
	*httptest.Server

	mu   sync.Mutex
	code func(uri string) int
}

func newBetween(t *testing.T, api *API) *between {
	t.Helper()
	b := unstartedBetween(t, api)
	b.Start()
	return b
}

// newBetweenTLS returns a proxy with https, which sessions need.
func newBetweenTLS(t *testing.T, api *API) *between {
	t.Helper()
	b := unstartedBetween(t, api)
	b.Config.ErrorLog = log.New(io.Discard, "", 0) // it would have a line for each rejected certificate
	b.StartTLS()
	return b
}

func unstartedBetween(t *testing.T, api *API) *between {
	t.Helper()
	target, err := url.Parse(api.URL)
	if err != nil {
		t.Fatal(err)
	}
	b := &between{}
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	b.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if code := b.codeFor(req.URL.RequestURI()); code != 0 {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(code)
			_, _ = w.Write([]byte(`{"title":"No","detail":"Injected fault."}`))
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

// answer sets the function that decides the status of a request by path and query; 0 forwards the request.
func (b *between) answer(code func(uri string) int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.code = code
}

func (b *between) codeFor(uri string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.code == nil || !strings.HasPrefix(uri, "/v0/") {
		return 0
	}
	return b.code(uri)
}

// isNetworkError matches the browser's own messages about failed requests.
func isNetworkError(problem string) bool { return strings.HasPrefix(problem, "network: ") }
