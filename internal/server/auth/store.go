package auth

import (
	"context"
	"time"

	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// TokenStore stores tokens by the SHA-256 hash of their secret, for administrators.
type TokenStore interface {
	CreateToken(ctx context.Context, token store.Token, hash []byte) (store.Token, error)
	Tokens(ctx context.Context) ([]store.Token, error)
	// RevokeToken returns [store.ErrNotFound] if there is none.
	RevokeToken(ctx context.Context, id int64) (store.Token, error)
}

// BearerStore has the tokens for requests of their bearers.
type BearerStore interface {
	// TokenByHash returns [store.ErrNotFound] if there is none. It returns revoked and expired tokens, and a renewed token also by its
	// previous hash.
	TokenByHash(ctx context.Context, hash []byte) (store.Token, error)
	RecordTokenUse(ctx context.Context, id int64, at time.Time) error
	// RenewToken returns [store.ErrTokenChanged] if the token was renewed or revoked since it was read.
	RenewToken(ctx context.Context, token store.Token, presented []byte, next store.NewSecret) (store.Token, error)
}

// SessionStore stores browser sessions by the SHA-256 hash of their cookie.
type SessionStore interface {
	CreateSession(ctx context.Context, hash []byte, tokenID int64, expires time.Time) error
	// SessionToken returns the token that opened the session; [store.ErrNotFound] if the session has ended.
	SessionToken(ctx context.Context, hash []byte, now time.Time) (store.Token, error)
	DeleteSession(ctx context.Context, hash []byte) error
	// PruneSessions deletes expired sessions, and expired tokens of SSO sessions.
	PruneSessions(ctx context.Context, now time.Time) error
}

// AuditStore stores the audit log.
type AuditStore interface {
	AppendAudit(ctx context.Context, record store.AuditRecord) error
	AuditRecords(ctx context.Context, cursor string, size int) (threeport.List[store.AuditRecord], error)
}

// Store is the storage of an [Authenticator].
type Store interface {
	TokenStore
	BearerStore
	SessionStore
	AuditStore
}
