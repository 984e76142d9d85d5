package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// The limits of the certificates that a client sends. Anybody can send some, and the first check of a signature comes before anything is
// known of the client. One by a large key takes the processor 100 times longer than the rest of a handshake, and a connection keeps all
// certificates.
const (
	maxHandshakeBytes = 16 << 10 // from the client; four certificates of 4096 bits take half of it
	maxChain          = 4
	maxRSABits        = 4096
	maxRSAExponent    = 65537
)

// clientAuthorities are the authorities of client certificates.
type clientAuthorities struct {
	pool     *x509.CertPool
	subjects map[string]bool // by their DER

	mu       sync.Mutex
	verified map[[sha256.Size]byte]time.Time // chains, which connections present again with each request, until the first end of a certificate
}

// maxVerified bounds the chains that are remembered.
const maxVerified = 4096

func newClientAuthorities(certs []*x509.Certificate) *clientAuthorities {
	a := &clientAuthorities{pool: x509.NewCertPool(), subjects: map[string]bool{}, verified: map[[sha256.Size]byte]time.Time{}}
	for _, cert := range certs {
		a.pool.AddCert(cert)
		a.subjects[string(cert.RawSubject)] = true
	}
	return a
}

// check returns an error for certificates that no authority issued or that are expensive to verify. It verifies no signature.
func (a *clientAuthorities) check(chain []*x509.Certificate) error {
	if len(chain) > maxChain {
		return fmt.Errorf("the client sends %d certificates: at most %d are accepted, without the root", len(chain), maxChain)
	}
	issued, subjects := len(chain) == 0, map[string]bool{}
	for _, cert := range chain {
		if subjects[string(cert.RawSubject)] { // each signature could have several issuers
			return errors.New("two certificates of the client have the same subject")
		}
		subjects[string(cert.RawSubject)] = true
		issued = issued || a.subjects[string(cert.RawIssuer)]
		switch key := cert.PublicKey.(type) {
		case *rsa.PublicKey:
			if key.N.BitLen() > maxRSABits || key.E > maxRSAExponent {
				return fmt.Errorf("a client certificate has an RSA key of more than %d bits, or an exponent above %d", maxRSABits, maxRSAExponent)
			}
		case *ecdsa.PublicKey:
			if key.Curve == elliptic.P521() {
				return errors.New("a client certificate has a key of the curve P-521: use P-256 or P-384")
			}
		}
	}
	if !issued {
		return errors.New("no authority in --ca-file issued a certificate of the client")
	}
	return nil
}

// verify returns an error for a chain that no authority issued to a client. The chain has passed check, and is not empty.
func (a *clientAuthorities) verify(chain []*x509.Certificate, now time.Time) error {
	hash := sha256.New()
	for _, cert := range chain {
		_, _ = hash.Write(cert.Raw)
	}
	key := [sha256.Size]byte(hash.Sum(nil))
	a.mu.Lock()
	end, verified := a.verified[key]
	a.mu.Unlock()
	if verified && !now.After(end) {
		return nil
	}
	intermediates := x509.NewCertPool()
	for _, cert := range chain[1:] {
		intermediates.AddCert(cert)
	}
	found, err := chain[0].Verify(x509.VerifyOptions{
		Roots: a.pool, Intermediates: intermediates, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.verified) >= maxVerified {
		clear(a.verified)
	}
	a.verified[key] = firstEnd(found)
	return nil
}

// firstEnd is the time until which all certificates of the chains are valid. There is at least one.
func firstEnd(chains [][]*x509.Certificate) time.Time {
	return slices.MinFunc(slices.Concat(chains...), func(a, b *x509.Certificate) int { return a.NotAfter.Compare(b.NotAfter) }).NotAfter
}

// limitHandshake returns a configuration for one connection: its client sends at most maxHandshakeBytes in the handshake.
func limitHandshake(config *tls.Config, opened *connection) *tls.Config {
	opened.handshake.Store(maxHandshakeBytes)
	config = config.Clone()
	verify := config.VerifyConnection
	config.VerifyConnection = func(state tls.ConnectionState) error {
		opened.handshake.Store(0)
		if verify == nil {
			return nil
		}
		return verify(state)
	}
	return config
}
