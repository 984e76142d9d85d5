package auth

import (
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"
)

var wholeToken = regexp.MustCompile(`^tp_[avd][0-9A-Za-z]{43}$`)

func TestTokenAPI(t *testing.T) {
	w := start(t, defaultOptions())
	tokens := w.Tokens()
	expires := w.now().Add(time.Hour)
	made, err := tokens.Create(t.Context(), &CreateTokenInput{NewToken{
		Name: "cluster-1", Role: RoleAgent, ClusterUID: clusterUID, ExpiresAt: &expires,
	}})
	if err != nil {
		t.Fatal(err)
	}
	got := made.Body
	if !wholeToken.MatchString(got.Secret) || got.Secret[3] != 'a' || got.ID == 0 || got.Name != "cluster-1" || got.Role != RoleAgent ||
		got.ClusterUID != clusterUID || !got.CreatedAt.Equal(w.now()) || !got.ExpiresAt.Equal(expires) || made.CacheControl != "no-store" {
		t.Errorf("the created token is %+v", made)
	}
	if answer := w.do(t, w.plain, http.MethodGet, "/openapi.json", bearer(got.Secret)); answer.code != http.StatusOK || w.principal().ClusterUID != clusterUID {
		t.Errorf("used: the answer is %d %+v, want %d", answer.code, w.principal(), http.StatusOK)
	}
	revoked, err := tokens.Revoke(t.Context(), &RevokeTokenInput{int64(got.ID)})
	if err != nil || revoked.Body.RevokedAt == nil {
		t.Errorf("the revoked token is %+v, error %v", revoked, err)
	}
	again, err := tokens.Revoke(t.Context(), &RevokeTokenInput{int64(got.ID)})
	if err != nil || !again.Body.RevokedAt.Equal(*revoked.Body.RevokedAt) {
		t.Errorf("the second revocation returned %+v, error %v; want the first time", again, err)
	}
	list, err := tokens.List(t.Context(), nil)
	if err != nil || list.Body.Total != 1 || list.Body.Items[0].RevokedAt == nil {
		t.Errorf("the list of tokens is %+v, error %v; want one revoked token", list, err)
	}
	text, err := json.Marshal(list.Body)
	if err != nil || strings.Contains(string(text), got.Secret) || !strings.Contains(string(text), `"id":"1"`) {
		t.Errorf("the list of tokens is %s, error %v; want it without the secret", text, err)
	}
	for hash := range w.store.hashes {
		if strings.Contains(hash, got.Secret) || len(hash) != len(digest{}) {
			t.Error("the store has the token's secret, want only its hash")
		}
	}
}

