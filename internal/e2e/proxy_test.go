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
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/threeport/threeport-agent/internal/e2e/oracle"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
)

// request is a request of the agent.
type request struct {
	method, path string
	body         []byte         // decoded
	writes       []oracle.Write // in the form of v0; a report set has several
}

// newRequest reads a request of the agent, and restores its body.
func newRequest(req *http.Request) (request, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return request{}, err
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	r := request{method: req.Method, path: req.URL.RequestURI()}
	if r.body, err = oracle.DecodeBody(body, req.Header.Get("Content-Encoding")); err != nil || r.method == http.MethodGet {
		return r, err
	}
	r.writes, err = oracle.Writes(oracle.Write{Method: r.method, Path: r.path, Body: r.body})
	return r, err
}

// writesTo reports whether a request writes to a row, given by its path in v0.
func (r request) writesTo(path string) bool {
	return slices.ContainsFunc(r.writes, func(w oracle.Write) bool { return w.Path == path })
}

// proxy forwards requests of the agent to the control plane. It records them, and injects faults.
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
		r, err := newRequest(req)
		if err != nil {
			panic(http.ErrAbortHandler) // the request was cut off
		}
		status, header := p.record(r)
		if status != 0 {
			maps.Copy(rw.Header(), header)
			rw.WriteHeader(status)
			_ = json.NewEncoder(rw).Encode(upstream.Refusal(r.path, status, "injected by the test"))
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

// failWith sets the fault; nil removes it.
func (p *proxy) failWith(fault func(request) (int, http.Header)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = fault
}

// isHeartbeat reports whether a request is a heartbeat.
func (r request) isHeartbeat() bool { return r.method == http.MethodPost && len(r.writes) == 0 }

// sent returns the requests so far.
func (p *proxy) sent() []request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clip(p.requests)
}

// rejections counts the requests that write only to one row. The agent splits a rejected set in halves until the faulty
// report is alone.
func (p *proxy) rejections(path string) int {
	n := 0
	for _, r := range p.sent() {
		if r.writesTo(path) && len(r.writes) == 1 {
			n++
		}
	}
	return n
}

// writes returns the writes so far to rows whose path has a prefix, in the form of v0.
func (p *proxy) writes(path string) []oracle.Write {
	var out []oracle.Write
	for _, r := range p.sent() {
		for _, w := range r.writes {
			if strings.HasPrefix(w.Path, path) {
				out = append(out, w)
			}
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
	defer answer.Body.Close() //nolint:errcheck // only read
	body, err := io.ReadAll(answer.Body)
	w.must(err)
	return string(body), answer.StatusCode
}
