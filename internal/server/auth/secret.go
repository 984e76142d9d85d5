package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"math/big"
	"strings"
)

// Secrets are 32 random bytes. A token is written in base 62, so that a double click selects it whole, and has a prefix
// by which people and scanners of leaked secrets know it; a session is base64url.
const (
	secretBytes = 32
	tokenPrefix = "tp_"
	base62Chars = 43 // of 32 bytes
	tokenLength = len(tokenPrefix) + 1 + base62Chars
)

// letters are those of a token's role, its fourth character. They are for people: the role that counts is the row's.
var roleLetters = map[Role]string{RoleAgent: "a", RoleViewer: "v", RoleAdmin: "d"}

// newToken makes a token's text.
func newToken(role Role) string {
	digits := new(big.Int).SetBytes(randomBytes()).Text(62)
	return tokenPrefix + roleLetters[role] + strings.Repeat("0", base62Chars-len(digits)) + digits
}

// newSession makes the value of a session's cookie.
func newSession() string { return base64.RawURLEncoding.EncodeToString(randomBytes()) }

func randomBytes() []byte {
	secret := make([]byte, secretBytes)
	_, _ = rand.Read(secret) // never fails, and fills it
	return secret
}

// digest is what is kept of a secret.
type digest [sha256.Size]byte

// digestOf hashes a secret. SHA-256 without salt or stretching is enough, and bcrypt would only cost: those protect
// what people choose and guess, and nobody guesses 256 random bits.
//
// Rows are found by the digest. How long that takes may tell of the digest, but nothing of a secret: who could choose
// digests would have to invert SHA-256 first.
func digestOf(secret string) digest { return sha256.Sum256([]byte(secret)) }

// isToken tells whether a text can be a token at all, so that nothing else costs a query.
func isToken(text string) bool {
	return len(text) == tokenLength && strings.HasPrefix(text, tokenPrefix) &&
		strings.IndexFunc(text[len(tokenPrefix):], notBase62) < 0
}

func notBase62(r rune) bool {
	return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
}

// isSession is the same for a cookie's value.
func isSession(text string) bool {
	if len(text) != base64.RawURLEncoding.EncodedLen(secretBytes) {
		return false
	}
	_, err := base64.RawURLEncoding.DecodeString(text)
	return err == nil
}
