package threeport

import (
	"fmt"
	"os"
	"strings"
	"sync"
)

// bearerToken is the token of requests: that of a file, or one that replaces it until the file changes. It is safe for concurrent use.
type bearerToken struct {
	file tokenFile

	mu sync.Mutex
	// renewed is sent instead of the token replaced while the file has that; empty for none.
	renewed, replaced string
}

// read returns the token for the next request; empty for none.
func (b *bearerToken) read() (string, error) {
	text, err := b.file.read()
	if err != nil {
		return "", err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.renewed == "" {
		return text, nil
	}
	if text == b.replaced {
		return b.renewed, nil
	}
	b.renewed, b.replaced = "", ""
	return text, nil
}

// use replaces the token that the file has.
func (b *bearerToken) use(token string) error {
	text, err := b.file.read()
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.renewed, b.replaced = token, text
	return nil
}

// tokenFile is the path of a file with a bearer token; empty for no token.
type tokenFile string

// read returns the token of the moment, which may be rotated at any time.
func (f tokenFile) read() (string, error) {
	if f == "" {
		return "", nil
	}
	raw, err := os.ReadFile(string(f))
	if err != nil {
		return "", fmt.Errorf("read bearer token: %w", err)
	}
	token := strings.TrimSpace(string(raw))
	if token == "" {
		return "", fmt.Errorf("read bearer token: %s is empty", f)
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		// The error of net/http would quote the token.
		return "", fmt.Errorf("read bearer token: %s holds more than one token", f)
	}
	return token, nil
}
