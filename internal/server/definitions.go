package server

import (
	"context"
	"encoding/json"
	"time"

	"github.com/threeport/threeport-agent/internal/redact"
	"github.com/threeport/threeport-agent/internal/server/auth"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// documentView returns a stored definition as a reader may see it.
type documentView func(stored string) string

// definitions redacts definitions for everybody who is not an administrator. A nil one redacts nothing: under strict v0 all
// clients are administrators.
type definitions struct {
	rules *redact.Live // nil for the built-in rules
	// large has a slot: large definitions are redacted one at a time, because decoding takes up to 50 times their size. Each sender
	// waits for its own ones first, so that many of one cluster delay another cluster by one.
	large *limiter
}

const (
	// largeDefinition is the least size of a large definition, in bytes.
	largeDefinition = 64 << 10

	// definitionWait is how long a large definition waits to be redacted.
	definitionWait = time.Minute
)

func newDefinitions(rules *redact.Live) *definitions {
	return &definitions{rules, newLimiter("large definitions that are redacted", 1, 1, definitionWait)}
}

// view returns how the principal of a request sees definitions; nil if as they are stored.
func (d *definitions) view(ctx context.Context, from sender) documentView {
	if d == nil || auth.PrincipalFrom(ctx).Role == auth.RoleAdmin {
		return nil
	}
	rules := d.rules.Current()
	return func(stored string) string {
		if len(stored) > largeDefinition {
			slot, err := d.large.acquire(ctx, from, 1)
			if err != nil { // the client has gone, or it shares the slot with very many others
				return withheld
			}
			defer slot.release()
		}
		return rules.Document(stored)
	}
}

// withheld is the view of a definition that was not redacted.
const withheld = `"` + threeport.Redacted + `"`

// of returns a definition as a reader sees it.
func (v documentView) of(stored json.RawMessage) json.RawMessage {
	if v == nil || stored == nil {
		return stored
	}
	return json.RawMessage(v(string(stored)))
}
