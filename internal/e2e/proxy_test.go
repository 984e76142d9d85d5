package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
)

// request is what the agent sent.
type request struct {
	method, path string
	body         []byte
}

// proxy stands between the agent and the control plane: it records what is sent, and fails on demand.
type proxy struct {
	url string

	mu       sync.Mutex
	requests []request
	fault    func(request) (status int, header http.Header) // status 0 lets the request pass
}

func newProxy(t *testing.T, backend string) *proxy {
	t.Helper()
	target, err := url.Parse(backend)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{}
	forward := httputil.NewSingleHostReverseProxy(target)
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
		status, header := p.record(request{req.Method, req.URL.RequestURI(), body})
		if status != 0 {
			maps.Copy(rw.Header(), header)
			rw.WriteHeader(status)
			_ = json.NewEncoder(rw).Encode(map[string]any{
				"Meta": map[string]any{}, "Data": nil,
				"Status": map[string]any{"code": status, "message": http.StatusText(status), "error": "injected by the test"},
			})
			return
		}
		forward.ServeHTTP(rw, req)
	}))
	t.Cleanup(server.Close)
	p.url = server.URL
	return p
}

func (p *proxy) record(r request) (int, http.Header) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = append(p.requests, r)
	if p.fault == nil {
		return 0, nil
	}
	return p.fault(r)
}

// failWith makes every request that matches fail until it is called with nil.
func (p *proxy) failWith(fault func(request) (int, http.Header)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = fault
}

// sent returns the requests so far whose method and path begin so.
func (p *proxy) sent(method, path string) []request {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []request
	for _, r := range p.requests {
		if (method == "" || r.method == method) && strings.HasPrefix(r.path, path) {
			out = append(out, r)
		}
	}
	return out
}

func convert(in map[string]any, out any) error {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(in, out)
}

func (w *world) fetch(url string) (string, int) {
	w.Helper()
	req, err := http.NewRequestWithContext(w.ctx, http.MethodGet, url, nil)
	w.must(err)
	answer, err := http.DefaultClient.Do(req)
	w.must(err)
	defer answer.Body.Close() //nolint:errcheck // it was only read
	body, err := io.ReadAll(answer.Body)
	w.must(err)
	return string(body), answer.StatusCode
}
