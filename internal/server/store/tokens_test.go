package store

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"
)

func TestTokens_CreateAndFind(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		ctx, expires := t.Context(), fromMicros(moment)
		agent, err := s.CreateToken(ctx, Token{Name: "east", Role: "agent", ClusterUID: "uid", ExpiresAt: &expires}, []byte{0, 1, 255})
		if err != nil || agent.ID == 0 || time.Since(agent.CreatedAt) > time.Minute {
			t.Fatalf("the created token is %+v, error %v", agent, err)
		}
		// The store ignores fields that only it may set.
		admin, err := s.CreateToken(ctx, Token{ID: 7, Name: "east", Role: "admin", RevokedAt: &expires, UsedAt: &expires}, []byte{0, 2})
		if err != nil || admin.ID <= agent.ID || admin.RevokedAt != nil || admin.UsedAt != nil {
			t.Fatalf("the second token is %+v, error %v", admin, err)
		}
		if _, err := s.CreateToken(ctx, Token{Name: "again", Role: "admin"}, []byte{0, 2}); !errors.Is(err, ErrConflict) {
			t.Errorf("an existing hash: %v, want %v", err, ErrConflict)
		}
		for _, want := range []struct {
			hash  []byte
			token Token
		}{{[]byte{0, 1, 255}, agent}, {[]byte{0, 2}, admin}} {
			if got, err := s.TokenByHash(ctx, want.hash); err != nil || !reflect.DeepEqual(got, want.token) {
				t.Errorf("got %+v, %v, want %+v", got, err, want.token)
			}
		}
		if _, err := s.TokenByHash(ctx, []byte{0, 1}); !errors.Is(err, ErrNotFound) {
			t.Errorf("the start of a hash: %v, want %v", err, ErrNotFound)
		}
		if all, err := s.Tokens(ctx); err != nil || !reflect.DeepEqual(all, []Token{agent, admin}) {
			t.Errorf("all are %+v, %v, want no error and %+v", all, err, []Token{agent, admin})
		}
	})
}

func TestTokens_UseAndRevocation(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		ctx, hash := t.Context(), []byte("hash")
		token, err := s.CreateToken(ctx, Token{Name: "east", Role: "viewer"}, hash)
		if err != nil {
			t.Fatal(err)
		}
		later := fromMicros(moment)
		for _, at := range []time.Time{later.Add(-time.Hour), later, later.Add(-time.Minute)} { // replicas write late
			if err := s.RecordTokenUse(ctx, token.ID, at); err != nil {
				t.Error(err)
			}
		}
		if got, err := s.TokenByHash(ctx, hash); err != nil || got.UsedAt == nil || !got.UsedAt.Equal(later) {
			t.Errorf("used at %v, %v, want %v", got.UsedAt, err, later)
		}
		if err := s.CreateSession(ctx, []byte("session"), token.ID, time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		revoked, err := s.RevokeToken(ctx, token.ID)
		if err != nil || revoked.RevokedAt == nil || revoked.Name != "east" {
			t.Errorf("the revoked token is %+v, error %v", revoked, err)
		}
		if _, err := s.SessionToken(ctx, []byte("session"), time.Now()); !errors.Is(err, ErrNotFound) {
			t.Errorf("a session of a revoked token: %v, want %v", err, ErrNotFound)
		}
		if again, err := s.RevokeToken(ctx, token.ID); err != nil || !reflect.DeepEqual(again, revoked) {
			t.Errorf("the second revocation returned %+v, error %v; want %+v", again, err, revoked)
		}
		if _, err := s.RevokeToken(ctx, 1); !errors.Is(err, ErrNotFound) {
			t.Errorf("an unknown token: %v, want %v", err, ErrNotFound)
		}
	})
}

