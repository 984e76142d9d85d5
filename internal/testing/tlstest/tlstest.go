// Package tlstest issues certificates for tests of mutual TLS.
package tlstest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority signs certificates that are valid for an hour, for 127.0.0.1, as
// server and as client.
type Authority struct {
	tb   testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	next int64
}

// NewAuthority makes an authority of its own key.
func NewAuthority(tb testing.TB) *Authority {
	tb.Helper()
	a := &Authority{tb: tb, key: newKey(tb)}
	der := a.sign()
	var err error
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		tb.Fatal(err)
	}
	return a
}

// sign makes a certificate of the authority's own, as DER.
func (a *Authority) sign() []byte {
	a.tb.Helper()
	template := a.template("authority")
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err != nil {
		a.tb.Fatal(err)
	}
	return der
}

// Renewed is another certificate of the authority's own, for the same key, as PEM.
func (a *Authority) Renewed() []byte {
	a.tb.Helper()
	return encode("CERTIFICATE", a.sign())
}

// PEM is the authority's own certificate.
func (a *Authority) PEM() []byte { return encode("CERTIFICATE", a.cert.Raw) }

// Issue returns a new certificate and its key, as PEM.
func (a *Authority) Issue(commonName string) (cert, key []byte) {
	a.tb.Helper()
	private := newKey(a.tb)
	der, err := x509.CreateCertificate(rand.Reader, a.template(commonName), a.cert, private.Public(), a.key)
	if err != nil {
		a.tb.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		a.tb.Fatal(err)
	}
	return encode("CERTIFICATE", der), encode("PRIVATE KEY", keyDER)
}

// Files are the paths of a certificate, its key and its authority.
type Files struct{ Cert, Key, CA string }

// IssueFiles writes a new certificate, its key and the authority to a directory
// of the test.
func (a *Authority) IssueFiles(commonName string) Files {
	a.tb.Helper()
	dir := a.tb.TempDir()
	f := Files{filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), filepath.Join(dir, "ca.crt")}
	cert, key := a.Issue(commonName)
	for name, content := range map[string][]byte{f.Cert: cert, f.Key: key, f.CA: a.PEM()} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			a.tb.Fatal(err)
		}
	}
	return f
}

func (a *Authority) template(commonName string) *x509.Certificate {
	a.next++
	return &x509.Certificate{
		SerialNumber: big.NewInt(a.next),
		Subject:      pkix.Name{CommonName: commonName},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
}

func newKey(tb testing.TB) *ecdsa.PrivateKey {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
