package store

import (
	"context"
	"fmt"
	"time"
)

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
