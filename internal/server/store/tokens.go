package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Token authenticates its bearer with a role. Only the hash of its secret is stored.
type Token struct {
	ID         int64
	Name, Role string
	// Subject is the OpenID Connect subject of a person, for a token that backs an SSO session; else empty.
	Subject string
	// ClusterUID is the cluster of an agent's token; empty for other roles.
	ClusterUID string
	// ClusterName is the name that the cluster has whatever its agent reports; empty if the token fixes none.
	ClusterName string
	CreatedAt   time.Time
	// ExpiresAt, RevokedAt and UsedAt are nil for never.
	ExpiresAt, RevokedAt, UsedAt *time.Time
	Renewal                      TokenRenewal
}

// TokenRenewal is the state of the renewals of a token. The zero value is that of a token that cannot be renewed.
type TokenRenewal struct {
	// Renewable permits the bearer to replace the secret.
	Renewable bool
	// At is the time of the last renewal; nil for never.
	At *time.Time
	// PreviousExpiresAt is the end of the secret before the last renewal; nil without one.
	PreviousExpiresAt *time.Time
	// ByPrevious reports that the token was read by the hash of the secret before the last renewal.
	ByPrevious bool
}

// SecretExpiresAt is the end of the secret that the token was read by; nil for never.
func (t Token) SecretExpiresAt() *time.Time {
	if t.Renewal.ByPrevious {
		return t.Renewal.PreviousExpiresAt
	}
	return t.ExpiresAt
}

const tokenColumns = "tokens.id, tokens.name, tokens.role, tokens.subject, tokens.clusteruid, tokens.clustername, tokens.createdat, tokens.expiresat, tokens.revokedat, tokens.usedat, " +
	"tokens.renewable, tokens.renewedat, tokens.previousexpiresat"

func scanToken(scan func(...any) error) (Token, error) { return scanTokenAnd(scan) }

// scanTokenAnd scans a token and further columns.
func scanTokenAnd(scan func(...any) error, more ...any) (Token, error) {
	var t Token
	var created int64
	var expires, revoked, used, renewed, previousExpires sql.NullInt64
	err := scan(append([]any{
		&t.ID, &t.Name, &t.Role, &t.Subject, &t.ClusterUID, &t.ClusterName, &created, &expires, &revoked, &used,
		&t.Renewal.Renewable, &renewed, &previousExpires,
	}, more...)...)
	if errors.Is(err, sql.ErrNoRows) {
		return Token{}, ErrNotFound
	} else if err != nil {
		return Token{}, err
	}
	t.CreatedAt = fromMicros(created)
	t.ExpiresAt, t.RevokedAt, t.UsedAt = optionalTime(expires), optionalTime(revoked), optionalTime(used)
	t.Renewal.At, t.Renewal.PreviousExpiresAt = optionalTime(renewed), optionalTime(previousExpires)
	return t, nil
}

