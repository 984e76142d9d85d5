package attacks

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
	"math/big"
	"net/url"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/e2e/process"
)

// Clients without a credential send a certificate with a hundred made-up issuers. To verify one signature of them takes milliseconds.
func TestMemory_ClientsWithoutCredential_SendExpensiveCertificates(t *testing.T) {
	const (
		dialers   = 16
		handshake = 10 // of each dialer
		reports   = 5
	)
	a := newAPI(t, "sqlite:"+filepath.Join(t.TempDir(), "controlplane.db"))
	a.start()
	sent, err := expensiveCertificates(100)
	a.must(err)
	to, err := url.Parse(a.url)
	a.must(err)
	a.must(a.report(t.Context(), "before"))
	before, err := process.CPUTime(a.process.PID())
	a.must(err)
	var clients sync.WaitGroup
	for range dialers {
		clients.Go(func() {
			for range handshake {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				dialer := tls.Dialer{Config: &tls.Config{
					InsecureSkipVerify: true, GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return sent, nil },
				}}
				if connection, err := dialer.DialContext(ctx, "tcp", to.Host); err == nil {
					_, _ = connection.Read(make([]byte, 1)) // until the server has decided
					_ = connection.Close()
				}
				cancel()
			}
		})
	}
	for i := range reports {
		if err := a.report(t.Context(), fmt.Sprint("during-", i)); err != nil {
			t.Errorf("report %d during the attack: %v", i, err)
		}
	}
	clients.Wait()
	after, err := process.CPUTime(a.process.PID())
	a.must(err)
	took := (after - before) / (dialers * handshake)
	t.Logf("a handshake took %v of processor time", took)
	if took > 50*time.Millisecond {
		t.Errorf("a handshake took %v of processor time, want less than 50 ms", took)
	}
	a.expectAlive()
}

// expensiveCertificates returns a certificate that each of some made-up authorities may have issued.
func expensiveCertificates(authorities int) (*tls.Certificate, error) {
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	signer, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	name := pkix.Name{CommonName: "X"}
	parent := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: name, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "client"}, NotAfter: parent.NotAfter,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	made := func(template *x509.Certificate, public crypto.PublicKey) ([]byte, error) {
		der, err := x509.CreateCertificate(rand.Reader, template, parent, public, signer)
		if err != nil {
			return nil, err
		}
		return signedByLargeKey(der)
	}
	first, err := made(leaf, &own.PublicKey)
	if err != nil {
		return nil, err
	}
	chain := [][]byte{first}
	for range authorities {
		modulus, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), largeKeyBits))
		if err != nil {
			return nil, err
		}
		modulus.SetBit(modulus, largeKeyBits-1, 1).SetBit(modulus, 0, 1)
		der, err := made(parent, &rsa.PublicKey{N: modulus, E: 1<<31 - 1})
		if err != nil {
			return nil, err
		}
		chain = append(chain, der)
	}
	return &tls.Certificate{Certificate: chain, PrivateKey: own}, nil
}

const largeKeyBits = 8192

// signedByLargeKey replaces the signature of a certificate by one of largeKeyBits, which is invalid.
func signedByLargeKey(der []byte) ([]byte, error) {
	var signed struct {
		Content   asn1.RawValue
		Algorithm asn1.RawValue
		Signature asn1.BitString
	}
	if _, err := asn1.Unmarshal(der, &signed); err != nil {
		return nil, err
	}
	signed.Signature = asn1.BitString{Bytes: make([]byte, largeKeyBits/8), BitLength: largeKeyBits}
	signed.Signature.Bytes[len(signed.Signature.Bytes)-1] = 2
	return asn1.Marshal(signed)
}
