package certs

import (
	"os"
	"path/filepath"
	"time"
)

// TB is the part of [testing.TB] that this package needs. The local cluster uses this package as well, so it does not import
// package testing.
type TB interface {
	Helper()
	Fatal(args ...any)
	TempDir() string
}

// TestAuthority is an [Authority] whose errors end the test. Its certificates are valid as client and as server at 127.0.0.1.
type TestAuthority struct {
	authority *Authority
	tb        TB
}

// ForTest creates an authority for a test. All of them have the same name and different keys.
func ForTest(tb TB) *TestAuthority {
	tb.Helper()
	authority, err := NewAuthority("authority")
	if err != nil {
		tb.Fatal(err)
	}
	return &TestAuthority{authority, tb}
}

// PEM returns the authority's certificate in PEM.
func (a *TestAuthority) PEM() []byte { return a.authority.CertPEM() }

// Renewed returns a new certificate for the authority's key in PEM.
func (a *TestAuthority) Renewed() []byte {
	a.tb.Helper()
	renewed, err := a.authority.Renew()
	if err != nil {
		a.tb.Fatal(err)
	}
	return renewed.CertPEM()
}

// Issue issues a certificate and returns it with its key in PEM.
func (a *TestAuthority) Issue(commonName string) (cert, key []byte) {
	a.tb.Helper()
	return a.IssueUntil(commonName, time.Time{})
}

// IssueUntil is Issue with the end of the certificate.
func (a *TestAuthority) IssueUntil(commonName string, end time.Time) (cert, key []byte) {
	a.tb.Helper()
	pair, err := a.authority.Until(end).peer(commonName)
	if err != nil {
		a.tb.Fatal(err)
	}
	return pair.Cert, pair.Key
}

// Files are the paths of a certificate, its key and its authority.
type Files struct{ Cert, Key, CA string }

// IssueClient issues the client certificate of a user with organizations in PEM.
func (a *TestAuthority) IssueClient(user string, organizations ...string) KeyPair {
	a.tb.Helper()
	pair, err := a.authority.Client(user, organizations...)
	if err != nil {
		a.tb.Fatal(err)
	}
	return pair
}

// IssueFiles issues a certificate and writes it, its key and the authority's certificate to a directory of the test.
func (a *TestAuthority) IssueFiles(commonName string) Files {
	a.tb.Helper()
	dir := a.tb.TempDir()
	files := Files{filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), filepath.Join(dir, "ca.crt")}
	cert, key := a.Issue(commonName)
	for name, content := range map[string][]byte{files.Cert: cert, files.Key: key, files.CA: a.PEM()} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			a.tb.Fatal(err)
		}
	}
	return files
}
