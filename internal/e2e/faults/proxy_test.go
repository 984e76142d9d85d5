package faults

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/e2e/oracle"
)

// request is one that an agent sent to the control plane.
type request struct {
	from         string // the entrance
	method, path string
	body         []byte
	at           time.Time
	accepted     bool // by the control plane, whatever the agent was told
}

// write reports whether a request is to change something.
func (r request) write() bool { return r.method != http.MethodGet }

// fault is what happens to a request. The zero value is nothing.
type fault struct {
	status int // answered in the control plane's place
	header http.Header
	hold   <-chan struct{} // the answer waits for it
	lose   bool            // the answer is lost, after the control plane did what was asked for
	cut    bool            // the answer ends in its middle
}

// proxy stands right before the control plane. It records what comes in and what is accepted, in that order, and makes
// requests fail as a script says.
type proxy struct {
	backend *url.URL
	client  *http.Client

	mu       sync.Mutex
	requests []request
	writes   []oracle.Write
	script   func(request) fault
	rows     map[string]*sync.Mutex // one request at a time for a path, so that the record has their order
	open     int
	mostOpen int
}

func newProxy(t *testing.T, backend string) *proxy {
	t.Helper()
	to, err := url.Parse(backend)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	return &proxy{backend: to, client: &http.Client{Transport: transport}, rows: map[string]*sync.Mutex{}}
}

// entrance opens an address that leads to the control plane, and returns it as host:port.
func (p *proxy) entrance(t *testing.T, name string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return // the request was cut off
		}
		p.serve(w, req, request{from: name, method: req.Method, path: req.URL.RequestURI(), body: body, at: time.Now()})
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return strings.TrimPrefix(server.URL, "http://")
}

func (p *proxy) serve(w http.ResponseWriter, req *http.Request, r request) {
	id, f := p.begin(r)
	defer p.end()
	if f.status != 0 {
		await(req, f.hold)
		refuse(w, f)
		return
	}
	answer, err := p.forward(req, r, id)
	await(req, f.hold)
	switch {
	case err != nil:
		refuse(w, fault{status: http.StatusBadGateway})
	case f.lose:
		panic(http.ErrAbortHandler) // closes the connection
	default:
		maps.Copy(w.Header(), answer.header)
		w.Header().Set("Content-Length", strconv.Itoa(len(answer.body)))
		w.WriteHeader(answer.status)
		if f.cut {
			_, _ = w.Write(answer.body[:len(answer.body)/2])
			panic(http.ErrAbortHandler)
		}
		_, _ = w.Write(answer.body)
	}
}

func await(req *http.Request, hold <-chan struct{}) {
	if hold == nil {
		return
	}
	select {
	case <-hold:
	case <-req.Context().Done():
	}
}

// refuse answers as the control plane does.
func refuse(w http.ResponseWriter, f fault) {
	maps.Copy(w.Header(), f.header)
	w.WriteHeader(f.status)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"Meta": map[string]any{}, "Data": nil,
		"Status": map[string]any{"code": f.status, "message": http.StatusText(f.status), "error": "injected by the test"},
	})
}

func (p *proxy) begin(r request) (id int, f fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open++
	p.mostOpen = max(p.mostOpen, p.open)
	p.requests = append(p.requests, r)
	if p.script != nil {
		f = p.script(r)
	}
	return len(p.requests) - 1, f
}

func (p *proxy) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open--
}

// answer is what the control plane said.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// forward lets the control plane do what is asked for, also if the client has gone meanwhile: that cannot be known.
func (p *proxy) forward(req *http.Request, r request, id int) (*answer, error) {
	if r.write() {
		row := p.row(r.path)
		row.Lock()
		defer row.Unlock()
	}
	to := *req.URL
	to.Scheme, to.Host = p.backend.Scheme, p.backend.Host
	out, err := http.NewRequest(r.method, to.String(), bytes.NewReader(r.body)) //nolint:noctx // it is to be completed
	if err != nil {
		return nil, err
	}
	out.Header = req.Header.Clone()
	got, err := p.client.Do(out)
	if err != nil {
		return nil, err
	}
	defer got.Body.Close() //nolint:errcheck // it was only read
	body, err := io.ReadAll(got.Body)
	if err != nil {
		return nil, err
	}
	if got.StatusCode < http.StatusMultipleChoices {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.requests[id].accepted = true
		if r.write() {
			p.writes = append(p.writes, oracle.Write{Method: r.method, Path: r.path, Body: r.body})
		}
	}
	return &answer{got.StatusCode, got.Header, body}, nil
}

func (p *proxy) row(path string) *sync.Mutex {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rows[path] == nil {
		p.rows[path] = &sync.Mutex{}
	}
	return p.rows[path]
}

// setScript says what happens to requests from now on; nil is nothing. It is called for one request at a time.
func (p *proxy) setScript(script func(request) fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.script = script
}

// accepted returns what the control plane accepted, in that order.
func (p *proxy) accepted() []oracle.Write {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clip(p.writes)
}

// sent returns the requests so far that match.
func (p *proxy) sent(matches func(request) bool) []request {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []request
	for _, r := range p.requests {
		if matches(r) {
			out = append(out, r)
		}
	}
	return out
}

// count returns how many requests so far match.
func (p *proxy) count(matches func(request) bool) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for i := range p.requests {
		if matches(p.requests[i]) {
			n++
		}
	}
	return n
}

func anyRequest(request) bool { return true }

// busiest returns the largest number of requests that came within a second, and how many were open at a time.
func (p *proxy) busiest() (perSecond, open int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	from := 0
	for to, r := range p.requests {
		for r.at.Sub(p.requests[from].at) > time.Second {
			from++
		}
		perSecond = max(perSecond, to-from+1)
	}
	return perSecond, p.mostOpen
}
