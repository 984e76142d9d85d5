package threeport

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// withToken is a client of a server, with a token file.
func withToken(t *testing.T, token string, handler http.HandlerFunc) (client *Client, file string) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	file = filepath.Join(t.TempDir(), "token")
	writeToken(t, file, token)
	c := DefaultConfig()
	c.Server, c.AuthEnabled, c.TokenFile = server.URL, false, file
	client, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client, file
}

func writeToken(t *testing.T, file, token string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestToken_ReadAndRenew(t *testing.T) {
	var got []string
	client, _ := withToken(t, "old", func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization"))
		const state = `{"name":"east","createdAt":"2026-01-02T03:04:05Z","expiresAt":"2026-04-02T03:04:05Z","renewable":true,"renewalDueAt":"2026-03-02T03:04:05Z"`
		if r.Method == http.MethodGet {
			_, _ = w.Write([]byte(state + "}"))
			return
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte(state + `,"token":"new"}`))
	})
	state, err := client.OwnToken(t.Context())
	if err != nil || state.Name != "east" || !state.Renewable || state.ExpiresAt.Month() != 4 || state.RenewalDueAt.Month() != 3 {
		t.Errorf("the state is %+v, error %v", state, err)
	}
	renewed, err := client.RenewToken(t.Context())
	if err != nil || renewed.Token != "new" || renewed.ExpiresAt.Month() != 4 {
		t.Errorf("renewed: %+v, error %v", renewed, err)
	}
	if err := client.UseToken(renewed.Token); err != nil {
		t.Error(err)
	}
	if _, err := client.OwnToken(t.Context()); err != nil {
		t.Error(err)
	}
	want := "GET /v0/tokens/own Bearer old, POST /v0/tokens/own/renewals Bearer old, GET /v0/tokens/own Bearer new"
	if all := strings.Join(got, ", "); all != want {
		t.Errorf("sent %s, want %s", all, want)
	}
}

func TestUseToken_FileChanges_FileHasPrecedence(t *testing.T) {
	client, file := withToken(t, "old", func(http.ResponseWriter, *http.Request) {})
	expect := func(reason, want string) {
		t.Helper()
		if got, err := client.Token(); err != nil || got != want {
			t.Errorf("%s: the token is %q, error %v; want %q", reason, got, err, want)
		}
	}
	expect("at the start", "old")
	for _, token := range []string{"second", "third"} {
		if err := client.UseToken(token); err != nil {
			t.Fatal(err)
		}
		expect("renewed", token)
		expect("renewed", token)
	}
	writeToken(t, file, "third")
	expect("the file has the renewed token", "third")
	writeToken(t, file, "old")
	expect("the file has the old token again", "old")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Token(); err == nil {
		t.Error("no file: want an error")
	}
	if err := client.UseToken("fourth"); err == nil {
		t.Error("no file: using a token succeeded, want an error")
	}
}

func TestToken_Errors(t *testing.T) {
	for _, tc := range []struct {
		reason string
		code   int
		body   string
		kind   Kind
		no     bool
	}{
		{reason: "an earlier release", code: 403, body: `{"detail":"not allowed for the role agent"}`, kind: KindUnauthorized, no: true},
		{reason: "another API", code: 404, body: `{"message":"Not Found"}`, kind: KindRetryable, no: true},
		{reason: "another method", code: 405, body: `{"detail":"accepted here: DELETE"}`, kind: KindPermanent, no: true},
		{reason: "revoked", code: 401, body: `{"detail":"the token is not valid"}`, kind: KindUnauthorized},
		{reason: "not due", code: 409, body: `{"detail":"not due"}`, kind: KindPermanent},
		{reason: "no database", code: 503, body: `{"detail":"the database is unavailable"}`, kind: KindRetryable},
		{reason: "the answer of a proxy", code: 200, body: `<html>`, kind: KindRetryable},
		{reason: "a large answer", code: 200, body: `{` + strings.Repeat(" ", 1<<20) + `}`, kind: KindRetryable},
	} {
		client, _ := withToken(t, "old", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(tc.code)
			_, _ = w.Write([]byte(tc.body))
		})
		_, read := client.OwnToken(t.Context())
		if KindOf(read) != tc.kind || errors.Is(read, ErrNoRenewal) != tc.no {
			t.Errorf("%s: the state is %v of kind %v, want kind %v", tc.reason, read, KindOf(read), tc.kind)
		}
		if _, err := client.RenewToken(t.Context()); KindOf(err) != tc.kind || errors.Is(err, context.Canceled) {
			t.Errorf("%s: the renewal returned %v of kind %v, want kind %v", tc.reason, err, KindOf(err), tc.kind)
		}
	}
	client, _ := withToken(t, "old", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{}`)) })
	if _, err := client.RenewToken(t.Context()); err == nil {
		t.Error("an answer without a token: want an error")
	}
}
