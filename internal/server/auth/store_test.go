package auth

import (
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// The fake store may differ from the real one.
func TestAuthenticator_OnSQLite(t *testing.T) {
	rows, err := store.Open(t.Context(), store.Config{Address: "sqlite:" + filepath.Join(t.TempDir(), "rows.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rows.Close(); err != nil {
			t.Error(err)
		}
	})
	w := start(t, defaultOptions())
	w.Authenticator.store, w.auditLog.store = rows, rows
	made, err := w.Tokens().Create(t.Context(), &CreateTokenInput{NewToken{
		Name: "jane", Role: RoleAdmin, ExpiresAt: new(w.now().Add(time.Hour)),
	}})
	if err != nil {
		t.Fatal(err)
	}
	secret, id := made.Body.Secret, int64(made.Body.ID)
	if got := w.do(t, w.plain, http.MethodPost, "/v0/tokens", bearer(secret)); got.code != http.StatusOK {
		t.Errorf("token: the answer is %d %s, want %d", got.code, got.body, http.StatusOK)
	}
	if got := w.do(t, w.plain, http.MethodGet, "/v0/tokens", bearer(newToken(RoleAdmin))); got.code != http.StatusUnauthorized {
		t.Errorf("unknown token: the answer is %d, want %d", got.code, http.StatusUnauthorized)
	}
	login := w.post(t, "/login", map[string][]string{"token": {secret}})
	if login.code != http.StatusSeeOther {
		t.Fatalf("log-in: the answer is %d %s, want %d", login.code, login.body, http.StatusSeeOther)
	}
	asked := func(part func(*http.Request)) int {
		return w.do(t, w.plain, http.MethodGet, "/v0/workloads", part).code
	}
	if got := asked(cookie(login.cookies[0])); got != http.StatusOK {
		t.Errorf("session: %d, want %d", got, http.StatusOK)
	}
	w.post(t, "/logout", nil, cookie(login.cookies[0]))
	if got := asked(cookie(login.cookies[0])); got != http.StatusUnauthorized {
		t.Errorf("closed session: %d, want %d", got, http.StatusUnauthorized)
	}
	second := w.post(t, "/login", map[string][]string{"token": {secret}}).cookies[0]
	if _, err := w.Tokens().Revoke(t.Context(), &RevokeTokenInput{id}); err != nil {
		t.Fatal(err)
	}
	if got := [2]int{asked(bearer(secret)), asked(cookie(second))}; got != [2]int{401, 401} {
		t.Errorf("after the revocation: %v, want %v", got, [2]int{401, 401})
	}
	if _, err := w.Tokens().Revoke(t.Context(), &RevokeTokenInput{id + 1}); statusOf(err) != http.StatusNotFound {
		t.Errorf("revoking an unknown token returned %v, want not found", err)
	}
	w.Close()
	list, err := w.Tokens().List(t.Context(), nil)
	if err != nil || list.Body.Total != 1 || list.Body.Items[0].UsedAt == nil || list.Body.Items[0].RevokedAt == nil {
		t.Errorf("the list of tokens is %+v, error %v; want one used and revoked token", list, err)
	}
	page, err := w.AuditLog().List(t.Context(), &ListAuditInput{Size: 2})
	if err != nil || page.Body.Total != 4 || page.Body.Items[0].Path != "/v0/workloads" || page.Body.Items[1].Path != "/login" || page.Body.Next == "" {
		t.Fatalf("the first page of the audit log is %+v, error %v", page, err)
	}
	rest, err := w.AuditLog().List(t.Context(), &ListAuditInput{Cursor: page.Body.Next, Size: 2})
	if err != nil || len(rest.Body.Items) != 2 || rest.Body.Items[1].Principal != "token:jane" || rest.Body.Items[1].ID == threeport.ID(0) {
		t.Errorf("the second page of the audit log is %+v, error %v; want the other two records", rest, err)
	}
	if _, err := w.AuditLog().List(t.Context(), &ListAuditInput{Cursor: "x", Size: 2}); statusOf(err) != http.StatusUnprocessableEntity {
		t.Errorf("an invalid cursor returned %v, want an unprocessable request", err)
	}
}
