package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// Token is a token as it is shown: all but its secret.
type Token struct {
	ID threeport.ID `json:"id"`
	// Name says whose it is, to people.
	Name string `json:"name"`
	// Subject is who logged in by single sign-on, as the identity provider knows them for good. Such a token has no secret:
	// it stands for one log-in, and to revoke it ends that.
	Subject string `json:"subject,omitempty"`
	// Role is what its bearer may do.
	Role Role `json:"role" enum:"agent,viewer,admin"`
	// ClusterUID is the one cluster that an agent's token is good for.
	ClusterUID string    `json:"clusterUID,omitempty"`
	CreatedAt  time.Time `json:"createdAt"`
	// ExpiresAt is when it ends; without it, never.
	ExpiresAt *time.Time `json:"expiresAt,omitempty"`
	// RevokedAt is when it was revoked; none if it was not.
	RevokedAt *time.Time `json:"revokedAt,omitempty"`
	// UsedAt is when it was used last, to a minute.
	UsedAt *time.Time `json:"usedAt,omitempty"`
}

// CreatedToken is a token that was just made.
type CreatedToken struct {
	Token
	// Secret is what its bearer sends. It is in this answer only.
	Secret string `json:"token"`
}

// The inputs and outputs of [Tokens], as huma wants them.
type (
	// CreateTokenInput asks for a token.
	CreateTokenInput struct{ Body NewToken }
	// CreateTokenOutput has it.
	CreateTokenOutput struct {
		CacheControl string `header:"Cache-Control"`
		Body         CreatedToken
	}
	// ListTokensOutput has all tokens, those that have ended too.
	ListTokensOutput struct{ Body threeport.List[Token] }
	// RevokeTokenInput names a token.
	RevokeTokenInput struct {
		ID int64 `path:"id" minimum:"1"`
	}
	// RevokeTokenOutput has the token as it is now.
	RevokeTokenOutput struct{ Body Token }
)

// Tokens are the operations below /v0/tokens. Who may call them the table of rules says. Their errors are [*Problem].
type TokenAPI struct{ access *Authenticator }

// Tokens returns the operations below /v0/tokens.
func (a *Authenticator) Tokens() *TokenAPI { return &TokenAPI{a} }

// Create makes a token: POST /v0/tokens, 201.
func (t *TokenAPI) Create(ctx context.Context, input *CreateTokenInput) (*CreateTokenOutput, error) {
	created, secret, err := issue(ctx, t.access.store, input.Body, t.access.now())
	if err != nil {
		return nil, t.access.problemFor("create token", err)
	}
	return &CreateTokenOutput{CacheControl: "no-store", Body: CreatedToken{wireToken(created), secret}}, nil
}

// List returns all tokens: GET /v0/tokens.
func (t *TokenAPI) List(ctx context.Context, _ *struct{}) (*ListTokensOutput, error) {
	stored, err := t.access.store.Tokens(ctx)
	if err != nil {
		return nil, t.access.problemFor("list tokens", err)
	}
	items := make([]Token, len(stored))
	for i, token := range stored {
		items[i] = wireToken(token)
	}
	return &ListTokensOutput{threeport.List[Token]{Items: items, Total: int64(len(items))}}, nil
}

// Revoke ends a token, and all sessions that were opened with it: DELETE /v0/tokens/{id}. A token that is revoked
// already stays so.
func (t *TokenAPI) Revoke(ctx context.Context, input *RevokeTokenInput) (*RevokeTokenOutput, error) {
	revoked, err := t.access.store.RevokeToken(ctx, input.ID)
	if err != nil {
		return nil, t.access.problemFor("revoke token", err)
	}
	t.access.cache.invalidateToken(revoked.ID)
	return &RevokeTokenOutput{wireToken(revoked)}, nil
}

// failed makes a problem of an error. What it cannot blame on the request is logged.
func (a *Authenticator) problemFor(doing string, err error) error {
	if problem, ok := errors.AsType[*Problem](err); ok {
		return problem
	}
	switch {
	case errors.Is(err, store.ErrNotFound):
		return newProblem(http.StatusNotFound, "there is no such token")
	case errors.Is(err, store.ErrCursor):
		return invalid("cursor: accepted is the next of an earlier answer")
	case errors.Is(err, context.Canceled):
		return unavailable(fmt.Errorf("%s: %w", doing, err))
	}
	a.log.Error("Request failed", "doing", doing, "error", err)
	return unavailable(fmt.Errorf("%s: %w", doing, err))
}

func wireToken(t store.Token) Token {
	return Token{
		ID: threeport.ID(t.ID), Name: t.Name, Subject: t.Subject, Role: Role(t.Role), ClusterUID: t.ClusterUID,
		CreatedAt: t.CreatedAt, ExpiresAt: t.ExpiresAt, RevokedAt: t.RevokedAt, UsedAt: t.UsedAt,
	}
}
