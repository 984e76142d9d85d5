// Package certs issues the certificates of tests and local installations: those of the components and users of a control plane,
// and those of the agent and the control-plane API. [ForTest] is for tests.
package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// validity exceeds the lifetime of any local cluster.
const validity = 365 * 24 * time.Hour

// Authority is a certificate authority with its own key. It is safe for concurrent use.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	end  time.Time // of issued certificates; zero for their usual validity
}

// KeyPair is a certificate and its private key in PEM.
type KeyPair struct {
	Cert, Key []byte
}

// NewAuthority creates an authority with a new key.
func NewAuthority(name string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate key of %s: %w", name, err)
	}
	return selfSigned(name, key)
}

// Renew returns an authority with the same name and key, and a new certificate.
func (a *Authority) Renew() (*Authority, error) { return selfSigned(a.cert.Subject.CommonName, a.key) }

func selfSigned(name string, key *ecdsa.PrivateKey) (*Authority, error) {
	template, err := newTemplate(pkix.Name{CommonName: name})
	if err != nil {
		return nil, err
	}
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("sign %s: %w", name, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", name, err)
	}
	return &Authority{cert: cert, key: key}, nil
}

// Until returns the same authority, whose issued certificates end at a time; with the zero time, as usual.
func (a *Authority) Until(end time.Time) *Authority {
	return &Authority{cert: a.cert, key: a.key, end: end}
}

// CertPEM returns the authority's certificate in PEM.
func (a *Authority) CertPEM() []byte { return certPEM(a.cert.Raw) }

// Serving issues a server certificate for loopback, and for the given host names and addresses.
func (a *Authority) Serving(name string, hosts ...string) (KeyPair, error) {
	template, err := leafTemplate(pkix.Name{CommonName: name}, x509.ExtKeyUsageServerAuth)
	if err != nil {
		return KeyPair{}, err
	}
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	template.DNSNames = []string{"localhost"}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	return a.issue(template)
}

// Client issues the client certificate of a user. Kubernetes takes the common name for the user and the organizations for the
// groups.
func (a *Authority) Client(user string, groups ...string) (KeyPair, error) {
	template, err := leafTemplate(pkix.Name{CommonName: user, Organization: groups}, x509.ExtKeyUsageClientAuth)
	if err != nil {
		return KeyPair{}, err
	}
	return a.issue(template)
}

// peer issues a certificate that is valid as client and as server at 127.0.0.1.
func (a *Authority) peer(name string) (KeyPair, error) {
	template, err := leafTemplate(pkix.Name{CommonName: name}, x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth)
	if err != nil {
		return KeyPair{}, err
	}
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	return a.issue(template)
}

func (a *Authority) issue(template *x509.Certificate) (KeyPair, error) {
	name := template.Subject.CommonName
	if !a.end.IsZero() {
		template.NotAfter = a.end
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return KeyPair{}, fmt.Errorf("generate key of %q: %w", name, err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return KeyPair{}, fmt.Errorf("sign certificate of %q: %w", name, err)
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return KeyPair{}, err
	}
	return KeyPair{Cert: certPEM(der), Key: keyPEM}, nil
}

// Write writes the pair to NAME.crt and NAME.key in dir.
func (k KeyPair) Write(dir, name string) error {
	if err := os.WriteFile(filepath.Join(dir, name+".crt"), k.Cert, 0o600); err != nil {
		return fmt.Errorf("write certificate: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".key"), k.Key, 0o600); err != nil {
		return fmt.Errorf("write key: %w", err)
	}
	return nil
}

// NewSigningKey generates the key pair of ServiceAccount tokens in PEM.
func NewSigningKey() (private, public []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("generate key of service accounts: %w", err)
	}
	private, err = encodeKey(key)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, nil, fmt.Errorf("encode public key: %w", err)
	}
	return private, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), nil
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode private key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

func certPEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func leafTemplate(subject pkix.Name, usages ...x509.ExtKeyUsage) (*x509.Certificate, error) {
	template, err := newTemplate(subject)
	if err != nil {
		return nil, err
	}
	template.KeyUsage, template.ExtKeyUsage = x509.KeyUsageDigitalSignature, usages
	return template, nil
}

func newTemplate(subject pkix.Name) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("generate serial number: %w", err)
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      subject,
		NotBefore:    now.Add(-time.Minute),
		NotAfter:     now.Add(validity),
	}, nil
}
