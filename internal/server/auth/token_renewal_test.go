package auth

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// renewalWorld serves the operations on the own token.
type renewalWorld struct {
	*world
	t *testing.T
}

func startRenewals(t *testing.T) *renewalWorld {
	t.Helper()
	options := defaultOptions()
	var tokens *TokenAPI
	options.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		input := &OwnTokenInput{Authorization: r.Header.Get("Authorization")}
		var body any
		var err error
		if r.Method == http.MethodGet {
			var out *OwnTokenOutput
			if out, err = tokens.Own(r.Context(), input); err == nil {
				body = out.Body
			}
		} else {
			var out *RenewTokenOutput
			if out, err = tokens.Renew(r.Context(), input); err == nil {
				body = out.Body
				w.WriteHeader(http.StatusCreated)
			}
		}
		if problem, ok := errors.AsType[*Problem](err); ok {
			problem.write(w)
			return
		}
		_ = json.NewEncoder(w).Encode(body)
	})
	w := &renewalWorld{start(t, options), t}
	tokens = w.Tokens()
	return w
}

// renewable returns the secret of a renewable token that lives nine hours.
func (w *renewalWorld) renewable() string {
	w.t.Helper()
	_, secret := w.token(w.t, RoleAgent, func(n *NewToken) { n.ExpiresAt, n.Renewable = new(w.now().Add(9*time.Hour)), true })
	return secret
}

// own reads the state of a token.
func (w *renewalWorld) own(secret string) (threeport.OwnToken, reply) {
	w.t.Helper()
	got := w.do(w.t, w.plain, http.MethodGet, "/v0/tokens/own", bearer(secret))
	var state threeport.OwnToken
	if got.code == http.StatusOK {
		if err := json.Unmarshal([]byte(got.body), &state); err != nil {
			w.t.Fatal(err)
		}
	}
	return state, got
}

// renew renews a token, with a status.
func (w *renewalWorld) renew(secret string, want int) (threeport.RenewedToken, reply) {
	w.t.Helper()
	got := w.do(w.t, w.plain, http.MethodPost, "/v0/tokens/own/renewals", bearer(secret))
	if got.code != want {
		w.t.Errorf("the renewal is answered with %d %s, want %d", got.code, got.body, want)
	}
	var renewed threeport.RenewedToken
	if got.code == http.StatusCreated {
		if err := json.Unmarshal([]byte(got.body), &renewed); err != nil {
			w.t.Fatal(err)
		}
	}
	return renewed, got
}

// valid expects whether a token authenticates.
func (w *renewalWorld) valid(reason, secret string, want bool) {
	w.t.Helper()
	if got := w.do(w.t, w.plain, http.MethodGet, "/openapi.json", bearer(secret)); (got.code != http.StatusUnauthorized) != want {
		w.t.Errorf("%s: the answer is %d, want valid: %t", reason, got.code, want)
	}
}

func TestRenewal_Due_ReplacesToken(t *testing.T) {
	w := startRenewals(t)
	created, first := w.now(), w.renewable()
	state, _ := w.own(first)
	due := created.Add(6 * time.Hour)
	if state.Name != "a-agent" || !state.Renewable || !state.CreatedAt.Equal(created) || !state.ExpiresAt.Equal(created.Add(9*time.Hour)) || !state.RenewalDueAt.Equal(due) {
		t.Errorf("the state is %+v", state)
	}
	w.clock.advance(6*time.Hour - time.Second)
	if _, early := w.renew(first, http.StatusConflict); !strings.Contains(early.body, "not due before "+due.UTC().Format(time.RFC3339Nano)) {
		t.Errorf("the early renewal is answered with %s", early.body)
	}
	w.clock.advance(time.Second)
	renewed, answer := w.renew(first, http.StatusCreated)
	if !wholeToken.MatchString(renewed.Token) || renewed.Token == first || !renewed.ExpiresAt.Equal(w.now().Add(9*time.Hour)) ||
		!renewed.RenewalDueAt.Equal(w.now().Add(6*time.Hour)) || !renewed.CreatedAt.Equal(created) {
		t.Errorf("renewed: %+v", renewed)
	}
	w.valid("the new token", renewed.Token, true)
	w.valid("the replaced token", first, true)
	w.renew(renewed.Token, http.StatusConflict)
	w.clock.advance(3 * time.Hour) // the end of the first one
	w.valid("the replaced token after its end", first, false)
	w.valid("the new token", renewed.Token, true)
	w.Close()
	var audited []store.AuditRecord
	for _, record := range w.store.audit {
		if record.Code != http.StatusUnauthorized {
			audited = append(audited, record)
		}
	}
	if len(audited) != 1 || audited[0].Principal != "token:a-agent" || audited[0].Path != "/v0/tokens/own/renewals" || audited[0].Code != http.StatusCreated ||
		audited[0].Object != (store.AuditObject{Type: "Token", ID: "1", Name: "a-agent", Role: "agent"}) {
		t.Errorf("audited %+v, want the renewal", audited)
	}
	for _, secret := range []string{first, renewed.Token} {
		if strings.Contains(w.log.String(), secret) {
			t.Error("the log has a token")
		}
	}
	if answer.header.Get("Content-Type") == "" {
		t.Error("the answer has no type")
	}
}

