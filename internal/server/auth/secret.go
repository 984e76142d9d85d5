package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"math/big"
	"strings"
)

// A secret is 32 random bytes. A token encodes them in base 62, so that a double click selects it, with a prefix that
// people and secret scanners recognize. A session uses base64url.
const (
	secretBytes = 32
	tokenPrefix = "tp_"
	base62Chars = 43 // for 32 bytes
	tokenLength = len(tokenPrefix) + 1 + base62Chars
)

// roleLetters are the fourth character of a token, by role. They are for people only; the stored row has the role.
var roleLetters = map[Role]string{RoleAgent: "a", RoleViewer: "v", RoleAdmin: "d"}

// newToken generates a token.
func newToken(role Role) string {
	digits := new(big.Int).SetBytes(randomBytes()).Text(62)
	return tokenPrefix + roleLetters[role] + strings.Repeat("0", base62Chars-len(digits)) + digits
}

// newSession generates the value of a session cookie.
func newSession() string { return base64.RawURLEncoding.EncodeToString(randomBytes()) }

func randomBytes() []byte {
	secret := make([]byte, secretBytes)
	_, _ = rand.Read(secret) // never fails
	return secret
}

// digest is the stored hash of a secret.
type digest [sha256.Size]byte

// digestOf hashes a secret. SHA-256 without salt or stretching is sufficient, since 256 random bits cannot be guessed.
//
// Rows are looked up by digest. The timing of that may reveal digests, but no secret, because SHA-256 cannot be
// inverted.
func digestOf(secret string) digest { return sha256.Sum256([]byte(secret)) }

// isToken reports whether text has the form of a token, so that other text needs no query.
func isToken(text string) bool {
	return len(text) == tokenLength && strings.HasPrefix(text, tokenPrefix) &&
		strings.IndexFunc(text[len(tokenPrefix):], notBase62) < 0
}

func notBase62(r rune) bool {
	return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
}

// isSession reports whether text has the form of a session cookie.
func isSession(text string) bool {
	if len(text) != base64.RawURLEncoding.EncodedLen(secretBytes) {
		return false
	}
	_, err := base64.RawURLEncoding.DecodeString(text)
	return err == nil
}
