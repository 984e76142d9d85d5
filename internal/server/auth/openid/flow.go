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

// Flow is the state of a log-in. Its secret stays in the browser that started it. State, nonce and code verifier, which
// others see, are derived from it and do not reveal it.
type Flow struct {
	secret  string
	expires time.Time
	// Next is where the browser goes after the log-in. It is untrusted if the flow came from a cookie.
	Next string
}

// NewFlow starts a log-in.
func NewFlow(next string, expires time.Time) Flow {
	secret := make([]byte, sha256.Size)
	_, _ = rand.Read(secret) // never fails
	return Flow{secret: base64.RawURLEncoding.EncodeToString(secret), expires: expires, Next: next}
}

// String encodes the flow for a cookie.
func (f Flow) String() string {
	return f.secret + "." + strconv.FormatInt(f.expires.Unix(), 10) + "." + base64.RawURLEncoding.EncodeToString([]byte(f.Next))
}

// ParseFlow decodes the result of [Flow.String]; ok is false if it is malformed or expired.
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

// MatchesState reports whether a returned state belongs to this flow. Otherwise another browser started that log-in.
func (f Flow) MatchesState(state string) bool { return constantTimeEqual(state, f.state()) }

func (f Flow) state() string    { return f.derive("state") }
func (f Flow) nonce() string    { return f.derive("nonce") }
func (f Flow) verifier() string { return f.derive("verifier") }

// derive returns 43 characters, the minimal length of a code verifier (RFC 7636, section 4.1). Results for different
// uses are independent.
func (f Flow) derive(use string) string {
	mac := hmac.New(sha256.New, []byte(f.secret))
	mac.Write([]byte(use))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func constantTimeEqual(a, b string) bool {
	return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1
}
