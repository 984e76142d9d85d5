package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Token lets its bearer in, in a role. The secret itself is not kept, only its hash.
type Token struct {
	ID         int64
	Name, Role string
	// Subject is the person who logged in, of a token that stands for a log-in and that nobody has; else empty.
	Subject string
	// ClusterUID is the cluster that an agent's token is for; empty if it is for none or any.
	ClusterUID string
	CreatedAt  time.Time
	// ExpiresAt, RevokedAt and UsedAt are nil for never.
	ExpiresAt, RevokedAt, UsedAt *time.Time
}

const tokenColumns = "tokens.id, tokens.name, tokens.role, tokens.subject, tokens.clusteruid, tokens.createdat, tokens.expiresat, tokens.revokedat, tokens.usedat" //nolint:gosec // names of columns

func scanToken(scan func(...any) error) (Token, error) {
	var t Token
	var created int64
	var expires, revoked, used sql.NullInt64
	err := scan(&t.ID, &t.Name, &t.Role, &t.Subject, &t.ClusterUID, &created, &expires, &revoked, &used)
	if errors.Is(err, sql.ErrNoRows) {
		return Token{}, ErrNotFound
	} else if err != nil {
		return Token{}, err
	}
	t.CreatedAt = fromMicros(created)
	t.ExpiresAt, t.RevokedAt, t.UsedAt = optionalTime(expires), optionalTime(revoked), optionalTime(used)
	return t, nil
}

// CreateToken keeps a token by the hash of its secret, and returns it with its ID and time of creation. The error is
// [ErrConflict] if there is one of this hash.
func (s *Store) CreateToken(ctx context.Context, t Token, hash []byte) (Token, error) {
	t.ID, t.CreatedAt, t.RevokedAt, t.UsedAt = s.ids.next(), fromMicros(now()), nil, nil
	err := s.exec(ctx, "INSERT INTO tokens (id, name, role, subject, clusteruid, hash, createdat, expiresat) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
		t.ID, t.Name, t.Role, t.Subject, t.ClusterUID, hash, t.CreatedAt.UnixMicro(), optionalMicros(t.ExpiresAt))
	switch {
	case isUniqueViolation(err):
		return Token{}, ErrConflict
	case err != nil:
		return Token{}, fmt.Errorf("create token: %w", err)
	}
	return t, nil
}

// TokenByHash returns the token of this hash, whether it still holds or not; else [ErrNotFound].
func (s *Store) TokenByHash(ctx context.Context, hash []byte) (Token, error) {
	return first(ctx, s, "SELECT "+tokenColumns+" FROM tokens WHERE hash = ?", []any{hash}, scanToken)
}

// Tokens returns all tokens, the oldest first.
func (s *Store) Tokens(ctx context.Context) ([]Token, error) {
	tokens, err := collect(ctx, s, "SELECT "+tokenColumns+" FROM tokens ORDER BY id", nil, scanToken)
	if err != nil {
		return nil, fmt.Errorf("list tokens: %w", err)
	}
	return tokens, nil
}

// RevokeToken ends a token, with all its sessions, and returns it; [ErrNotFound] if there is none. One that was revoked
// stays as it was.
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

// TouchToken notes when a token was used last.
func (s *Store) RecordTokenUse(ctx context.Context, id int64, at time.Time) error {
	return s.exec(ctx, "UPDATE tokens SET usedat = ? WHERE id = ? AND (usedat IS NULL OR usedat < ?)", at.UnixMicro(), id, at.UnixMicro())
}

// CreateSession keeps a session of a token, by the hash of its secret, until a time.
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
	return nil
}

// SessionToken returns the token of a session that has not expired, whether the token itself still holds or not; else
// [ErrNotFound].
func (s *Store) SessionToken(ctx context.Context, hash []byte, now time.Time) (Token, error) {
	return first(ctx, s, "SELECT "+tokenColumns+
		" FROM sessions JOIN tokens ON tokens.id = sessions.tokenid WHERE sessions.hash = ? AND sessions.expiresat > ?",
		[]any{hash, now.UnixMicro()}, scanToken)
}

// DeleteSession ends a session, if there is one.
func (s *Store) DeleteSession(ctx context.Context, hash []byte) error {
	return s.exec(ctx, "DELETE FROM sessions WHERE hash = ?", hash)
}

// PruneSessions removes those that have expired, and tokens that stood for log-ins. A session never outlives its token.
func (s *Store) PruneSessions(ctx context.Context, now time.Time) error {
	if err := s.exec(ctx, "DELETE FROM sessions WHERE expiresat <= ?", now.UnixMicro()); err != nil {
		return err
	}
	return s.exec(ctx, "DELETE FROM tokens WHERE subject <> '' AND expiresat <= ?", now.UnixMicro())
}
