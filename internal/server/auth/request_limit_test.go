package auth

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestRequestLimit_TotalAndPerKey(t *testing.T) {
	l := newRequestLimit(3, 2)
	for i, tc := range []struct {
		address string
		want    bool
	}{{"a", true}, {"a", true}, {"a", false}, {"b", true}, {"b", false}, {"c", false}} {
		if got := l.tryAcquire(tc.address); got != tc.want {
			t.Errorf("request %d, of %s: %v, want %v", i, tc.address, got, tc.want)
		}
	}
	for _, address := range []string{"a", "a", "b"} {
		l.release(address)
	}
	if l.requests != 0 || len(l.byKey) != 0 {
		t.Errorf("%d requests of %v are left, want none", l.requests, l.byKey)
	}
}

// silentBody is a body that does not arrive before the deadline of its connection.
type silentBody struct {
	deadline chan time.Time
	begun    func()
}

func (b *silentBody) Read([]byte) (int, error) {
	b.begun()
	time.Sleep(time.Until(<-b.deadline))
	return 0, context.DeadlineExceeded
}

func (b *silentBody) Close() error { return nil }

// silentWriter is the answer to a request with such a body.
type silentWriter struct {
	*httptest.ResponseRecorder
	body *silentBody
}

func (w *silentWriter) SetReadDeadline(deadline time.Time) error {
	w.body.deadline <- deadline
	return nil
}

// Anonymous clients announce forms and send none. Others still get the log-in page, its files and the answers without a credential.
func TestUnauthenticated_BodiesThatDoNotArrive_DelayNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, err := newAuthenticator(newFakeStore(), DefaultConfig(), nil, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		login := a.LoginHandlers()
		pages := http.NewServeMux()
		pages.HandleFunc("GET "+loginPath, login.Form)
		pages.HandleFunc("POST "+loginPath, login.Login)
		pages.HandleFunc("GET "+stylePath, login.Style)
		served := a.Middleware(testRules(), pages)
		ask := func(method, path, address string, body io.Reader) int {
			req := httptest.NewRequestWithContext(t.Context(), method, "https://localhost"+path, body)
			req.RemoteAddr = address
			answer := httptest.NewRecorder()
			served.ServeHTTP(answer, req)
			return answer.Code
		}
		begin := time.Now()
		var all, reading sync.WaitGroup
		for i := range maxForms {
			reading.Add(1)
			all.Go(func() {
				body := &silentBody{deadline: make(chan time.Time, 1), begun: reading.Done}
				req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "https://localhost"+loginPath, body)
				req.RemoteAddr = fmt.Sprintf("192.0.2.%d:1", i/maxFormsPerAddress)
				answer := &silentWriter{httptest.NewRecorder(), body}
				served.ServeHTTP(answer, req)
				if answer.Code != http.StatusRequestTimeout || time.Since(begin) != FormTimeout {
					t.Errorf("a form without its body: %d after %v, want %d after %v", answer.Code, time.Since(begin), http.StatusRequestTimeout, FormTimeout)
				}
			})
		}
		reading.Wait()
		for path, want := range map[string]int{loginPath: http.StatusOK, stylePath: http.StatusOK, "/v0/workloads": http.StatusUnauthorized} {
			if got := ask(http.MethodGet, path, "192.0.2.1:2", http.NoBody); got != want {
				t.Errorf("GET %s meanwhile: %d, want %d", path, got, want)
			}
		}
		if got := ask(http.MethodPost, loginPath, "198.51.100.1:1", strings.NewReader("token=x")); got != http.StatusServiceUnavailable {
			t.Errorf("a further form: %d, want %d", got, http.StatusServiceUnavailable)
		}
		all.Wait()
		if got := ask(http.MethodPost, loginPath, "192.0.2.1:2", strings.NewReader("token=x")); got != http.StatusUnauthorized {
			t.Errorf("a form later: %d, want %d", got, http.StatusUnauthorized)
		}
	})
}

// Clients at one address send unknown tokens, and the database is slow. A token in use is served, and so are unknown tokens of
// other addresses.
func TestLookUp_UnknownTokens_AreLimited(t *testing.T) {
	w := start(t, defaultOptions())
	_, known := w.token(t, RoleViewer)
	if got := w.do(t, w.plain, http.MethodGet, "/openapi.json", bearer(known)); got.code != http.StatusOK {
		t.Fatalf("the answer is %d, want %d", got.code, http.StatusOK)
	}
	var begun sync.WaitGroup
	resume := make(chan struct{})
	w.store.mu.Lock()
	w.store.reading = func() {
		begun.Done()
		<-resume
	}
	w.store.mu.Unlock()
	const attacker, other = "192.0.2.1:1", "198.51.100.1:1"
	request := func(secret, address string) *http.Request {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v0/workloads", http.NoBody)
		req.RemoteAddr = address
		req.Header.Set("Authorization", "Bearer "+secret)
		req.TLS = &tls.ConnectionState{}
		return req
	}
	var all sync.WaitGroup
	hold := func(secret, address string) {
		begun.Add(1)
		all.Go(func() { _, _ = w.authenticate(request(secret, address)) })
	}
	for range maxLookupsPerAddress {
		hold(newToken(RoleViewer), attacker)
	}
	begun.Wait()
	_, err := w.authenticate(request(newToken(RoleViewer), attacker))
	if problem, ok := errors.AsType[*Problem](err); !ok || problem.Status != http.StatusServiceUnavailable || problem.GetHeaders().Get("Retry-After") != "1" {
		t.Errorf("a further unknown token: %v, want %d with Retry-After", err, http.StatusServiceUnavailable)
	}
	logOut := request("", attacker)
	logOut.AddCookie(&http.Cookie{Name: hostPrefix + sessionCookie, Value: newSession()})
	err = w.closeSession(logOut)
	if problem, ok := errors.AsType[*Problem](err); !ok || problem.Status != http.StatusServiceUnavailable {
		t.Errorf("the end of an unknown session: %v, want %d", err, http.StatusServiceUnavailable)
	}
	if _, err := w.authenticate(request(known, attacker)); err != nil {
		t.Errorf("a token in use at the same address: %v", err)
	}
	hold(newToken(RoleViewer), other)
	begun.Wait()
	w.clock.advance(2 * cacheTime) // its row has to be read again
	hold(known, attacker)
	begun.Wait()
	close(resume)
	all.Wait()
}
