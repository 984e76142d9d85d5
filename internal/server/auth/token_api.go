package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
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
	}
}

// tokenObject is a token in an audit record.
func tokenObject(t store.Token) AuditObject {
	return AuditObject{Type: "Token", ID: strconv.FormatInt(t.ID, 10), Name: t.Name, Role: Role(t.Role)}
}

// tokenName is the form of a token's name: one word, since records and tables show it.
var tokenName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,62}$`)

// NewToken requests a token.
type NewToken struct {
	// Name is for people.
	Name string `json:"name" minLength:"1" maxLength:"63" pattern:"^[A-Za-z0-9][A-Za-z0-9._@-]*$"`
	// Role has the permissions of the bearer.
	Role Role `json:"role" enum:"agent,viewer,admin"`
	// ClusterUID is the cluster of an agent's token: the UID of its namespace kube-system. Other roles have none.
	ClusterUID string `json:"clusterUID,omitempty" maxLength:"128"`
	// ClusterName fixes the name of the cluster of an agent's token: the name that its agent reports is ignored.
	ClusterName string `json:"clusterName,omitempty" maxLength:"63" pattern:"^([A-Za-z0-9][A-Za-z0-9._@-]*)?$"`
	// ExpiresAt is the end of its validity; without it, there is none.
	ExpiresAt *time.Time `json:"expiresAt,omitempty"`
}

// check returns a [*store.FieldError] for the first invalid field.
func (n NewToken) check(now time.Time) error {
	role, err := ParseRole(string(n.Role))
	switch {
	case !tokenName.MatchString(n.Name):
		return &store.FieldError{Field: "name", Accepted: "1 to 63 letters, digits and ._@-, beginning with a letter or digit"}
	case err != nil:
		return &store.FieldError{Field: "role", Accepted: "agent, viewer or admin"}
	case role == RoleAgent && !IsClusterUID(n.ClusterUID):
		return &store.FieldError{
			Field: "clusterUID", Accepted: "the UID of the cluster's namespace kube-system, 1 to 128 printable characters, for an agent's token",
		}
	case role != RoleAgent && n.ClusterUID != "":
		return &store.FieldError{Field: "clusterUID", Accepted: "omitted, except for an agent's token"}
	case n.ClusterName != "" && (role != RoleAgent || !tokenName.MatchString(n.ClusterName)):
		return &store.FieldError{
			Field: "clusterName", Accepted: "1 to 63 letters, digits and ._@-, beginning with a letter or digit, for an agent's token only",
		}
	case n.ExpiresAt != nil && !n.ExpiresAt.After(now):
		return &store.FieldError{Field: "expiresAt", Accepted: "a time in the future"}
	case n.ExpiresAt != nil && n.ExpiresAt.Year() > 9999:
		return &store.FieldError{Field: "expiresAt", Accepted: "a year up to 9999"}
	}
	return nil
}

// issue creates a token. The secret is stored nowhere else.
func issue(ctx context.Context, s TokenStore, wanted NewToken, now time.Time) (token store.Token, secret string, err error) {
	if err := wanted.check(now); err != nil {
		return store.Token{}, "", err
	}
	secret = newToken(wanted.Role)
	key := digestOf(secret)
	token, err = s.CreateToken(ctx, store.Token{
		Name: wanted.Name, Role: string(wanted.Role), ClusterUID: wanted.ClusterUID, ClusterName: wanted.ClusterName,
		CreatedAt: now, ExpiresAt: wanted.ExpiresAt,
	}, key[:])
	return token, secret, err
}
