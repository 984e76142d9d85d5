package auth

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestAuthenticate_InvalidBearer_IsUnauthorized(t *testing.T) {
	w := start(t, defaultOptions())
	_, good := w.token(t, RoleViewer)
	_, expired := w.token(t, RoleViewer, func(n *NewToken) { n.ExpiresAt = new(w.now().Add(time.Second)) })
	w.clock.advance(time.Second)
	gone, revoked := w.token(t, RoleViewer)
	if _, err := w.Tokens().Revoke(t.Context(), &RevokeTokenInput{ID: gone.ID}); err != nil {
		t.Fatal(err)
	}
	strayed, clusterless := w.token(t, RoleAgent)
	w.store.tokens[strayed.ID-1].ClusterUID = ""
	odd, roleless := w.token(t, RoleAdmin)
	w.store.tokens[odd.ID-1].Role = "root"
	for _, tc := range []struct {
		reason string
		given  []string
	}{
		{"unknown", []string{"Bearer " + newToken(RoleAdmin)}},
		{"expired", []string{"Bearer " + expired}},
		{"revoked", []string{"Bearer " + revoked}},
		{"an agent of no cluster", []string{"Bearer " + clusterless}},
		{"an unknown role", []string{"Bearer " + roleless}},
		{"nothing", []string{""}},
		{"scheme without a token", []string{"Bearer"}},
		{"no scheme", []string{good}},
		{"another scheme", []string{"Basic " + good}},
		{"two spaces", []string{"Bearer  " + good}},
		{"two tokens", []string{"Bearer " + good + "," + good}},
		{"two headers", []string{"Bearer " + good, "Bearer " + good}},
		{"cut", []string{"Bearer " + good[:len(good)-1]}},
		{"too long", []string{"Bearer " + good + "0"}},
		{"very long", []string{"Bearer tp_" + strings.Repeat("x", 100_000)}},
		{"other characters", []string{"Bearer " + good[:len(good)-1] + "+"}},
		{"another prefix", []string{"Bearer xx_" + good[3:]}},
		{"upper case", []string{"Bearer " + strings.ToUpper(good)}},
	} {
		before := w.store.count()
		// The certificate must not replace the token.
		got := w.do(t, w.client(t, certificate(t, w.authority, "root", "threeport:admins")), http.MethodGet, "/v0/workloads",
			func(r *http.Request) { r.Header["Authorization"] = tc.given })
		if got.code != http.StatusUnauthorized || !strings.HasPrefix(got.header.Get("WWW-Authenticate"), "Bearer") {
			t.Errorf("%s: the answer is %d %v, want %d", tc.reason, got.code, got.header, http.StatusUnauthorized)
		}
		for _, given := range tc.given {
			if _, secret, _ := strings.Cut(given, " "); secret != "" && strings.Contains(got.body+w.log.String(), secret) {
				t.Errorf("%s: the answer or the log contains the token", tc.reason)
			}
		}
		if len(tc.given[0]) != len("Bearer "+good) && w.store.count() != before {
			t.Errorf("%s: the request used a query, want none", tc.reason)
		}
	}
	if got := w.do(t, w.plain, http.MethodGet, "/v0/workloads", header("Authorization", "bEARER "+good)); got.code != http.StatusOK {
		t.Errorf("a scheme in another case: the answer is %d, want %d", got.code, http.StatusOK)
	}
}

func TestAuthenticate_HugeHeader_IsUnauthorized(t *testing.T) {
	w := start(t, defaultOptions())
	got := w.do(t, w.plain, http.MethodGet, "/v0/workloads", bearer(strings.Repeat("x", 2<<20)))
	if got.code != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("the answer is %d, want %d", got.code, http.StatusRequestHeaderFieldsTooLarge)
	}
}

func TestAuthenticate_InvalidCookie_IsUnauthorized(t *testing.T) {
	w := start(t, defaultOptions())
	good := w.session(t, RoleAdmin)
	forged := newSession()
	for _, tc := range []struct {
		reason  string
		cookies string
	}{
		{"unknown", tlsCookie + "=" + forged},
		{"cookie name of loopback", sessionCookie + "=" + good.Value},
		{"another case", "__host-threeport-session=" + good.Value},
		{"empty", tlsCookie + "="},
		{"not base64", tlsCookie + "=" + strings.Repeat("!", len(good.Value))},
		{"cut", tlsCookie + "=" + good.Value[1:]},
		{"two", tlsCookie + "=" + good.Value + "; " + tlsCookie + "=" + forged},
		{"huge", tlsCookie + "=" + strings.Repeat("A", 100_000)},
		{"a token", tlsCookie + "=" + newToken(RoleAdmin)},
	} {
		got := w.do(t, w.plain, http.MethodGet, "/v0/workloads", header("Cookie", tc.cookies))
		if got.code != http.StatusUnauthorized {
			t.Errorf("%s: the answer is %d, want %d", tc.reason, got.code, http.StatusUnauthorized)
		}
	}
	if got := w.do(t, w.plain, http.MethodGet, "/v0/workloads", bearer(good.Value)); got.code != http.StatusUnauthorized {
		t.Errorf("a session as a token: the answer is %d, want %d", got.code, http.StatusUnauthorized)
	}
}