func TestTokenAPI_InvalidToken_IsRefused(t *testing.T) {
	w := start(t, defaultOptions())
	past, future, far := w.now(), w.now().Add(time.Hour), time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		reason string
		wanted NewToken
		field  string
	}{
		{reason: "a viewer with a cluster name", wanted: NewToken{Name: "a", Role: RoleViewer, ClusterName: "a"}, field: "clusterName"},
		{reason: "a cluster name with a line break", wanted: NewToken{Name: "a", Role: RoleAgent, ClusterUID: "a", ClusterName: "a\n"}, field: "clusterName"},
		{reason: "no name", wanted: NewToken{Role: RoleViewer}, field: "name"},
		{reason: "a name with a line end", wanted: NewToken{Name: "a\r\nX-Evil: 1", Role: RoleViewer}, field: "name"},
		{reason: "a name that ends in a line end", wanted: NewToken{Name: "a\n", Role: RoleViewer}, field: "name"},
		{reason: "a name with markup", wanted: NewToken{Name: "<b>", Role: RoleViewer}, field: "name"},
		{reason: "a name that begins with a dash", wanted: NewToken{Name: "-rf", Role: RoleViewer}, field: "name"},
		{reason: "a long name", wanted: NewToken{Name: strings.Repeat("x", 64), Role: RoleViewer}, field: "name"},
		{reason: "no role", wanted: NewToken{Name: "a"}, field: "role"},
		{reason: "an unknown role", wanted: NewToken{Name: "a", Role: "Admin"}, field: "role"},
		{reason: "an agent of no cluster", wanted: NewToken{Name: "a", Role: RoleAgent}, field: "clusterUID"},
		{reason: "an agent with an invalid cluster UID", wanted: NewToken{Name: "a", Role: RoleAgent, ClusterUID: "a b"}, field: "clusterUID"},
		{reason: "a viewer with a cluster", wanted: NewToken{Name: "a", Role: RoleViewer, ClusterUID: "a"}, field: "clusterUID"},
		{reason: "a renewable viewer", wanted: NewToken{Name: "a", Role: RoleViewer, Renewable: true, ExpiresAt: &future}, field: "renewable"},
		{reason: "renewable without an end", wanted: NewToken{Name: "a", Role: RoleAgent, ClusterUID: "a", Renewable: true}, field: "renewable"},
		{reason: "expired", wanted: NewToken{Name: "a", Role: RoleViewer, ExpiresAt: &past}, field: "expiresAt"},
		{reason: "beyond any calendar", wanted: NewToken{Name: "a", Role: RoleViewer, ExpiresAt: &far}, field: "expiresAt"},
	} {
		_, err := w.Tokens().Create(t.Context(), &CreateTokenInput{tc.wanted})
		problem, ok := errors.AsType[*Problem](err)
		if !ok || problem.GetStatus() != http.StatusUnprocessableEntity || !strings.HasPrefix(problem.Detail, tc.field+": ") {
			t.Errorf("%s: creating the token returned %v, want a problem about %s", tc.reason, err, tc.field)
		}
		if len(tc.wanted.Name) > 3 && strings.Contains(err.Error(), tc.wanted.Name) {
			t.Errorf("%s: the error contains the secret: %v", tc.reason, err)
		}
	}
	if len(w.store.tokens) != 0 {
		t.Errorf("the store has %v, want no token", w.store.tokens)
	}
}

func TestTokenAPI_StoreFails_IsUnavailable(t *testing.T) {
	w := start(t, defaultOptions())
	ctx := t.Context()
	if _, err := w.Tokens().Revoke(ctx, &RevokeTokenInput{7}); statusOf(err) != http.StatusNotFound {
		t.Errorf("revoking an unknown token returned %v, want not found", err)
	}
	if _, err := w.AuditLog().List(ctx, &ListAuditInput{Cursor: "x", Size: 1}); statusOf(err) != http.StatusUnprocessableEntity {
		t.Errorf("an invalid cursor returned %v, want an unprocessable request", err)
	}
	w.store.fail(errors.New("connection refused"))
	_, created := w.Tokens().Create(ctx, &CreateTokenInput{NewToken{Name: "a", Role: RoleViewer}})
	_, listed := w.Tokens().List(ctx, nil)
	_, revoked := w.Tokens().Revoke(ctx, &RevokeTokenInput{1})
	_, records := w.AuditLog().List(ctx, &ListAuditInput{Size: 1})
	for i, err := range []error{created, listed, revoked, records} {
		if statusOf(err) != http.StatusServiceUnavailable || strings.Contains(err.Error(), "refused") {
			t.Errorf("operation %d returned %v, want an unavailable service without the cause", i, err)
		}
	}
	if got := strings.Count(w.log.String(), "connection refused"); got != 4 {
		t.Errorf("logged %d times: %s, want 4", got, w.log)
	}
}

func statusOf(err error) int {
	problem, ok := errors.AsType[*Problem](err)
	if !ok {
		return 0
	}
	return problem.GetStatus()
}

func TestSecrets_Form(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		token, session := newToken(RoleViewer), newSession()
		if !isToken(token) || !wholeToken.MatchString(token) || !isSession(session) || isToken(session) || isSession(token) || seen[token] || seen[session] {
			t.Fatalf("the new token is %s, the new session %s", token, session)
		}
		seen[token], seen[session] = true, true
	}
}
