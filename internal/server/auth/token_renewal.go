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

const (
	// maxPreviousTime bounds how long the replaced secret of a token is valid after a renewal. An agent that could not store the new
	// secret is not locked out meanwhile.
	maxPreviousTime = 24 * time.Hour
	// repeatTime is the time from a renewal until the bearer of the replaced secret may renew again, because the answer was lost. It is
	// shorter for tokens that live less than an hour.
	repeatTime = 5 * time.Minute
)

// Inputs and outputs of the operations on the token of a request, for huma.
type (
	// OwnTokenInput has the token in its header.
	OwnTokenInput struct {
		Authorization string `header:"Authorization" hidden:"true"`
	}
	// OwnTokenOutput is the state of the token.
	OwnTokenOutput struct {
		CacheControl string `header:"Cache-Control"`
		Body         threeport.OwnToken
	}
	// RenewTokenOutput is the token with its new secret.
	RenewTokenOutput struct {
		CacheControl string `header:"Cache-Control"`
		Body         threeport.RenewedToken
	}
)

// Own returns the state of the token that the request has: GET /v0/tokens/own.
func (t *TokenAPI) Own(ctx context.Context, input *OwnTokenInput) (*OwnTokenOutput, error) {
	token, _, err := t.presented(ctx, input.Authorization)
	if err != nil {
		return nil, t.access.problemFor("read token", err)
	}
	return &OwnTokenOutput{CacheControl: "no-store", Body: ownToken(token)}, nil
}

// Renew replaces the secret of the token that the request has, and starts its lifetime again: POST /v0/tokens/own/renewals, 201.
func (t *TokenAPI) Renew(ctx context.Context, input *OwnTokenInput) (*RenewTokenOutput, error) {
	token, presented, err := t.presented(ctx, input.Authorization)
	if err != nil {
		return nil, t.access.problemFor("read token", err)
	}
	SetAuditObject(ctx, tokenObject(token))
	now := t.access.now()
	if err := checkRenewal(token, now); err != nil {
		return nil, err
	}
	secret := newToken(Role(token.Role))
	key := digestOf(secret)
	next := store.NewSecret{Hash: key[:], At: now, ExpiresAt: now.Add(lifetime(token)), PreviousExpiresAt: now.Add(maxPreviousTime)}
	if token.ExpiresAt.Before(next.PreviousExpiresAt) {
		next.PreviousExpiresAt = *token.ExpiresAt
	}
	renewed, err := t.access.store.RenewToken(ctx, token, presented[:], next)
	if errors.Is(err, store.ErrTokenChanged) {
		return nil, newProblem(http.StatusConflict, err.Error()+": read its state again")
	}
	if err != nil {
		return nil, t.access.problemFor("renew token", err)
	}
	t.access.cache.invalidateToken(renewed.ID)
	t.access.log.Info("Token renewed", "token", renewed.ID, "name", renewed.Name, "expires", renewed.ExpiresAt)
	return &RenewTokenOutput{CacheControl: "no-store", Body: threeport.RenewedToken{OwnToken: ownToken(renewed), Token: secret}}, nil
}

// presented returns the token of an Authorization header and the hash of its secret. It reads the store, because a cached row may be
// older than the last renewal.
func (t *TokenAPI) presented(ctx context.Context, authorization string) (store.Token, digest, error) {
	secret, isBearer := bearerSecret(authorization)
	if !isBearer || !isToken(secret) {
		return store.Token{}, digest{}, newProblem(http.StatusConflict, "the request has no bearer token: only tokens can be renewed")
	}
	key := digestOf(secret)
	token, err := t.access.store.TokenByHash(ctx, key[:])
	switch {
	case errors.Is(err, store.ErrNotFound):
		return store.Token{}, digest{}, invalidToken()
	case err != nil:
		return store.Token{}, digest{}, err
	case !isUsable(token, t.access.now()):
		return store.Token{}, digest{}, invalidToken()
	}
	return token, key, nil
}

// checkRenewal refuses the renewal of a token that is not renewable, or not due.
func checkRenewal(token store.Token, now time.Time) error {
	due := renewalDueAt(token)
	switch {
	case due == nil:
		return newProblem(http.StatusConflict,
			"the token is not renewable: create another one with `controlplane cluster add`, or with `controlplane token create --renewable`")
	case now.Before(*due):
		return newProblem(http.StatusConflict, fmt.Sprintf("the renewal of the token is not due before %s", due.UTC().Format(time.RFC3339Nano)))
	}
	return nil
}

// renewalDueAt returns the earliest time of a renewal by the presented secret: after two thirds of its life. A secret that was replaced
// already may renew again after repeatTime. It is nil if the token is not renewable.
func renewalDueAt(token store.Token) *time.Time {
	if !token.Renewal.Renewable || token.ExpiresAt == nil {
		return nil
	}
	life := lifetime(token)
	if token.Renewal.ByPrevious {
		return new(secretCreatedAt(token).Add(min(repeatTime, life/12)))
	}
	return new(token.ExpiresAt.Add(-life / 3))
}

// lifetime is the time from the creation of a secret to its end. The token has an end.
func lifetime(token store.Token) time.Duration { return token.ExpiresAt.Sub(secretCreatedAt(token)) }

// secretCreatedAt is the time of the last renewal, or else of the creation of the token.
func secretCreatedAt(token store.Token) time.Time {
	if token.Renewal.At != nil {
		return *token.Renewal.At
	}
	return token.CreatedAt
}

func ownToken(token store.Token) threeport.OwnToken {
	return threeport.OwnToken{
		Name: token.Name, CreatedAt: token.CreatedAt, ExpiresAt: token.SecretExpiresAt(),
		Renewable: token.Renewal.Renewable, RenewalDueAt: renewalDueAt(token),
	}
}
