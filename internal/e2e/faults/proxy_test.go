package faults

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

// request is a request of an agent to the control plane.
type request struct {
	from     string // the entrance
	method   string
	path     string
	header   http.Header
	body     []byte
	writes   []oracle.Write // the requested writes in the form of v0; a report set has many
	at       time.Time
	accepted bool // by the control plane, even if the agent received another answer
}

// newRequest reads a request of an agent.
func newRequest(from string, req *http.Request) (request, error) {
	r := request{from: from, method: req.Method, path: req.URL.RequestURI(), header: req.Header.Clone(), at: time.Now()}
	var err error
	if r.body, err = io.ReadAll(req.Body); err != nil || r.method == http.MethodGet {
		return r, err
	}
	write := r.asWrite()
	if write.Body, err = oracle.DecodeBody(r.body, r.header.Get("Content-Encoding")); err == nil {
		r.writes, err = oracle.Writes(write)
	}
	return r, err
}

func (r request) asWrite() oracle.Write {
	return oracle.Write{Method: r.method, Path: r.path, Body: r.body}
}

// isWrite reports whether a request changes a row. A heartbeat does not.
func (r request) isWrite() bool { return len(r.writes) > 0 }

// writesTo reports whether a request writes to a row, given by its path in v0.
func (r request) writesTo(path string) bool {
	return slices.ContainsFunc(r.writes, func(w oracle.Write) bool { return w.Path == path })
}

// writesOnlyTo reports whether a request writes only to that row.
func (r request) writesOnlyTo(path string) bool {
	return len(r.writes) == 1 && r.writes[0].Path == path
}

// writesToAny reports whether a request writes to any row of a collection of v0.
func (r request) writesToAny(objects string) bool {
	return slices.ContainsFunc(r.writes, func(w oracle.Write) bool { return strings.HasPrefix(w.Path, "/v0/"+objects) })
}

// contains reports whether a text is in the bodies of its writes.
func (r request) contains(text string) bool {
	return slices.ContainsFunc(r.writes, func(w oracle.Write) bool { return strings.Contains(string(w.Body), text) })
}

// keys returns the keys of its writes: the UID of an Event, the path of another row.
func (r request) keys() []string {
	var keys []string
	for _, w := range r.writes {
		key := w.Path
		var ev struct{ RuntimeEventUID string }
		if json.Unmarshal(w.Body, &ev) == nil && ev.RuntimeEventUID != "" {
			key = ev.RuntimeEventUID
		}
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// fault is the fault of a request. The zero value is none.
type fault struct {
	status int // of an answer without the control plane
	header http.Header
	taken  func()          // called once the control plane has handled the request
	hold   <-chan struct{} // the answer waits for it

	lose bool // the answer is lost after the control plane has handled the request
	cut  bool // the answer ends in its middle
}

// proxy forwards requests to the control plane. It records all requests and, in their order, the accepted writes. A script
// injects faults.
type proxy struct {
	client *http.Client

	mu       sync.Mutex
	backends map[string]bool // URLs; of several, a request goes to any
	requests []request
	writes   []oracle.Write
	script   func(request) fault
	rows     map[string]*sync.Mutex // one request at a time for a key, so that the record has their order
	open     int
	mostOpen int
}

func newProxy(t *testing.T) *proxy {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	return &proxy{client: &http.Client{Transport: transport}, backends: map[string]bool{}, rows: map[string]*sync.Mutex{}}
}

// setBackend adds or removes a control plane, given by its URL.
func (p *proxy) setBackend(backend string, there bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if there {
		p.backends[backend] = true
	} else {
		delete(p.backends, backend)
	}
}

// errNoBackend means that there is no control plane to forward to.
var errNoBackend = errors.New("there is no control plane")

// backend returns the control plane for a request, at random by the order of a map.
func (p *proxy) backend() (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for backend := range p.backends {
		return backend, nil
	}
	return "", errNoBackend
}

// listen opens another address of the proxy, and returns it as host:port.
func (p *proxy) listen(t *testing.T, name string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r, err := newRequest(name, req)
		if err != nil {
			panic(http.ErrAbortHandler) // the request was cut off
		}
		p.serve(w, req, r)
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
		refuse(w, r, f)
		return
	}
	answer, err := p.forward(r, id)
	if f.taken != nil && err == nil && answer.ok() {
		f.taken()
	}
	await(req, f.hold)
	switch {
	case err != nil:
		refuse(w, r, fault{status: http.StatusBadGateway})
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

// refuse answers with an error in the format of the control plane.
func refuse(w http.ResponseWriter, r request, f fault) {
	maps.Copy(w.Header(), f.header)
	w.WriteHeader(f.status)
	_ = json.NewEncoder(w).Encode(upstream.Refusal(r.path, f.status, "injected by the test"))
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

// answer is an answer of the control plane.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (a *answer) ok() bool { return a.status < http.StatusMultipleChoices }

// send sends a request to a control plane, given by its URL.
func (p *proxy) send(r request, backend string) (*answer, error) {
	out, err := http.NewRequest(r.method, backend+r.path, bytes.NewReader(r.body)) //nolint:noctx // it is to be completed
	if err != nil {
		return nil, err
	}
	out.Header = r.header.Clone()
	got, err := p.client.Do(out)
	if err != nil {
		return nil, err
	}
	defer got.Body.Close() //nolint:errcheck // it was only read
	body, err := io.ReadAll(got.Body)
	return &answer{status: got.StatusCode, header: got.Header, body: body}, err
}

// forward sends a request to the control plane, even if the client has disconnected: the control plane would not notice either.
func (p *proxy) forward(r request, id int) (*answer, error) {
	for _, key := range r.keys() { // they are sorted, so concurrent requests cannot deadlock
		row := p.row(key)
		row.Lock()
		defer row.Unlock()
	}
	backend, err := p.backend()
	if err != nil {
		return nil, err
	}
	got, err := p.send(r, backend)
	if err != nil {
		return nil, err
	}
	if got.ok() {
		taken, err := oracle.AcceptedWrites(r.asWrite(), r.writes, got.body)
		if err != nil {
			return nil, err
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.requests[id].accepted = true
		p.writes = append(p.writes, taken...)
	}
	return got, nil
}

func (p *proxy) row(key string) *sync.Mutex {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rows[key] == nil {
		p.rows[key] = &sync.Mutex{}
	}
	return p.rows[key]
}

// setScript sets the function that decides the fault of each request; nil injects none. It is called for one request at a time.
func (p *proxy) setScript(script func(request) fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.script = script
}

// accepted returns the accepted writes in their order.
func (p *proxy) accepted() []oracle.Write {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clip(p.writes)
}

// sent returns the matching requests so far.
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

// count returns the number of matching requests so far.
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

// busiest returns the largest number of requests within a second, and of simultaneously open requests.
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
