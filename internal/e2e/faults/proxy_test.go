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

// request is one that an agent sent to the control plane.
type request struct {
	from     string // the entrance
	method   string
	path     string
	header   http.Header
	body     []byte
	told     []oracle.Write // what it is to change, one by one, in v0's words: a report set has many
	at       time.Time
	accepted bool // by the control plane, whatever the agent was told
}

// newRequest reads what an agent sent.
func newRequest(from string, req *http.Request) (request, error) {
	r := request{from: from, method: req.Method, path: req.URL.RequestURI(), header: req.Header.Clone(), at: time.Now()}
	var err error
	if r.body, err = io.ReadAll(req.Body); err != nil || r.method == http.MethodGet {
		return r, err
	}
	write := r.asWrite()
	if write.Body, err = oracle.DecodeBody(r.body, r.header.Get("Content-Encoding")); err == nil {
		r.told, err = oracle.Writes(write)
	}
	return r, err
}

func (r request) asWrite() oracle.Write {
	return oracle.Write{Method: r.method, Path: r.path, Body: r.body}
}

// write reports whether a request is to change something. A heartbeat is not.
func (r request) write() bool { return len(r.told) > 0 }

// tells reports whether a request is to change a row, by its path in v0.
func (r request) tells(path string) bool {
	return slices.ContainsFunc(r.told, func(w oracle.Write) bool { return w.Path == path })
}

// tellsOnly reports whether it is to change that row, and nothing else.
func (r request) tellsOnly(path string) bool { return len(r.told) == 1 && r.told[0].Path == path }

// tellsOf reports whether it is to change or make a row of a kind of objects of v0.
func (r request) tellsOf(objects string) bool {
	return slices.ContainsFunc(r.told, func(w oracle.Write) bool { return strings.HasPrefix(w.Path, "/v0/"+objects) })
}

// says reports whether a text is in what it tells.
func (r request) says(text string) bool {
	return slices.ContainsFunc(r.told, func(w oracle.Write) bool { return strings.Contains(string(w.Body), text) })
}

// keys are what it writes to: an Event by its UID, everything else by its row.
func (r request) keys() []string {
	var keys []string
	for _, w := range r.told {
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

// fault is what happens to a request. The zero value is nothing.
type fault struct {
	status int // answered in the control plane's place
	header http.Header
	taken  func()          // is called once the control plane did what was asked for
	hold   <-chan struct{} // the answer waits for it
	lose   bool            // the answer is lost, after the control plane did what was asked for
	cut    bool            // the answer ends in its middle
}

// proxy stands right before the control plane. It records what comes in and what is accepted, in that order, and makes
// requests fail as a script says.
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

// lead lets requests go to a control plane from now on, by its URL, or not any more.
func (p *proxy) lead(backend string, there bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if there {
		p.backends[backend] = true
	} else {
		delete(p.backends, backend)
	}
}

// errNowhere is that there is no control plane to go to.
var errNowhere = errors.New("there is no control plane")

// backend is where a request goes to: the order of a map is random.
func (p *proxy) backend() (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for backend := range p.backends {
		return backend, nil
	}
	return "", errNowhere
}

// entrance opens an address that leads to the control plane, and returns it as host:port.
func (p *proxy) entrance(t *testing.T, name string) string {
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

// refuse answers as the control plane does.
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

// answer is what the control plane said.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (a *answer) ok() bool { return a.status < http.StatusMultipleChoices }

// send asks a control plane, by its URL, for what a request asks for.
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

// forward lets the control plane do what is asked for, also if the client has gone meanwhile: that cannot be known.
func (p *proxy) forward(r request, id int) (*answer, error) {
	for _, key := range r.keys() { // which are sorted, so that nobody waits for each other
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
		taken, err := oracle.AcceptedWrites(r.asWrite(), r.told, got.body)
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
