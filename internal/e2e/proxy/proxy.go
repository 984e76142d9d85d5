package proxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/e2e/oracle"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
)

// Fault is the fault of a request. The zero value is none.
type Fault struct {
	// Status and Header are those of the proxy's own answer. With status 0 the proxy forwards the request.
	Status int
	Header http.Header
	// Applied is called after the control plane has handled the request with success.
	Applied func()
	// Hold delays the answer until it is closed.
	Hold <-chan struct{}
	// Lose closes the connection instead of an answer, after the control plane has handled the request.
	Lose bool
	// Cut closes the connection in the middle of the answer.
	Cut bool
}

// Proxy forwards requests to the control plane. It records all requests and, in their order, the accepted writes. A script
// injects faults.
type Proxy struct {
	t      *testing.T
	client *http.Client

	mu       sync.Mutex
	backends map[string]bool // URLs; of several, a request goes to any
	requests []Request
	writes   []oracle.Write
	script   func(Request) Fault
	rows     map[string]*sync.Mutex // one request at a time for a key, so that the record has their order
	open     map[string]int         // requests by the name of their listener
	mostOpen int
}

// New returns a proxy without a backend.
func New(t *testing.T) *Proxy {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	return &Proxy{t: t, client: &http.Client{Transport: transport}, backends: map[string]bool{}, rows: map[string]*sync.Mutex{}, open: map[string]int{}}
}

// AddBackend adds a control plane, given by its URL.
func (p *Proxy) AddBackend(url string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.backends[url] = true
}

// RemoveBackend removes a control plane, given by its URL.
func (p *Proxy) RemoveBackend(url string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.backends, url)
}

// errNoBackend means that there is no control plane to forward to.
var errNoBackend = errors.New("the proxy has no control plane")

// backend returns the control plane for a request, at random by the order of a map.
func (p *Proxy) backend() (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for backend := range p.backends {
		return backend, nil
	}
	return "", errNoBackend
}

// Listen opens another address of the proxy, and returns it as host:port. The name is that of its requests.
func (p *Proxy) Listen(t *testing.T, name string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			panic(http.ErrAbortHandler) // the request was cut off
		}
		r, err := newRequest(name, req, body)
		if err != nil {
			t.Errorf("%s sent a request that the proxy cannot read: %s %s: %v", name, r.Method, r.Path, err)
		}
		p.serve(w, req, r)
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return strings.TrimPrefix(server.URL, "http://")
}

func (p *Proxy) serve(w http.ResponseWriter, req *http.Request, r Request) {
	id, f := p.begin(r)
	defer p.end(r)
	if f.Status != 0 {
		await(req, f.Hold)
		answerError(w, r, f)
		return
	}
	answer, err := p.forward(r, id)
	if f.Applied != nil && err == nil && answer.OK() {
		f.Applied()
	}
	await(req, f.Hold)
	switch {
	case err != nil:
		answerError(w, r, Fault{Status: http.StatusBadGateway})
	case f.Lose:
		panic(http.ErrAbortHandler) // closes the connection
	default:
		maps.Copy(w.Header(), answer.header)
		w.Header().Set("Content-Length", strconv.Itoa(len(answer.Body)))
		w.WriteHeader(answer.Status)
		if f.Cut {
			_, _ = w.Write(answer.Body[:len(answer.Body)/2])
			panic(http.ErrAbortHandler)
		}
		_, _ = w.Write(answer.Body)
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

// answerError answers with an error in the format of the control plane.
func answerError(w http.ResponseWriter, r Request, f Fault) {
	maps.Copy(w.Header(), f.Header)
	w.WriteHeader(f.Status)
	_ = json.NewEncoder(w).Encode(upstream.Refusal(r.Path, f.Status, "injected by the test"))
}

func (p *Proxy) begin(r Request) (id int, f Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open[r.From]++
	p.mostOpen = max(p.mostOpen, p.open[r.From])
	p.requests = append(p.requests, r)
	if p.script != nil {
		f = p.script(r)
	}
	return len(p.requests) - 1, f
}

func (p *Proxy) end(r Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open[r.From]--
}

// Answer is an answer of the control plane.
type Answer struct {
	Status int
	Body   []byte

	header http.Header
}

// OK reports whether the control plane handled the request with success.
func (a *Answer) OK() bool { return a.Status < http.StatusMultipleChoices }

// Send sends a recorded request to a control plane, given by its URL, without a record.
func (p *Proxy) Send(r Request, backend string) (*Answer, error) {
	out, err := http.NewRequest(r.Method, backend+r.Path, bytes.NewReader(r.sent)) //nolint:noctx // the test waits for its end
	if err != nil {
		return nil, err
	}
	out.Header = r.header.Clone()
	got, err := p.client.Do(out)
	if err != nil {
		return nil, err
	}
	defer got.Body.Close() //nolint:errcheck // only read
	body, err := io.ReadAll(got.Body)
	return &Answer{Status: got.StatusCode, header: got.Header, Body: body}, err
}

// forward sends a request to the control plane, even if the client has disconnected: the control plane would not notice either.
func (p *Proxy) forward(r Request, id int) (*Answer, error) {
	for _, key := range r.keys() { // they are sorted, so concurrent requests cannot deadlock
		row := p.row(key)
		row.Lock()
		defer row.Unlock()
	}
	backend, err := p.backend()
	if err != nil {
		return nil, err
	}
	got, err := p.Send(r, backend)
	if err != nil {
		return nil, err
	}
	if got.OK() {
		taken, err := oracle.AcceptedWrites(r.asWrite(), r.Writes, got.Body)
		if err != nil {
			p.t.Errorf("the control plane sent an answer that the proxy cannot read: %s %s: %v", r.Method, r.Path, err)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.requests[id].Accepted = true
		p.writes = append(p.writes, taken...)
	}
	return got, nil
}

func (p *Proxy) row(key string) *sync.Mutex {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rows[key] == nil {
		p.rows[key] = &sync.Mutex{}
	}
	return p.rows[key]
}

// SetScript sets the function that decides the fault of each request; nil injects none. It is called for one request at a time.
func (p *Proxy) SetScript(script func(Request) Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.script = script
}

// Accepted returns the accepted writes in their order.
func (p *Proxy) Accepted() []oracle.Write {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clip(p.writes)
}

// Sent returns the matching requests so far.
func (p *Proxy) Sent(matches func(Request) bool) []Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []Request
	for _, r := range p.requests {
		if matches(r) {
			out = append(out, r)
		}
	}
	return out
}

// Requested returns the writes that agents requested so far to rows whose path has a prefix, in the form of v0.
func (p *Proxy) Requested(prefix string) []oracle.Write {
	var out []oracle.Write
	for _, r := range p.Sent(Any) {
		for _, w := range r.Writes {
			if strings.HasPrefix(w.Path, prefix) {
				out = append(out, w)
			}
		}
	}
	return out
}

// Count returns the number of matching requests so far.
func (p *Proxy) Count(matches func(Request) bool) int {
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

// Busiest returns the largest number of requests within a second, and of simultaneously open requests of one listener.
func (p *Proxy) Busiest() (perSecond, open int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	from := 0
	for to, r := range p.requests {
		for r.At.Sub(p.requests[from].At) > time.Second {
			from++
		}
		perSecond = max(perSecond, to-from+1)
	}
	return perSecond, p.mostOpen
}
