package threeport

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

const (
	ownTokenPath = "/v0/tokens/own" //nolint:gosec // a path
	renewalsPath = ownTokenPath + "/renewals"
)

// ErrNoRenewal is in the chain of the error if the control plane does not renew tokens. It is of an earlier release, or refuses the role
// of the token.
var ErrNoRenewal = errors.New("the control plane does not renew tokens")

// OwnToken is the state of the token that a request has.
type OwnToken struct {
	// Name is for people.
	Name      string    `json:"name"`
	CreatedAt time.Time `json:"createdAt"`
	// ExpiresAt is the end of its validity; without it, there is none. A token that was replaced is valid for another day at most.
	ExpiresAt *time.Time `json:"expiresAt,omitempty"`
	// Renewable permits the bearer to replace the token before its end.
	Renewable bool `json:"renewable"`
	// RenewalDueAt is the earliest time of a renewal; absent if the token is not renewable.
	RenewalDueAt *time.Time `json:"renewalDueAt,omitempty"`
}

// RenewedToken is a token with its new secret.
type RenewedToken struct {
	OwnToken
	// Token replaces the token of the request. Only this answer has it.
	Token string `json:"token"`
}

// OwnToken reads the state of the client's token. The error is [ErrNoRenewal] if the control plane has none.
func (c *Client) OwnToken(ctx context.Context) (OwnToken, error) {
	q := request{op: "read the own token", method: http.MethodGet, path: ownTokenPath, objects: 1, maxAnswer: 64 << 10}
	state, err := ask[OwnToken](ctx, c, q, nil)
	// An earlier release answers an agent with 403 on paths that it does not know.
	switch StatusOf(err) {
	case http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed:
		return OwnToken{}, fmt.Errorf("%w: %w", ErrNoRenewal, err)
	}
	return state, err
}

// RenewToken replaces the client's token. The client sends the old one until [Client.UseToken]. A [StatusOf] of 409 means that the renewal
// is not due. If the answer is lost, the old token can be renewed again later: see [OwnToken.RenewalDueAt].
func (c *Client) RenewToken(ctx context.Context) (RenewedToken, error) {
	q := request{op: "renew the token", method: http.MethodPost, path: renewalsPath, objects: 1, maxAnswer: 64 << 10}
	renewed, err := ask[RenewedToken](ctx, c, q, nil)
	if err == nil && renewed.Token == "" {
		return RenewedToken{}, malformed(q, http.StatusCreated)
	}
	return renewed, err
}

// Token returns the bearer token of the next request; empty for none.
func (c *Client) Token() (string, error) { return c.token.read() }

// UseToken sends a token instead of that of [Config.TokenFile], until the file has another one than now.
func (c *Client) UseToken(token string) error { return c.token.use(token) }
