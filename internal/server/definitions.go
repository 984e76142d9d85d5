package server

import (
	"context"
	"encoding/json"

	"github.com/threeport/threeport-agent/internal/redact"
	"github.com/threeport/threeport-agent/internal/server/auth"
)

// documentView returns a stored definition as a reader may see it.
type documentView func(stored string) string

// definitions redacts definitions for everybody who is not an administrator. A nil one redacts nothing: under strict v0 all
// clients are administrators.
type definitions struct {
	rules *redact.Live // nil for the built-in rules
	// large has a slot: large definitions are redacted one at a time, because decoding takes up to 50 times their size.
	large chan struct{}
}

// largeDefinition is the least size of a large definition, in bytes.
const largeDefinition = 64 << 10

func newDefinitions(rules *redact.Live) *definitions {
	return &definitions{rules, make(chan struct{}, 1)}
}

// view returns how the principal of a request sees definitions; nil if as they are stored.
func (d *definitions) view(ctx context.Context) documentView {
	if d == nil || auth.PrincipalFrom(ctx).Role == auth.RoleAdmin {
		return nil
	}
	rules := d.rules.Current()
	return func(stored string) string {
		if len(stored) > largeDefinition {
			d.large <- struct{}{}
			defer func() { <-d.large }()
		}
		return rules.Document(stored)
	}
}

// of returns a definition as a reader sees it.
func (v documentView) of(stored json.RawMessage) json.RawMessage {
	if v == nil || stored == nil {
		return stored
	}
	return json.RawMessage(v(string(stored)))
}
