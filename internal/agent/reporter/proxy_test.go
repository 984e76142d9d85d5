package reporter

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

// request is a request as it was on the wire.
type request struct {
	method, path, query, accept string
}

// proxy forwards requests to the API server. It records every request, and can answer in the API server's place.
type proxy struct {
	*httptest.Server

	mu       sync.Mutex
	requests []request
	open     map[string]int // watches, by path
	ended    map[string]int // watches that the API server ended
	answer   func(*http.Request) int
	hold     <-chan struct{} // requests for a path that contains held wait for it
	held     string
	bodies   map[*watchBody]struct{} // of the open watches
	ask      func(*http.Request)     // changes requests
	spoil    func(*http.Response)    // changes answers
}

// newProxy returns a proxy to the API server for a user.
func newProxy(t *testing.T, user *rest.Config) *proxy {
	t.Helper()
	to, err := url.Parse(user.Host)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(user)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{open: map[string]int{}, ended: map[string]int{}, bodies: map[*watchBody]struct{}{}}
	reverse := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.ask != nil {
				p.ask(r.Out)
			}
		}, Transport: transport, FlushInterval: -1,
		ModifyResponse: func(r *http.Response) error {
			p.mu.Lock()
			if p.spoil != nil {
				p.spoil(r)
			}
			p.mu.Unlock()
			if strings.Contains(r.Request.URL.RawQuery, "watch=true") {
				body := &watchBody{ReadCloser: r.Body, proxy: p, request: r.Request}
				p.mu.Lock()
				p.bodies[body] = struct{}{}
				p.mu.Unlock()
				r.Body = body
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if code := p.note(r); code != 0 {
			if code == http.StatusTooManyRequests {
				w.Header().Set("Retry-After", "1")
			}
			w.WriteHeader(code)
			return
		}
		if hold := p.holds(r); hold != nil {
			select {
			case <-hold:
			case <-r.Context().Done():
			}
		}
		if strings.Contains(r.URL.RawQuery, "watch=true") {
			p.count(r.URL.Path, 1)
			defer func() { p.uncount(r) }()
		}
		defer func() {
			if err := recover(); err != nil && err != http.ErrAbortHandler { //nolint:errorlint // panicked with as it is
				panic(err)
			}
		}()
		reverse.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		p.CloseClientConnections()
		p.Close()
	})
	return p
}

func (p *proxy) note(r *http.Request) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = append(p.requests, request{r.Method, r.URL.Path, r.URL.RawQuery, r.Header.Get("Accept")})
	if p.answer != nil {
		return p.answer(r)
	}
	return 0
}

func (p *proxy) count(path string, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open[path] += n; p.open[path] == 0 {
		delete(p.open, path)
	}
}

func (p *proxy) uncount(r *http.Request) {
	p.count(r.URL.Path, -1)
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.Context().Err() == nil { // the client is still there
		p.ended[r.URL.Path]++
	}
}

// cutOff returns the number of watches of paths with a suffix that the API server has ended.
func (p *proxy) cutOff(suffix string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for path, ended := range p.ended {
		if strings.HasSuffix(path, suffix) {
			n += ended
		}
	}
	return n
}

// failWith makes the proxy answer with a code in the API server's place; 0 lets the request through.
func (p *proxy) failWith(answer func(*http.Request) int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = answer
}

// sent returns the requests whose path contains a text.
func (p *proxy) sent(path string) []request {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []request
	for _, r := range p.requests {
		if strings.Contains(r.path, path) {
			out = append(out, r)
		}
	}
	return out
}

// watches returns the number of open watches of paths with a suffix.
func (p *proxy) watches(suffix string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for path, open := range p.open {
		if strings.HasSuffix(path, suffix) {
			n += open
		}
	}
	return n
}

// holdWhile makes requests for paths that contain a text wait until the channel is closed.
func (p *proxy) holdWhile(hold <-chan struct{}, path string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hold, p.held = hold, path
}

func (p *proxy) holds(r *http.Request) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held != "" && strings.Contains(r.URL.Path, p.held) {
		return p.hold
	}
	return nil
}

// freeze makes the open watches of paths with a suffix forward nothing until thaw is called. They stay open. Later watches
// are not affected.
func (p *proxy) freeze(suffix string) (thaw func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	frozen := make(chan struct{})
	for b := range p.bodies {
		if strings.HasSuffix(b.request.URL.Path, suffix) {
			b.frozen = frozen
		}
	}
	return func() { close(frozen) }
}

// watchBody is the body of a watch, which may be frozen.
type watchBody struct {
	io.ReadCloser
	proxy   *proxy
	request *http.Request
	frozen  chan struct{} // nil, or until it is closed; guarded by the proxy's mutex
}

func (b *watchBody) Read(out []byte) (int, error) {
	n, err := b.ReadCloser.Read(out)
	b.proxy.mu.Lock()
	frozen := b.frozen
	b.proxy.mu.Unlock()
	if frozen != nil {
		select {
		case <-frozen:
		case <-b.request.Context().Done():
		}
	}
	return n, err
}

func (b *watchBody) Close() error {
	b.proxy.mu.Lock()
	delete(b.proxy.bodies, b)
	b.proxy.mu.Unlock()
	return b.ReadCloser.Close()
}

// cut makes an answer break off after some bytes.
func cut(r *http.Response, after int64) {
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(io.LimitReader(r.Body, after), broken{}), r.Body}
}

// broken is the end of an answer that was cut.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
