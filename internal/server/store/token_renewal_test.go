package store

import (
	"errors"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// renewable creates a renewable token with a hash, which expires an hour after moment.
func renewable(t *testing.T, s *Store, hash string) Token {
	t.Helper()
	expires := fromMicros(moment).Add(time.Hour)
	token, err := s.CreateToken(t.Context(), Token{
		Name: "east", Role: "agent", ClusterUID: "uid", ExpiresAt: &expires, Renewal: TokenRenewal{Renewable: true},
	}, []byte(hash))
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// secretAt is a new secret that is made some minutes after moment.
func secretAt(hash string, minutes int) NewSecret {
	at := fromMicros(moment).Add(time.Duration(minutes) * time.Minute)
	return NewSecret{Hash: []byte(hash), At: at, ExpiresAt: at.Add(time.Hour), PreviousExpiresAt: at.Add(10 * time.Minute)}
}

// byHash reads a token by a hash.
func byHash(t *testing.T, s *Store, hash string) Token {
	t.Helper()
	token, err := s.TokenByHash(t.Context(), []byte(hash))
	if err != nil {
		t.Fatalf("%s: %v", hash, err)
	}
	return token
}

func TestRenewToken_PreviousSecretStaysValid(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		ctx := t.Context()
		first := renewable(t, s, "first")
		renewed, err := s.RenewToken(ctx, first, []byte("first"), secretAt("second", 40))
		if err != nil {
			t.Fatal(err)
		}
		want := first
		next := secretAt("second", 40)
		want.ExpiresAt = &next.ExpiresAt
		want.Renewal = TokenRenewal{Renewable: true, At: &next.At, PreviousExpiresAt: &next.PreviousExpiresAt}
		if !reflect.DeepEqual(renewed, want) {
			t.Errorf("the renewed token is %+v, want %+v", renewed, want)
		}
		if got := byHash(t, s, "second"); !reflect.DeepEqual(got, want) || !got.SecretExpiresAt().Equal(next.ExpiresAt) {
			t.Errorf("by the new hash: %+v, want %+v", got, want)
		}
		previous := byHash(t, s, "first")
		want.Renewal.ByPrevious = true
		if !reflect.DeepEqual(previous, want) || !previous.SecretExpiresAt().Equal(next.PreviousExpiresAt) {
			t.Errorf("by the replaced hash: %+v, want %+v", previous, want)
		}

		// The answer was lost: the previous secret replaces the second one, and ends when it would have.
		again, err := s.RenewToken(ctx, previous, []byte("first"), secretAt("third", 46))
		if err != nil || !again.Renewal.PreviousExpiresAt.Equal(next.PreviousExpiresAt) || !again.Renewal.At.Equal(secretAt("", 46).At) {
			t.Errorf("renewed by the replaced secret: %+v, error %v", again, err)
		}
		if _, err := s.TokenByHash(ctx, []byte("second")); !errors.Is(err, ErrNotFound) {
			t.Errorf("the lost secret: %v, want %v", err, ErrNotFound)
		}
		if got := byHash(t, s, "first"); !got.Renewal.ByPrevious || got.ID != first.ID {
			t.Errorf("the first secret has %+v", got)
		}

		// The next renewal ends the first one.
		if _, err := s.RenewToken(ctx, byHash(t, s, "third"), []byte("third"), secretAt("fourth", 90)); err != nil {
			t.Error(err)
		}
		if _, err := s.TokenByHash(ctx, []byte("first")); !errors.Is(err, ErrNotFound) {
			t.Errorf("the first secret after two renewals: %v, want %v", err, ErrNotFound)
		}
		if _, err := s.RevokeToken(ctx, first.ID); err != nil {
			t.Error(err)
		}
		for _, hash := range []string{"third", "fourth"} {
			if got := byHash(t, s, hash); got.RevokedAt == nil {
				t.Errorf("%s after the revocation: %+v, want revoked", hash, got)
			}
		}
	})
}

func TestRenewToken_ChangedToken_IsRefused(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		ctx := t.Context()
		fixed, err := s.CreateToken(ctx, Token{Name: "fixed", Role: "agent", ClusterUID: "uid"}, []byte("fixed"))
		if err != nil {
			t.Fatal(err)
		}
		revoked := renewable(t, s, "revoked")
		if _, err := s.RevokeToken(ctx, revoked.ID); err != nil {
			t.Fatal(err)
		}
		renewed := renewable(t, s, "renewed")
		if _, err := s.RenewToken(ctx, renewed, []byte("renewed"), secretAt("next", 40)); err != nil {
			t.Fatal(err)
		}
		for _, tc := range []struct {
			reason string
			token  Token
			hash   string
		}{
			{reason: "not renewable", token: fixed, hash: "fixed"},
			{reason: "revoked", token: revoked, hash: "revoked"},
			{reason: "renewed since it was read", token: renewed, hash: "renewed"},
			{reason: "another secret", token: byHash(t, s, "next"), hash: "unknown"},
			{reason: "an unknown token", token: Token{ID: 1}, hash: "renewed"},
		} {
			if got, err := s.RenewToken(ctx, tc.token, []byte(tc.hash), secretAt("other", 50)); !errors.Is(err, ErrTokenChanged) {
				t.Errorf("%s: %+v, error %v, want %v", tc.reason, got, err, ErrTokenChanged)
			}
		}
	})
}

func TestRenewToken_Concurrent_OneWins(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		token := renewable(t, s, "first")
		const bearers = 8
		var won atomic.Int32
		var group sync.WaitGroup
		for i := range bearers {
			group.Go(func() {
				_, err := s.RenewToken(t.Context(), token, []byte("first"), secretAt(string(rune('a'+i)), 40))
				switch {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, ErrTokenChanged):
					t.Error(err)
				}
			})
		}
		group.Wait()
		if won.Load() != 1 {
			t.Errorf("%d of %d renewals succeeded, want 1", won.Load(), bearers)
		}
	})
}
