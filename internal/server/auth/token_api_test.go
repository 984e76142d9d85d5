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
	w := start(t, defaultSetting())
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
		t.Errorf("created %+v", made)
	}
	if answer := w.do(t, w.plain, http.MethodGet, "/openapi.json", bearer(got.Secret)); answer.code != http.StatusOK || w.principal().ClusterUID != clusterUID {
		t.Errorf("used: %d %+v", answer.code, w.principal())
	}
	revoked, err := tokens.Revoke(t.Context(), &RevokeTokenInput{int64(got.ID)})
	if err != nil || revoked.Body.RevokedAt == nil {
		t.Errorf("revoked %+v, %v", revoked, err)
	}
	again, err := tokens.Revoke(t.Context(), &RevokeTokenInput{int64(got.ID)})
	if err != nil || !again.Body.RevokedAt.Equal(*revoked.Body.RevokedAt) {
		t.Errorf("again %+v, %v", again, err)
	}
	list, err := tokens.List(t.Context(), nil)
	if err != nil || list.Body.Total != 1 || list.Body.Items[0].RevokedAt == nil {
		t.Errorf("listed %+v, %v", list, err)
	}
	text, err := json.Marshal(list.Body)
	if err != nil || strings.Contains(string(text), got.Secret) || !strings.Contains(string(text), `"id":"1"`) {
		t.Errorf("listed %s, %v", text, err)
	}
	for hash := range w.store.hashes {
		if strings.Contains(hash, got.Secret) || len(hash) != len(digest{}) {
			t.Error("the token's secret is stored")
		}
	}
}

func TestTokenAPI_InvalidToken_IsRefused(t *testing.T) {
	w := start(t, defaultSetting())
	past, far := w.now(), time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		reason string
		wanted NewToken
		field  string
	}{
		{"no name", NewToken{Role: RoleViewer}, "name"},
		{"a name with a line end", NewToken{Name: "a\r\nX-Evil: 1", Role: RoleViewer}, "name"},
		{"a name that ends in a line end", NewToken{Name: "a\n", Role: RoleViewer}, "name"},
		{"a name with markup", NewToken{Name: "<b>", Role: RoleViewer}, "name"},
		{"a name that begins with a dash", NewToken{Name: "-rf", Role: RoleViewer}, "name"},
		{"a long name", NewToken{Name: strings.Repeat("x", 64), Role: RoleViewer}, "name"},
		{"no role", NewToken{Name: "a"}, "role"},
		{"an unknown role", NewToken{Name: "a", Role: "Admin"}, "role"},
		{"an agent of no cluster", NewToken{Name: "a", Role: RoleAgent}, "clusterUID"},
		{"an agent of a strange cluster", NewToken{Name: "a", Role: RoleAgent, ClusterUID: "a b"}, "clusterUID"},
		{"a viewer of a cluster", NewToken{Name: "a", Role: RoleViewer, ClusterUID: "a"}, "clusterUID"},
		{"expired", NewToken{Name: "a", Role: RoleViewer, ExpiresAt: &past}, "expiresAt"},
		{"beyond any calendar", NewToken{Name: "a", Role: RoleViewer, ExpiresAt: &far}, "expiresAt"},
	} {
		_, err := w.Tokens().Create(t.Context(), &CreateTokenInput{tc.wanted})
		problem, ok := errors.AsType[*Problem](err)
		if !ok || problem.GetStatus() != http.StatusUnprocessableEntity || !strings.HasPrefix(problem.Detail, tc.field+": ") {
			t.Errorf("%s: %v", tc.reason, err)
		}
		if len(tc.wanted.Name) > 3 && strings.Contains(err.Error(), tc.wanted.Name) {
			t.Errorf("%s: the error quotes the secret: %v", tc.reason, err)
		}
	}
	if len(w.store.tokens) != 0 {
		t.Errorf("created %v", w.store.tokens)
	}
}

func TestTokenAPI_StoreFails_IsUnavailable(t *testing.T) {
	w := start(t, defaultSetting())
	ctx := t.Context()
	if _, err := w.Tokens().Revoke(ctx, &RevokeTokenInput{7}); statusOf(err) != http.StatusNotFound {
		t.Errorf("revoke an unknown token: %v", err)
	}
	if _, err := w.AuditLog().List(ctx, &ListAuditInput{Cursor: "x", Size: 1}); statusOf(err) != http.StatusUnprocessableEntity {
		t.Errorf("an invalid cursor: %v", err)
	}
	w.store.fail(errors.New("connection refused"))
	_, created := w.Tokens().Create(ctx, &CreateTokenInput{NewToken{Name: "a", Role: RoleViewer}})
	_, listed := w.Tokens().List(ctx, nil)
	_, revoked := w.Tokens().Revoke(ctx, &RevokeTokenInput{1})
	_, records := w.AuditLog().List(ctx, &ListAuditInput{Size: 1})
	for i, err := range []error{created, listed, revoked, records} {
		if statusOf(err) != http.StatusServiceUnavailable || strings.Contains(err.Error(), "refused") {
			t.Errorf("operation %d: %v", i, err)
		}
	}
	if got := strings.Count(w.log.String(), "connection refused"); got != 4 {
		t.Errorf("logged %d times: %s", got, w.log)
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
			t.Fatalf("created %s and %s", token, session)
		}
		seen[token], seen[session] = true, true
	}
}
