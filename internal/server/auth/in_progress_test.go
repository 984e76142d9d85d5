package auth

import (
	"net/http"
	"runtime"
	"sync"
	"testing"
)

// A viewer has as many requests in progress as it may. Its streams do not count, and others are served.
func TestMiddleware_RequestsInProgress_AreLimited(t *testing.T) {
	const request, stream = "/v0/workloads", "/v0/workloads/watch"
	var begun, all sync.WaitGroup
	end := make(chan struct{})
	options := defaultOptions()
	options.handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == stream {
			BeginStream(r.Context())
		}
		if r.Header.Get("X-Hold") != "" {
			begun.Done()
			<-end
		}
	})
	w := start(t, options)
	_, viewer := w.token(t, RoleViewer)
	_, other := w.token(t, RoleViewer, func(token *NewToken) { token.Name = "other" })
	// served repeats a request: a client has the answer just before the request is no longer counted.
	served := func(path string, parts ...func(*http.Request)) {
		for w.do(t, w.plain, http.MethodGet, path, append(parts, bearer(viewer))...).code != http.StatusOK {
			runtime.Gosched()
		}
	}
	hold := func(path string) {
		begun.Add(1)
		all.Go(func() { served(path, header("X-Hold", "yes")) })
	}
	served(request) // lookups of an unknown credential are limited
	for range 10 {
		hold(stream)
	}
	begun.Wait() // a stream counts until it begins
	for range maxRequestsPerViewer {
		hold(request)
	}
	begun.Wait()
	for name, tc := range map[string]struct {
		secret string
		want   int
	}{"the viewer": {viewer, http.StatusServiceUnavailable}, "another viewer": {other, http.StatusOK}} {
		got := w.do(t, w.plain, http.MethodGet, request, bearer(tc.secret))
		if got.code != tc.want || (got.header.Get("Retry-After") != "") != (tc.want != http.StatusOK) || got.body != "" {
			t.Errorf("a further request of %s: %d %v %q, want %d without a body, and Retry-After if refused", name, got.code, got.header, got.body, tc.want)
		}
	}
	close(end)
	all.Wait()
	served(request)
}
