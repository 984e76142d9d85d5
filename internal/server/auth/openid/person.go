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

// leeway is the accepted lag of the provider's clock: ID tokens stay valid this much longer.
const leeway = time.Minute

// keyFetchErrorPrefix is the prefix of a verification error if the keys could not be fetched. The library wraps no
// error that distinguishes it from an invalid signature.
const keyFetchErrorPrefix = "failed to verify signature: fetching keys "

// ErrRefused is the error if the provider's answer does not prove an identity.
var ErrRefused = errors.New("the identity provider's answer does not prove an identity")

// Person is a person who logged in.
type Person struct {
	// Subject identifies the person permanently at this provider. It can be any text.
	Subject string
	// Name is for display and may change; empty if the provider sends none.
	Name   string
	Groups []string
}

// Person redeems the code that the browser brought back at the end of a flow. The error is [ErrRefused] if the answer
// does not prove an identity; any other error means that the provider did not answer correctly.
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
		return Person{}, fmt.Errorf("%w: the ID token belongs to another log-in", ErrRefused)
	}
	return p.person(token)
}

// redeem exchanges a code for an ID token. Its errors never contain the code, the secret or a token.
func (p *Provider) redeem(ctx context.Context, found *metadata, f Flow, code string) (raw string, err error) {
	secret, err := p.secret()
	if err != nil {
		return "", err
	}
	token, err := p.oauth2(found, secret).Exchange(oidc.ClientContext(ctx, p.client), code, oauth2.VerifierOption(f.verifier()))
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		err = fmt.Errorf("redeem code: the identity provider answers %s, %.100q", refused.Response.Status, refused.ErrorCode)
		// RFC 6749, section 5.2: other error codes are faults of this client, and other statuses faults of the
		// provider.
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
		return "", fmt.Errorf("%w: no ID token", ErrRefused)
	}
	return raw, nil
}

// person reads the claims of a verified token.
func (p *Provider) person(token *oidc.IDToken) (Person, error) {
	claims := map[string]any{}
	if err := token.Claims(&claims); err != nil {
		return Person{}, fmt.Errorf("%w: %w", ErrRefused, truncateError(err))
	}
	// OpenID Connect Core 1.0, section 3.1.3.7: azp is the client that the token was issued to.
	if azp, given := claims["azp"]; (given || len(token.Audience) > 1) && azp != p.config.ClientID {
		return Person{}, fmt.Errorf("%w: the ID token was issued to another client", ErrRefused)
	}
	name, _ := claims[p.config.NameClaim].(string)
	return Person{Subject: token.Subject, Name: name, Groups: stringsOf(claims[p.config.GroupsClaim])}, nil
}

// stringsOf reads a claim that is a string or a list of strings, and ignores everything else.
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
