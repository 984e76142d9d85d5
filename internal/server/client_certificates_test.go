package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/testing/certs"
)

func TestClientAuthorities_Check(t *testing.T) {
	a := newClientAuthorities([]*x509.Certificate{{RawSubject: []byte("root")}})
	cert := func(subject, issuer string, key any) *x509.Certificate {
		return &x509.Certificate{RawSubject: []byte(subject), RawIssuer: []byte(issuer), PublicKey: key}
	}
	curve := func(c elliptic.Curve) *ecdsa.PublicKey { return &ecdsa.PublicKey{Curve: c} }
	rsaKey := func(bits uint, exponent int) *rsa.PublicKey {
		return &rsa.PublicKey{N: new(big.Int).Lsh(big.NewInt(1), bits-1), E: exponent}
	}
	leaf := cert("agent", "root", curve(elliptic.P256()))
	for _, tt := range []struct {
		name  string
		chain []*x509.Certificate
		want  string // part of the error; none if it is empty
	}{
		{"no certificate", nil, ""},
		{"one of an authority", []*x509.Certificate{leaf}, ""},
		{"one of an intermediate authority", []*x509.Certificate{cert("agent", "ca-1", curve(elliptic.P384())), cert("ca-1", "root", rsaKey(4096, 65537))}, ""},
		{"one of another authority", []*x509.Certificate{cert("agent", "other", curve(elliptic.P256()))}, "no authority in --ca-file"},
		{"five", []*x509.Certificate{leaf, leaf, leaf, leaf, leaf}, "sends 5 certificates"},
		{"an equal subject", []*x509.Certificate{leaf, cert("ca", "root", curve(elliptic.P256())), cert("ca", "root", curve(elliptic.P256()))}, "same subject"},
		{"a large RSA key", []*x509.Certificate{cert("agent", "root", rsaKey(4097, 65537))}, "RSA key"},
		{"a large exponent", []*x509.Certificate{cert("agent", "root", rsaKey(2048, 65539))}, "RSA key"},
		{"a large curve", []*x509.Certificate{cert("agent", "root", curve(elliptic.P521()))}, "P-521"},
	} {
		err := a.check(tt.chain)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: the error is %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestClientAuthorities_Verify(t *testing.T) {
	authority, other := certs.ForTest(t), certs.ForTest(t)
	found, err := authorities(authority.PEM())
	if err != nil {
		t.Fatal(err)
	}
	a := newClientAuthorities(found)
	chain := func(by *certs.TestAuthority) []*x509.Certificate {
		t.Helper()
		pair, err := tls.X509KeyPair(by.Issue("agent"))
		if err != nil {
			t.Fatal(err)
		}
		return []*x509.Certificate{pair.Leaf}
	}
	known, unknown := chain(authority), chain(other)
	for range 2 { // the second time it is remembered
		if err := a.verify(known, time.Now()); err != nil {
			t.Errorf("a certificate of the authority is refused: %v", err)
		}
		if err := a.verify(unknown, time.Now()); err == nil {
			t.Error("a certificate of another authority is accepted")
		}
	}
	young := chain(authority)
	if err := a.verify(young, time.Now().AddDate(-100, 0, 0)); err == nil {
		t.Error("a certificate is accepted before its time")
	}
	if err := a.verify(young, time.Now()); err != nil {
		t.Errorf("a certificate that was refused before its time is refused later: %v", err)
	}
	if err := a.verify(chain(authority), time.Now().AddDate(100, 0, 0)); err == nil {
		t.Error("an expired certificate is accepted")
	}
	end := found[0].NotAfter // of the authority, which is not later than that of the certificate
	if err := a.verify(known, end); err != nil {
		t.Errorf("a certificate is refused in its last moment: %v", err)
	}
	if err := a.verify(known, end.Add(1)); err == nil {
		t.Error("a certificate that was verified is accepted after its end")
	}
	for i := range maxVerified {
		a.verified[[32]byte{byte(i), byte(i >> 8), 1}] = time.Now()
	}
	if err := a.verify(chain(authority), time.Now()); err != nil || len(a.verified) > maxVerified {
		t.Errorf("after many chains, the error for another one is %v, and %d are remembered; want at most %d", err, len(a.verified), maxVerified)
	}
}

// Anybody can send certificates. Those that are expensive to verify or to keep end the handshake.
func TestServer_ExpensiveCertificates_AreRefusedInHandshake(t *testing.T) {
	s := startTLS(t, "sqlite:"+filepath.Join(t.TempDir(), "rows.db"), nil)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	made := func(public any, padding int) []byte {
		t.Helper()
		template := &x509.Certificate{
			SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: rand.Text()}, NotAfter: time.Now().Add(time.Hour),
			ExtraExtensions: []pkix.Extension{{Id: []int{1, 2, 3}, Value: make([]byte, padding)}},
		}
		der, err := x509.CreateCertificate(rand.Reader, template, template, public, key)
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	large, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 8192))
	if err != nil {
		t.Fatal(err)
	}
	large.SetBit(large, 8191, 1).SetBit(large, 0, 1)
	leaf := made(&key.PublicKey, 0)
	for name, chain := range map[string][][]byte{
		"many certificates":    {leaf, leaf, leaf, leaf, leaf},
		"an expensive key":     {leaf, made(&rsa.PublicKey{N: large, E: 1<<31 - 1}, 0)},
		"many bytes":           {leaf, made(&key.PublicKey, maxHandshakeBytes)},
		"an unknown authority": {leaf},
		"200 KiB":              {leaf, made(&key.PublicKey, 200<<10)},
	} {
		dialer := &tls.Dialer{Config: &tls.Config{
			InsecureSkipVerify: true,
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				return &tls.Certificate{Certificate: chain, PrivateKey: key}, nil
			},
		}}
		conn, err := dialer.DialContext(t.Context(), "tcp", strings.TrimPrefix(s.url, "https://"))
		if err == nil {
			_ = conn.SetDeadline(time.Now().Add(time.Minute))
			_, err = io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
			if err == nil {
				_, err = conn.Read(make([]byte, 1))
			}
			_ = conn.Close()
		}
		if timeout, ok := errors.AsType[net.Error](err); err == nil || ok && timeout.Timeout() {
			t.Errorf("%s: the handshake ends with %v, want an error of the server", name, err)
		}
	}
}
