package auth

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func revoke(t *testing.T, w *world, id int64) {
	t.Helper()
	if _, err := w.Tokens().Revoke(t.Context(), &RevokeTokenInput{ID: id}); err != nil {
		t.Fatal(err)
	}
}

func TestTokenAPI_Revoke_TakesEffectInAllReplicas(t *testing.T) {
	s := defaultOptions()
	here, there := start(t, s), start(t, s) // two replicas with one store
	token, secret := here.token(t, RoleViewer)
	opened := here.post(t, "/login", map[string][]string{"token": {secret}}).cookies[0]
	codes := func(w *world) [2]int {
		return [2]int{
			w.do(t, w.plain, http.MethodGet, "/v0/workloads", bearer(secret)).code,
			w.do(t, w.plain, http.MethodGet, "/v0/workloads", cookie(opened)).code,
		}
	}
	valid, ended := [2]int{200, 200}, [2]int{401, 401}
	if got := [2][2]int{codes(here), codes(there)}; got != [2][2]int{valid, valid} {
		t.Fatalf("before: %v, want %v", got, [2][2]int{valid, valid})
	}
	revoke(t, here, token.ID)
	if got := codes(here); got != ended {
		t.Errorf("in this replica: %v, want %v", got, ended)
	}
	if got := codes(there); got != valid {
		t.Errorf("in the other replica: %v, want %v", got, valid)
	}
	here.clock.advance(cacheTime)
	if got := codes(there); got != ended {
		t.Errorf("in the other replica, after %v: %v, want %v", cacheTime, got, ended)
	}
}

// A row that was read before its token was revoked, and arrives after that, must not be cached.
func TestTokenCache_RevocationDuringRead_IsNotCached(t *testing.T) {
	w := start(t, defaultOptions())
	token, secret := w.token(t, RoleViewer)
	var once sync.Once
	w.store.reading = func() { once.Do(func() { revoke(t, w, token.ID) }) }
	w.do(t, w.plain, http.MethodGet, "/v0/workloads", bearer(secret))
	if got := w.do(t, w.plain, http.MethodGet, "/v0/workloads", bearer(secret)); got.code != http.StatusUnauthorized {
		t.Errorf("after the revocation: the answer is %d, want %d", got.code, http.StatusUnauthorized)
	}
}

// streamHandler runs until its request's context ends.
type streamHandler struct{ begun, ended chan struct{} }

func newStreamHandler() streamHandler { return streamHandler{make(chan struct{}), make(chan struct{})} }

func (h streamHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	close(h.begun)
	<-r.Context().Done()
	close(h.ended)
}

func TestStream_EndsWithLogout(t *testing.T) {
	s, h := defaultOptions(), newStreamHandler()
	s.handler = h
	w := start(t, s)
	opened := w.session(t, RoleViewer)
	done := make(chan reply, 1)
	go func() { done <- w.do(t, w.plain, http.MethodGet, "/v0/workloads/watch", cookie(opened)) }()
	<-h.begun
	w.post(t, "/logout", nil, cookie(opened))
	<-h.ended
	if got := <-done; got.code != http.StatusOK {
		t.Errorf("the answer is %d, want %d", got.code, http.StatusOK)
	}
}