// The replaced token is valid for a day at most.
func TestRenewal_LongLife_PreviousTokenEndsAfterDay(t *testing.T) {
	w := startRenewals(t)
	_, first := w.token(t, RoleAgent, func(n *NewToken) { n.ExpiresAt, n.Renewable = new(w.now().Add(90*24*time.Hour)), true })
	w.clock.advance(60 * 24 * time.Hour)
	renewed, _ := w.renew(first, http.StatusCreated)
	state, _ := w.own(first)
	if want := w.now().Add(maxPreviousTime); !state.ExpiresAt.Equal(want) {
		t.Errorf("the replaced token expires at %v, want %v", state.ExpiresAt, want)
	}
	w.clock.advance(maxPreviousTime - time.Second)
	w.valid("within a day", first, true)
	w.clock.advance(time.Second)
	w.valid("after a day", first, false)
	w.valid("the new one", renewed.Token, true)
}

// An agent that did not get the answer renews again with the token that it has.
func TestRenewal_LostAnswer_PreviousTokenRenewsAgain(t *testing.T) {
	w := startRenewals(t)
	first := w.renewable()
	w.clock.advance(7 * time.Hour)
	lost, _ := w.renew(first, http.StatusCreated)
	at := w.now()
	state, _ := w.own(first)
	if !state.RenewalDueAt.Equal(at.Add(repeatTime)) {
		t.Errorf("the renewal by the replaced token is due at %v, want %v", state.RenewalDueAt, at.Add(repeatTime))
	}
	w.clock.advance(repeatTime - time.Second)
	w.renew(first, http.StatusConflict)
	w.clock.advance(time.Second)
	renewed, _ := w.renew(first, http.StatusCreated)
	w.clock.advance(cacheTime)
	w.valid("the new token", renewed.Token, true)
	w.valid("the lost token", lost.Token, false)
	w.valid("the first token", first, true)
	w.clock.advance(2*time.Hour - repeatTime)
	w.valid("the first token after its end", first, false)
}

func TestRenewal_Revoked_EndsBothTokens(t *testing.T) {
	w := startRenewals(t)
	first := w.renewable()
	w.clock.advance(7 * time.Hour)
	renewed, _ := w.renew(first, http.StatusCreated)
	w.valid("before", first, true)
	w.valid("before", renewed.Token, true)
	if _, err := w.Tokens().Revoke(t.Context(), &RevokeTokenInput{1}); err != nil {
		t.Fatal(err)
	}
	w.valid("the replaced token", first, false)
	w.valid("the new token", renewed.Token, false)
}