// CreateToken stores a token with the hash of its secret, and returns it with its ID and creation time. It returns
// [ErrConflict] if the hash exists.
func (s *Store) CreateToken(ctx context.Context, t Token, hash []byte) (Token, error) {
	t.ID, t.CreatedAt, t.RevokedAt, t.UsedAt = s.ids.next(), fromMicros(now()), nil, nil
	t.Renewal = TokenRenewal{Renewable: t.Renewal.Renewable}
	err := s.exec(ctx, "INSERT INTO tokens (id, name, role, subject, clusteruid, clustername, hash, createdat, expiresat, renewable) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		t.ID, t.Name, t.Role, t.Subject, t.ClusterUID, t.ClusterName, hash, t.CreatedAt.UnixMicro(), optionalMicros(t.ExpiresAt), t.Renewal.Renewable)
	switch {
	case isUniqueViolation(err):
		return Token{}, ErrConflict
	case err != nil:
		return Token{}, fmt.Errorf("create token: %w", err)
	}
	return t, nil
}

// TokenByHash returns the token whose secret, or secret before the last renewal, has this hash; else [ErrNotFound]. The token may be
// expired or revoked.
func (s *Store) TokenByHash(ctx context.Context, hash []byte) (Token, error) {
	return first(ctx, s.reserved, "SELECT "+tokenColumns+", FALSE FROM tokens WHERE hash = ? UNION ALL "+
		"SELECT "+tokenColumns+", TRUE FROM tokens WHERE previoushash = ?", []any{hash, hash}, scanPresented)
}

// scanPresented scans a token, and whether it was read by the hash of its previous secret.
func scanPresented(scan func(...any) error) (Token, error) {
	var byPrevious bool
	t, err := scanTokenAnd(scan, &byPrevious)
	t.Renewal.ByPrevious = byPrevious
	return t, err
}

// NewSecret replaces the secret of a token.
type NewSecret struct {
	Hash          []byte
	At, ExpiresAt time.Time
	// PreviousExpiresAt is the end of the replaced secret.
	PreviousExpiresAt time.Time
}

// RenewToken replaces the secret of a token that was read by the hash of the presented secret. The replaced secret remains valid until
// next.PreviousExpiresAt. If the presented secret is the one before the last renewal, it remains valid as long as before, and the
// secret of that renewal is no longer valid. RenewToken returns [ErrTokenChanged] if the token was renewed or revoked since it was
// read, or is not renewable.
func (s *Store) RenewToken(ctx context.Context, t Token, presented []byte, next NewSecret) (Token, error) {
	var before int64
	if t.Renewal.At != nil {
		before = t.Renewal.At.UnixMicro()
	}
	var renewed Token
	err := s.inTx(ctx, func(ctx context.Context, tx *sql.Tx) (err error) {
		renewed, err = scanToken(tx.QueryRowContext(ctx, s.dialect.rebind(
			"UPDATE tokens SET previoushash = ?, previousexpiresat = CASE WHEN hash = ? THEN ? ELSE previousexpiresat END, "+
				"hash = ?, renewedat = ?, expiresat = ? "+
				"WHERE id = ? AND (hash = ? OR previoushash = ?) AND COALESCE(renewedat, 0) = ? AND renewable AND revokedat IS NULL "+
				"RETURNING "+tokenColumns),
			presented, presented, next.PreviousExpiresAt.UnixMicro(), next.Hash, next.At.UnixMicro(), next.ExpiresAt.UnixMicro(),
			t.ID, presented, presented, before).Scan)
		return err
	})
	switch {
	case errors.Is(err, ErrNotFound):
		return Token{}, ErrTokenChanged
	case err != nil:
		return Token{}, fmt.Errorf("renew token: %w", err)
	}
	return renewed, nil
}

// Tokens returns all tokens, oldest first.
func (s *Store) Tokens(ctx context.Context) ([]Token, error) {
	tokens, err := collect(ctx, s.read, "SELECT "+tokenColumns+" FROM tokens ORDER BY id", nil, scanToken)
	if err != nil {
		return nil, fmt.Errorf("list tokens: %w", err)
	}
	return tokens, nil
}

// RevokeToken revokes a token, ends all its sessions, and returns it; [ErrNotFound] if it does not exist. The time of
// an earlier revocation stays.
func (s *Store) RevokeToken(ctx context.Context, id int64) (t Token, err error) {
	err = s.inTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		t, err = scanToken(tx.QueryRowContext(ctx, s.dialect.rebind(
			"UPDATE tokens SET revokedat = COALESCE(revokedat, ?) WHERE id = ? RETURNING "+tokenColumns), now(), id).Scan)
		if err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, s.dialect.rebind("DELETE FROM sessions WHERE tokenid = ?"), id)
		return err
	})
	return t, err
}

// RecordTokenUse records the last use of a token.
func (s *Store) RecordTokenUse(ctx context.Context, id int64, at time.Time) error {
	return s.exec(ctx, "UPDATE tokens SET usedat = ? WHERE id = ? AND (usedat IS NULL OR usedat < ?)", at.UnixMicro(), id, at.UnixMicro())
}

// maxSessions bounds the sessions of a token.
const maxSessions = 100

// CreateSession stores a session of a token with the hash of its secret, and deletes the oldest sessions beyond maxSessions. It
// returns [ErrConflict] if the hash exists, and [ErrNotFound] if the token does not.
func (s *Store) CreateSession(ctx context.Context, hash []byte, tokenID int64, expires time.Time) error {
	err := s.exec(ctx, "INSERT INTO sessions (hash, tokenid, createdat, expiresat) VALUES (?, ?, ?, ?)",
		hash, tokenID, now(), expires.UnixMicro())
	switch {
	case isUniqueViolation(err):
		return ErrConflict
	case isForeignKey(err):
		return ErrNotFound
	case err != nil:
		return fmt.Errorf("create session: %w", err)
	}
	err = s.exec(ctx, "DELETE FROM sessions WHERE tokenid = ? AND hash <> ? AND hash NOT IN "+
		"(SELECT hash FROM sessions WHERE tokenid = ? ORDER BY createdat DESC LIMIT ?)", tokenID, hash, tokenID, maxSessions)
	if err != nil {
		return fmt.Errorf("delete the oldest sessions: %w", err)
	}
	return nil
}

// SessionToken returns the token of an unexpired session, even if the token is expired or revoked; else [ErrNotFound].
func (s *Store) SessionToken(ctx context.Context, hash []byte, now time.Time) (Token, error) {
	return first(ctx, s.reserved, "SELECT "+tokenColumns+
		" FROM sessions JOIN tokens ON tokens.id = sessions.tokenid WHERE sessions.hash = ? AND sessions.expiresat > ?",
		[]any{hash, now.UnixMicro()}, scanToken)
}

// DeleteSession ends a session. It returns nil if there is none.
func (s *Store) DeleteSession(ctx context.Context, hash []byte) error {
	return s.exec(ctx, "DELETE FROM sessions WHERE hash = ?", hash)
}

// PruneSessions deletes expired sessions, and expired tokens of SSO sessions. No session outlives its token.
func (s *Store) PruneSessions(ctx context.Context, now time.Time) error {
	if err := s.exec(ctx, "DELETE FROM sessions WHERE expiresat <= ?", now.UnixMicro()); err != nil {
		return err
	}
	return s.exec(ctx, "DELETE FROM tokens WHERE subject <> '' AND expiresat <= ?", now.UnixMicro())
}