func TestAuthenticate_SeveralCredentials_Precedence(t *testing.T) {
	w := start(t, defaultOptions())
	admin := w.client(t, certificate(t, w.authority, "root", "threeport:admins"))
	_, agent := w.token(t, RoleAgent)
	viewer := w.session(t, RoleViewer)
	for _, tc := range []struct {
		reason string
		parts  []func(*http.Request)
		want   string
	}{
		{reason: "token takes precedence", parts: []func(*http.Request){bearer(agent), cookie(viewer)}, want: "token:a-agent"},
		{reason: "session before certificate", parts: []func(*http.Request){cookie(viewer)}, want: "session:a-viewer"},
		{
			reason: "invalid session is ignored",
			parts:  []func(*http.Request){cookie(&http.Cookie{Name: tlsCookie, Value: newSession()})},
			want:   "certificate:root",
		},
	} {
		if got := w.do(t, admin, http.MethodGet, "/openapi.json", tc.parts...); got.code != http.StatusOK || w.principal().String() != tc.want {
			t.Errorf("%s: %d %s, want %s", tc.reason, got.code, w.principal(), tc.want)
		}
	}
	if got := w.principal(); got.ClusterUID != "" {
		t.Errorf("the principal is %+v, want no cluster", got)
	}
}

func TestAuthenticate_PlainHTTPOnLoopback(t *testing.T) {
	s := defaultOptions()
	s.plain = true
	w := start(t, s)
	c := w.session(t, RoleViewer)
	if c.Name != sessionCookie || c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode {
		t.Errorf("the session cookie is %s", c)
	}
	if got := w.do(t, w.plain, http.MethodGet, "/v0/workloads", cookie(c)); got.code != http.StatusOK {
		t.Errorf("the answer is %d, want %d", got.code, http.StatusOK)
	}
	_, secret := w.token(t, RoleViewer)
	if got := w.do(t, w.plain, http.MethodGet, "/v0/workloads", bearer(secret)); got.code != http.StatusOK {
		t.Errorf("token: the answer is %d, want %d", got.code, http.StatusOK)
	}
}

func TestAuthenticate_StoreFails_IsUnavailable(t *testing.T) {
	w := start(t, defaultOptions())
	_, secret := w.token(t, RoleViewer)
	session := w.session(t, RoleViewer)
	w.flush() // only these requests must fail
	w.clock.advance(cacheTime)
	w.store.fail(errors.New("connection refused"))
	for reason, part := range map[string]func(*http.Request){"token": bearer(secret), "session": cookie(session)} {
		got := w.do(t, w.plain, http.MethodGet, "/v0/workloads", part)
		if got.code != http.StatusServiceUnavailable || got.header.Get("Retry-After") != "1" {
			t.Errorf("%s: the answer is %d %v, want %d", reason, got.code, got.header, http.StatusServiceUnavailable)
		}
		var problem Problem
		if err := json.Unmarshal([]byte(got.body), &problem); err != nil || problem.Status != got.code || strings.Contains(got.body, "refused") {
			t.Errorf("%s: the body of the answer is %s, want a problem without the cause", reason, got.body)
		}
	}
	if text := w.log.String(); strings.Count(text, "connection refused") != 2 || strings.Contains(text, secret) {
		t.Errorf("the log is %s, want the error of the store twice and no token", text)
	}
	w.store.fail(nil)
	if got := w.do(t, w.plain, http.MethodGet, "/v0/workloads", bearer(secret)); got.code != http.StatusOK {
		t.Errorf("after the store recovered: the answer is %d, want %d", got.code, http.StatusOK)
	}
}

func TestRecordUse_OncePerMinute(t *testing.T) {
	w := start(t, defaultOptions())
	_, secret := w.token(t, RoleViewer)
	begin := w.now()
	for range 13 { // two minutes in steps of ten seconds
		w.do(t, w.plain, http.MethodGet, "/v0/workloads", bearer(secret))
		w.clock.advance(10 * time.Second)
	}
	w.Close()
	want := []time.Time{begin, begin.Add(time.Minute), begin.Add(2 * time.Minute)}
	if !slices.EqualFunc(w.store.uses, want, time.Time.Equal) {
		t.Errorf("recorded at %v, want %v", w.store.uses, want)
	}
}

func TestRecordUse_RecordedByOtherReplica_IsSkipped(t *testing.T) {
	w := start(t, defaultOptions())
	token, secret := w.token(t, RoleViewer)
	w.store.tokens[token.ID-1].UsedAt = new(w.now().Add(-59 * time.Second))
	w.do(t, w.plain, http.MethodGet, "/v0/workloads", bearer(secret))
	w.Close()
	if len(w.store.uses) != 0 {
		t.Errorf("uses were recorded at %v, want none", w.store.uses)
	}
}

func TestTokenCache_RepeatedRequests_NeedNoQuery(t *testing.T) {
	w := start(t, defaultOptions())
	_, secret := w.token(t, RoleViewer)
	session := w.session(t, RoleViewer)
	before := w.store.count()
	for range 20 {
		w.do(t, w.plain, http.MethodGet, "/v0/workloads", bearer(secret))
		w.do(t, w.plain, http.MethodGet, "/v0/workloads", cookie(session))
	}
	if got := w.store.count() - before; got != 2 {
		t.Errorf("%d queries, want one each", got)
	}
}
