package openid

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"strconv"
	"strings"
	"time"
)

// Flow is a log-in on its way. Whoever has its secret is the browser that began it: what goes to the provider, and comes
// back through others' hands, is derived from that and does not tell it.
type Flow struct {
	secret  string
	expires time.Time
	// Next is where the browser wants to go after it; not to be believed when the flow was read from a cookie.
	Next string
}

// NewFlow begins a log-in.
func NewFlow(next string, expires time.Time) Flow {
	secret := make([]byte, sha256.Size)
	_, _ = rand.Read(secret) // never fails, and fills it
	return Flow{secret: base64.RawURLEncoding.EncodeToString(secret), expires: expires, Next: next}
}

// String is the flow as a cookie has it.
func (f Flow) String() string {
	return f.secret + "." + strconv.FormatInt(f.expires.Unix(), 10) + "." + base64.RawURLEncoding.EncodeToString([]byte(f.Next))
}

// ParseFlow reads what [Flow.String] wrote; ok is false if it is something else, or too old.
func ParseFlow(text string, now time.Time) (f Flow, ok bool) {
	parts := strings.Split(text, ".")
	if len(parts) != 3 || len(parts[0]) != base64.RawURLEncoding.EncodedLen(sha256.Size) {
		return Flow{}, false
	}
	expires, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil || now.Unix() >= expires {
		return Flow{}, false
	}
	next, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil {
		return Flow{}, false
	}
	return Flow{secret: parts[0], expires: time.Unix(expires, 0), Next: string(next)}, true
}

// IsOf tells whether a state that came back is the flow's: if not, another browser began what ends here.
func (f Flow) MatchesState(state string) bool { return constantTimeEqual(state, f.state()) }

func (f Flow) state() string    { return f.derive("state") }
func (f Flow) nonce() string    { return f.derive("nonce") }
func (f Flow) verifier() string { return f.derive("verifier") }

// derive makes a text of 43 characters, as a verifier has at least (RFC 7636, section 4.1), that tells of no other.
func (f Flow) derive(use string) string {
	mac := hmac.New(sha256.New, []byte(f.secret))
	mac.Write([]byte(use))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func constantTimeEqual(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
