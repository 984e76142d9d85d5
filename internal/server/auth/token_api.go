package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// Token is a token without its secret.
type Token struct {
	ID threeport.ID `json:"id"`
	// Name is for people.
	Name string `json:"name"`
	// Subject is the OpenID Connect subject of a person who logged in by single sign-on. Such a token has no secret: it
	// backs one session, and its revocation ends that.
	Subject string `json:"subject,omitempty"`
	// Role has the permissions of the bearer.
	Role Role `json:"role" enum:"agent,viewer,admin"`
	// ClusterUID is the cluster of an agent's token.
	ClusterUID string `json:"clusterUID,omitempty"`
	// ClusterName is the name that the cluster has whatever its agent reports, if the token fixes it.
	ClusterName string    `json:"clusterName,omitempty"`
	CreatedAt   time.Time `json:"createdAt"`
	// ExpiresAt is the end of its validity; without it, there is none.
	ExpiresAt *time.Time `json:"expiresAt,omitempty"`
	// RevokedAt is the time of revocation, if it was revoked.
	RevokedAt *time.Time `json:"revokedAt,omitempty"`
	// UsedAt is the time of the last use, to a minute.
	UsedAt *time.Time `json:"usedAt,omitempty"`
	// Renewable permits the bearer to replace the token before its end.
	Renewable bool `json:"renewable,omitempty"`
	// RenewedAt is the time of the last renewal, if there was one.
	RenewedAt *time.Time `json:"renewedAt,omitempty"`
}

// CreatedToken is a new token.
type CreatedToken struct {
	Token
	// Secret is sent by the bearer. Only this answer has it.
	Secret string `json:"token"`
}

// Inputs and outputs of [TokenAPI] for huma.
type (
	// CreateTokenInput requests a token.
	CreateTokenInput struct{ Body NewToken }
	// CreateTokenOutput is the new token.
	CreateTokenOutput struct {
		CacheControl string `header:"Cache-Control"`
		Body         CreatedToken
	}
	// ListTokensOutput is all tokens, including expired and revoked ones.
	ListTokensOutput struct{ Body threeport.List[Token] }
	// RevokeTokenInput names a token.
	RevokeTokenInput struct {
		ID int64 `path:"id" minimum:"1"`
	}
	// RevokeTokenOutput is the revoked token.
	RevokeTokenOutput struct{ Body Token }
)

// TokenAPI has the operations below /v0/tokens. The rules decide who may call them. Their errors are [*Problem].
type TokenAPI struct{ access *Authenticator }

// Tokens returns the operations below /v0/tokens.
func (a *Authenticator) Tokens() *TokenAPI { return &TokenAPI{a} }

// Create creates a token: POST /v0/tokens, 201.
func (t *TokenAPI) Create(ctx context.Context, input *CreateTokenInput) (*CreateTokenOutput, error) {
	created, secret, err := issue(ctx, t.access.store, input.Body, t.access.now())
	if err != nil {
		return nil, t.access.problemFor("create token", err)
	}
	SetAuditObject(ctx, tokenObject(created))
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

// Revoke revokes a token and ends all its sessions: DELETE /v0/tokens/{id}. The time of an earlier revocation stays.
func (t *TokenAPI) Revoke(ctx context.Context, input *RevokeTokenInput) (*RevokeTokenOutput, error) {
	revoked, err := t.access.store.RevokeToken(ctx, input.ID)
	if err != nil {
		return nil, t.access.problemFor("revoke token", err)
	}
	SetAuditObject(ctx, tokenObject(revoked))
	t.access.cache.invalidateToken(revoked.ID)
	return &RevokeTokenOutput{wireToken(revoked)}, nil
}

// problemFor converts an error to a problem. It logs errors that the request did not cause.
func (a *Authenticator) problemFor(doing string, err error) error {
	if problem, ok := errors.AsType[*Problem](err); ok {
		return problem
	}
	if field, ok := errors.AsType[*store.FieldError](err); ok {
		return invalid(field.Error())
	}
	switch {
	case errors.Is(err, store.ErrNotFound):
		return newProblem(http.StatusNotFound, "there is no such token")
	case errors.Is(err, context.Canceled):
		return unavailable(fmt.Errorf("%s: %w", doing, err))
	}
	a.log.Error("Request failed", "doing", doing, "error", err)
	return unavailable(fmt.Errorf("%s: %w", doing, err))
}

func wireToken(t store.Token) Token {
	return Token{
		ID: threeport.ID(t.ID), Name: t.Name, Subject: t.Subject, Role: Role(t.Role), ClusterUID: t.ClusterUID, ClusterName: t.ClusterName,
		CreatedAt: t.CreatedAt, ExpiresAt: t.ExpiresAt, RevokedAt: t.RevokedAt, UsedAt: t.UsedAt,
		Renewable: t.Renewal.Renewable, RenewedAt: t.Renewal.At,
	}
}

// tokenObject is a token in an audit record.
func tokenObject(t store.Token) AuditObject {
	return AuditObject{Type: "Token", ID: strconv.FormatInt(t.ID, 10), Name: t.Name, Role: Role(t.Role)}
}
