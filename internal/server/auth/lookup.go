package auth

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/threeport/threeport-agent/internal/server/store"
)

// maxLookups bounds the simultaneous reads of unknown credentials from the store. Anybody can cause them, and they share few
// connections of the database with those of valid credentials. A lookup takes about a millisecond.
const (
	maxLookups           = 64
	maxLookupsPerAddress = maxLookups / 4
)

// errTooManyLookups is the error of a lookup beyond the bounds.
var errTooManyLookups = errors.New("too many lookups of unknown credentials")

// reader reads the token of a credential by the hash of its secret.
type reader func(ctx context.Context, hash []byte) (store.Token, error)

// lookUp returns the token of a credential from the cache, or from read. Only lookups of unknown credentials are limited, so valid
// ones that are in use are not affected.
func (a *Authenticator) lookUp(r *http.Request, key digest, now time.Time, read reader) (store.Token, error) {
	return a.cache.token(r.Context(), key, now, func(ctx context.Context, hash []byte, known bool) (store.Token, error) {
		if known {
			return read(ctx, hash)
		}
		return a.readLimited(ctx, r.RemoteAddr, hash, read)
	})
}

// readLimited reads an unknown credential of a client, or fails with errTooManyLookups.
func (a *Authenticator) readLimited(ctx context.Context, remote string, hash []byte, read reader) (store.Token, error) {
	address := ClientAddress(remote)
	if !a.atOnce.lookups.tryAcquire(address) {
		return store.Token{}, errTooManyLookups
	}
	defer a.atOnce.lookups.release(address)
	return read(ctx, hash)
}
