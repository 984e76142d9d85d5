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

// silentStream is a fault: the answer begins with status 200, and nothing follows.
const silentStream = -1

// faultProxy is a proxy in front of a control plane that injects errors into answers of the API.
type faultProxy struct {
	*httptest.Server

	mu    sync.Mutex
	fault func(uri string) int
}

func newFaultProxy(t *testing.T, api *API) *faultProxy {
	t.Helper()
	b := unstartedFaultProxy(t, api)
	b.Start()
	return b
}

// newBetweenTLS returns a proxy with https, which sessions need.
func newFaultProxyTLS(t *testing.T, api *API) *faultProxy {
	t.Helper()
	b := unstartedFaultProxy(t, api)
	b.Config.ErrorLog = log.New(io.Discard, "", 0) // the default logger prints a line for each rejected certificate
	b.StartTLS()
	return b
}

func unstartedFaultProxy(t *testing.T, api *API) *faultProxy {
	t.Helper()
	target, err := url.Parse(api.URL)
	if err != nil {
		t.Fatal(err)
	}
	b := &faultProxy{}
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	b.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		code := b.statusOf(req.URL.RequestURI())
		if code == silentStream {
			_ = http.NewResponseController(w).Flush()
			<-req.Context().Done()
			return
		}
		if code != 0 {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(code)
			_, _ = w.Write([]byte(`{"title":"No","detail":"Injected fault."}`))
			return
		}
		defer func() { _ = recover() }() // the proxy panics to cut off a stream whose server has gone
		proxy.ServeHTTP(w, req)
	}))
	t.Cleanup(func() {
		b.CloseClientConnections()
		b.Close()
	})
	return b
}

// setFault sets the function that decides the status of a request by path and query, or silentStream; 0 forwards the request.
func (b *faultProxy) setFault(fault func(uri string) int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fault = fault
}

func (b *faultProxy) statusOf(uri string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fault == nil || !strings.HasPrefix(uri, "/v0/") {
		return 0
	}
	return b.fault(uri)
}

// isNetworkError matches the browser's own messages about failed requests.
func isNetworkError(problem string) bool { return strings.HasPrefix(problem, "network: ") }
