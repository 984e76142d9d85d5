package openid

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// leeway is how much the provider's clock may be behind: by so much an ID token counts longer than it says.
const leeway = time.Minute

// noKeys is how the error of a verification begins if the provider's keys were not to be had. The library wraps nothing that
// would tell it from that of a bad signature.
const keyFetchErrorPrefix = "failed to verify signature: fetching keys "

// ErrRefused is the error if the provider answered, but not so that somebody is logged in.
var ErrRefused = errors.New("the identity provider's answer proves nobody's identity")

// Person is who logged in.
type Person struct {
	// Subject is who it is for good, at this provider: any text, as it is in the ID token.
	Subject string
	// Name is for people, and may change; empty if the provider tells none.
	Name   string
	Groups []string
}

// Person is who has the code that the provider gave a browser at the end of a flow. The error is [ErrRefused] if that is
// nobody; else the provider did not answer, or not as it should.
func (p *Provider) Person(ctx context.Context, f Flow, code string) (Person, error) {
	found, err := p.discovered(ctx)
	if err != nil {
		return Person{}, err
	}
	raw, err := p.redeem(ctx, found, f, code)
	if err != nil {
		return Person{}, err
	}
	token, err := found.Verifier(&oidc.Config{
		ClientID: p.config.ClientID, Now: func() time.Time { return p.now().Add(-leeway) },
	}).Verify(ctx, raw)
	switch {
	case err != nil && strings.HasPrefix(err.Error(), keyFetchErrorPrefix):
		return Person{}, fmt.Errorf("verify ID token: %w", truncateError(err))
	case err != nil:
		return Person{}, fmt.Errorf("%w: %w", ErrRefused, truncateError(err))
	case !constantTimeEqual(token.Nonce, f.nonce()):
		return Person{}, fmt.Errorf("%w: the ID token is of another log-in", ErrRefused)
	}
	return p.person(token)
}

// redeem changes a code for an ID token. The error never has the code, the secret or a token.
func (p *Provider) redeem(ctx context.Context, found *metadata, f Flow, code string) (raw string, err error) {
	secret, err := p.secret()
	if err != nil {
		return "", err
	}
	token, err := p.oauth2(found, secret).Exchange(oidc.ClientContext(ctx, p.client), code, oauth2.VerifierOption(f.verifier()))
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		err = fmt.Errorf("redeem code: the identity provider answers %s, %.100q", refused.Response.Status, refused.ErrorCode)
		// RFC 6749, section 5.2: other codes are this client's faults, and another status is the provider's.
		if refused.ErrorCode == "invalid_grant" && refused.Response.StatusCode == http.StatusBadRequest {
			err = fmt.Errorf("%w: %w", ErrRefused, err)
		}
		return "", err
	}
	if err != nil {
		return "", fmt.Errorf("redeem code: %w", truncateError(err))
	}
	raw, ok := token.Extra("id_token").(string)
	if !ok {
		return "", fmt.Errorf("%w: there is no ID token in it", ErrRefused)
	}
	return raw, nil
}

// person reads the claims of a token that was verified.
func (p *Provider) person(token *oidc.IDToken) (Person, error) {
	claims := map[string]any{}
	if err := token.Claims(&claims); err != nil {
		return Person{}, fmt.Errorf("%w: %w", ErrRefused, truncateError(err))
	}
	// Section 3.1.3.7 of OpenID Connect Core 1.0: whom a token of several audiences was made for.
	if azp, given := claims["azp"]; (given || len(token.Audience) > 1) && azp != p.config.ClientID {
		return Person{}, fmt.Errorf("%w: the ID token was made for another client", ErrRefused)
	}
	name, _ := claims[p.config.NameClaim].(string)
	return Person{Subject: token.Subject, Name: name, Groups: stringsOf(claims[p.config.GroupsClaim])}, nil
}

// textsOf reads a claim that is a text or a list of them. Whatever else there is names no group.
func stringsOf(claim any) (texts []string) {
	switch claim := claim.(type) {
	case string:
		return []string{claim}
	case []any:
		for _, item := range claim {
			if text, ok := item.(string); ok {
				texts = append(texts, text)
			}
		}
	}
	return texts
}