// open starts a stream with a token that is valid for two hours. It runs in a synctest bubble without network.
func (h streamHandler) open(t *testing.T) (a *Authenticator, kept *fakeStore, tokenID int64) {
	t.Helper()
	kept = newFakeStore()
	a, err := New(kept, DefaultConfig(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	token, secret, err := issue(t.Context(), kept, NewToken{
		Name: "jane", Role: RoleViewer, ExpiresAt: new(time.Now().Add(2 * time.Hour)),
	}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.WithValue(t.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	req := httptest.NewRequestWithContext(ctx, http.MethodGet, "/v0/workloads/watch", http.NoBody)
	bearer(secret)(req)
	go a.Middleware(testRules(), h).ServeHTTP(httptest.NewRecorder(), req)
	<-h.begun
	return a, kept, token.ID
}

func TestStream_EndsWithCredential(t *testing.T) {
	for _, tc := range []struct {
		reason string
		end    func(t *testing.T, a *Authenticator, kept *fakeStore, token int64) error
		most   time.Duration // until that time
	}{
		{reason: "revoked here", end: func(t *testing.T, a *Authenticator, _ *fakeStore, token int64) error {
			t.Helper()
			_, err := a.Tokens().Revoke(t.Context(), &RevokeTokenInput{token})
			return err
		}, most: 0},
		{reason: "revoked by another replica", end: func(t *testing.T, _ *Authenticator, kept *fakeStore, token int64) error {
			t.Helper()
			_, err := kept.RevokeToken(t.Context(), token)
			return err
		}, most: 2 * cacheTime},
		{reason: "expired, after the store was unavailable", end: func(t *testing.T, _ *Authenticator, kept *fakeStore, _ int64) error {
			t.Helper()
			kept.fail(errors.New("connection refused"))
			time.Sleep(time.Hour - time.Minute)
			kept.fail(nil)
			return nil
		}, most: time.Minute + 2*cacheTime},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newStreamHandler()
				a, kept, token := h.open(t)
				time.Sleep(time.Hour)
				synctest.Wait()
				if err := tc.end(t, a, kept, token); err != nil {
					t.Fatal(err)
				}
				select {
				case <-h.ended:
					if tc.most > 0 {
						t.Fatal("the stream ended before its credential")
					}
				default:
				}
				begun := time.Now()
				<-h.ended
				if took := time.Since(begun); took > tc.most {
					t.Errorf("ended after %v, want %v at most", took, tc.most)
				}
			})
		})
	}
}

func TestStream_EndsWithCertificateAuthority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var distrusted atomic.Bool
		config := DefaultConfig()
		config.VerifyCertificate = func(*tls.ConnectionState) error {
			if distrusted.Load() {
				return errors.New("its authority was removed")
			}
			return nil
		}
		a, err := New(newFakeStore(), config, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(a.Close)
		cert := &x509.Certificate{Subject: pkix.Name{CommonName: "jane", Organization: []string{groupViewers}}, NotAfter: time.Now().Add(24 * time.Hour)}
		req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v0/workloads/watch", http.NoBody)
		req.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}}
		h := newStreamHandler()
		go a.Middleware(testRules(), h).ServeHTTP(httptest.NewRecorder(), req)
		<-h.begun
		time.Sleep(time.Hour)
		distrusted.Store(true)
		begun := time.Now()
		<-h.ended
		if took := time.Since(begun); took > cacheTime {
			t.Errorf("ended after %v, want %v at most", took, cacheTime)
		}
	})
}

// Anybody can send a cookie. Each open stream checks its credential when it is woken.
func TestLogout_UnknownSession_WritesAndWakesNothing(t *testing.T) {
	w := start(t, defaultOptions())
	open := w.session(t, RoleViewer)
	w.flush()
	before, deletions := w.cache.nextInvalidation(), w.store.deletions()
	forged := &http.Cookie{Name: tlsCookie, Value: newSession()}
	for range 3 {
		w.post(t, "/logout", nil)
		if got := w.post(t, "/logout", nil, cookie(forged)); got.code != http.StatusSeeOther {
			t.Errorf("the answer is %d, want %d", got.code, http.StatusSeeOther)
		}
	}
	select {
	case <-before:
		t.Error("the log-out of an unknown session woke the streams")
	default:
	}
	if n := w.store.deletions(); n != deletions {
		t.Errorf("the log-out of an unknown session deleted %d sessions, want 0", n-deletions)
	}
	w.post(t, "/logout", nil, cookie(open))
	if n := w.store.deletions(); n != deletions+1 {
		t.Errorf("the log-out of a session deleted %d sessions, want 1", n-deletions)
	}
}