func TestRenewal_Refused(t *testing.T) {
	w := startRenewals(t)
	_, fixed := w.token(t, RoleAgent, func(n *NewToken) { n.ExpiresAt = new(w.now().Add(time.Hour)) })
	if _, got := w.renew(fixed, http.StatusConflict); !strings.Contains(got.body, "controlplane cluster add") {
		t.Errorf("a token that is not renewable: %s", got.body)
	}
	if state, _ := w.own(fixed); state.Renewable || state.RenewalDueAt != nil || state.ExpiresAt == nil {
		t.Errorf("the state of a token that is not renewable is %+v", state)
	}
	_, viewer := w.token(t, RoleViewer)
	w.renew(viewer, http.StatusForbidden)
	ctx := t.Context()
	for reason, tc := range map[string]struct {
		authorization string
		want          int
	}{
		"no token":         {"", http.StatusConflict},
		"another scheme":   {"Basic abc", http.StatusConflict},
		"an unknown token": {"Bearer " + newToken(RoleAgent), http.StatusUnauthorized},
	} {
		if _, err := w.Tokens().Own(ctx, &OwnTokenInput{tc.authorization}); statusOf(err) != tc.want {
			t.Errorf("%s: the state is answered with %v, want %d", reason, err, tc.want)
		}
		if _, err := w.Tokens().Renew(ctx, &OwnTokenInput{tc.authorization}); statusOf(err) != tc.want {
			t.Errorf("%s: the renewal is answered with %v, want %d", reason, err, tc.want)
		}
	}
	if records := w.records(); len(records) != 1 || records[0].Code != http.StatusForbidden {
		t.Errorf("audited %+v, want only the refusal of the viewer", records)
	}
}

// Two replicas of an agent renew at the same time.
func TestRenewal_Concurrent_OneGetsConflict(t *testing.T) {
	w := startRenewals(t)
	secret := w.renewable()
	w.clock.advance(7 * time.Hour)
	var other threeport.RenewedToken
	w.store.reading = func() {
		w.store.mu.Lock()
		w.store.reading = nil
		w.store.mu.Unlock()
		other, _ = w.renew(secret, http.StatusCreated)
	}
	_, err := w.Tokens().Renew(context.WithoutCancel(t.Context()), &OwnTokenInput{"Bearer " + secret})
	if statusOf(err) != http.StatusConflict || !strings.Contains(err.Error(), "renewed or revoked meanwhile") {
		t.Errorf("the second renewal returned %v, want a conflict", err)
	}
	w.valid("the token of the other renewal", other.Token, true)
}

func TestRenewal_StoreFails_IsUnavailable(t *testing.T) {
	w := startRenewals(t)
	secret := w.renewable()
	w.store.fail(errors.New("connection refused"))
	_, read := w.Tokens().Own(t.Context(), &OwnTokenInput{"Bearer " + secret})
	_, renewal := w.Tokens().Renew(t.Context(), &OwnTokenInput{"Bearer " + secret})
	for _, err := range []error{read, renewal} {
		if statusOf(err) != http.StatusServiceUnavailable {
			t.Errorf("the error is %v, want an unavailable service", err)
		}
	}
}

func TestRenewalDueAt(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	token := func(life time.Duration, change ...func(*store.Token)) store.Token {
		token := store.Token{CreatedAt: at, ExpiresAt: new(at.Add(life)), Renewal: store.TokenRenewal{Renewable: true}}
		for _, c := range change {
			c(&token)
		}
		return token
	}
	renewedBy := func(previous bool) func(*store.Token) {
		return func(token *store.Token) {
			token.CreatedAt = at.Add(-time.Hour)
			token.Renewal.At, token.Renewal.ByPrevious = &at, previous
		}
	}
	for _, tc := range []struct {
		reason string
		token  store.Token
		want   time.Duration
	}{
		{reason: "90 days", token: token(90 * 24 * time.Hour), want: 60 * 24 * time.Hour},
		{reason: "after a renewal", token: token(90*time.Minute, renewedBy(false)), want: time.Hour},
		{reason: "the previous secret", token: token(90*24*time.Hour, renewedBy(true)), want: 5 * time.Minute},
		{reason: "the previous secret of a short token", token: token(12*time.Second, renewedBy(true)), want: time.Second},
	} {
		if got := renewalDueAt(tc.token); got == nil || !got.Equal(at.Add(tc.want)) {
			t.Errorf("%s: due at %v, want %v", tc.reason, got, at.Add(tc.want))
		}
	}
	for _, fixed := range []store.Token{{CreatedAt: at}, {CreatedAt: at, ExpiresAt: &at}, {CreatedAt: at, Renewal: store.TokenRenewal{Renewable: true}}} {
		if got := renewalDueAt(fixed); got != nil {
			t.Errorf("%+v: due at %v, want never", fixed, got)
		}
	}
}