func TestSessions_CreateAndFind(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		ctx, now := t.Context(), fromMicros(moment)
		token, err := s.CreateToken(ctx, Token{Name: "east", Role: "viewer"}, []byte("hash"))
		if err != nil {
			t.Fatal(err)
		}
		for hash, expires := range map[string]time.Time{"long": now.Add(time.Hour), "short": now.Add(time.Minute), "ended": now.Add(time.Hour)} {
			if err := s.CreateSession(ctx, []byte(hash), token.ID, expires); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.CreateSession(ctx, []byte("long"), token.ID, now); !errors.Is(err, ErrConflict) {
			t.Errorf("an existing hash: %v, want %v", err, ErrConflict)
		}
		if err := s.CreateSession(ctx, []byte("orphan"), 1, now); !errors.Is(err, ErrNotFound) {
			t.Errorf("creating a session of an unknown token returned %v, want %v", err, ErrNotFound)
		}
		if err := s.DeleteSession(ctx, []byte("ended")); err != nil {
			t.Error(err)
		}
		at := now.Add(time.Minute)
		check := func(reason string, at time.Time, want map[string]bool) {
			t.Helper()
			for hash, holds := range want {
				got, err := s.SessionToken(ctx, []byte(hash), at)
				if holds && (err != nil || !reflect.DeepEqual(got, token)) || !holds && !errors.Is(err, ErrNotFound) {
					t.Errorf("%s: session %s has the token %+v, error %v", reason, hash, got, err)
				}
			}
		}
		check("before the short one ends", at.Add(-time.Microsecond), map[string]bool{"long": true, "short": true, "ended": false, "none": false})
		check("when it ends", at, map[string]bool{"long": true, "short": false})
		if err := s.PruneSessions(ctx, at); err != nil {
			t.Error(err)
		}
		check("after pruning, asked about before", now, map[string]bool{"long": true, "short": false})
	})
}

// A token that is used for many log-ins keeps the newest sessions only.
func TestCreateSession_ManyOfToken_OldestAreDeleted(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		ctx, expires := t.Context(), time.Now().Add(time.Hour)
		create := func(owner, prefix string, count int) {
			t.Helper()
			token, err := s.CreateToken(ctx, Token{Name: owner, Role: "viewer"}, []byte(owner))
			if err != nil {
				t.Fatal(err)
			}
			for i := range count {
				if err := s.CreateSession(ctx, fmt.Append(nil, prefix, i), token.ID, expires); err != nil {
					t.Fatal(err)
				}
			}
		}
		create("other", "other-", 1)
		create("one", "session-", maxSessions+2)
		for hash, want := range map[string]error{
			"session-0": ErrNotFound, "session-1": ErrNotFound, "session-2": nil, fmt.Sprint("session-", maxSessions+1): nil, "other-0": nil,
		} {
			if _, err := s.SessionToken(ctx, []byte(hash), time.Now()); !errors.Is(err, want) {
				t.Errorf("%s: the error is %v, want %v", hash, err, want)
			}
		}
	})
}

// The token of an SSO session is deleted with it; other tokens stay for the record.
func TestPruneSessions_ExpiredSSOTokens_AreDeleted(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		ctx, now := t.Context(), fromMicros(moment)
		later := now.Add(time.Hour)
		var want []Token
		for i, given := range []Token{
			{Name: "jane", Role: "viewer", Subject: "248", ExpiresAt: &now},
			{Name: "jane", Role: "viewer", Subject: "248", ExpiresAt: &later},
			{Name: "east", Role: "viewer", ExpiresAt: &now},
		} {
			token, err := s.CreateToken(ctx, given, []byte{byte(i)})
			if err != nil || token.Subject != given.Subject {
				t.Fatalf("the stored token is %+v, error %v; want subject %s", token, err, given.Subject)
			}
			if err := s.CreateSession(ctx, []byte{byte(i)}, token.ID, *given.ExpiresAt); err != nil {
				t.Fatal(err)
			}
			if i > 0 {
				want = append(want, token)
			}
		}
		if err := s.PruneSessions(ctx, now); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Tokens(ctx); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	})
}
