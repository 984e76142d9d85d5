package server

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"

	"github.com/threeport/threeport-agent/internal/controlplane"
)

// The defaults of [Config].
const (
	DefaultBindAddress = "127.0.0.1:1323"
	DefaultDatabase    = "sqlite:controlplane.db"
)

// Config says where the API listens, where it keeps its rows and whom it serves.
type Config struct {
	// BindAddress is HOST:PORT; port 0 takes a free one.
	BindAddress string

	// Database is sqlite:FILE or sqlite::memory:.
	Database string

	// StrictV0 leaves out what the API does better than Threeport's own: the
	// same RuntimeEventUID posted twice makes two rows.
	StrictV0 bool

	// AuthEnabled serves TLS, and only clients with a certificate of an
	// authority in CAFile. Without it the API is plain HTTP for everyone.
	AuthEnabled bool
	CertFile    string // PEM, the server's certificate
	KeyFile     string // PEM, its private key
	CAFile      string // PEM, authorities of the clients' certificates
}

// DefaultConfig is mutual TLS on a loopback address, with the certificate files
// where the agent has its own.
func DefaultConfig() Config {
	return Config{
		BindAddress: DefaultBindAddress,
		Database:    DefaultDatabase,
		AuthEnabled: true,
		CertFile:    controlplane.DefaultCertFile,
		KeyFile:     controlplane.DefaultKeyFile,
		CAFile:      controlplane.DefaultCAFile,
	}
}

// Validate names the first bad field and what it accepts. It reads no files.
func (c Config) Validate() error {
	if _, _, err := net.SplitHostPort(c.BindAddress); err != nil {
		return fmt.Errorf("bind address %q: accepted is HOST:PORT, such as %s", c.BindAddress, DefaultBindAddress)
	}
	if _, err := sqliteFile(c.Database); err != nil {
		return err
	}
	if !c.AuthEnabled {
		return nil
	}
	for _, f := range []struct{ name, value string }{
		{"certificate file", c.CertFile}, {"key file", c.KeyFile}, {"CA file", c.CAFile},
	} {
		if f.value == "" {
			return fmt.Errorf("%s is empty: authentication needs the path of a PEM file", f.name)
		}
	}
	return nil
}

// tls loads the certificate files; nil for plain HTTP.
func (c Config) tls() (*tls.Config, error) {
	if !c.AuthEnabled {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("load server certificate: %w", err)
	}
	pem, err := os.ReadFile(c.CAFile)
	if err != nil {
		return nil, fmt.Errorf("load certificate authorities: %w", err)
	}
	clients := x509.NewCertPool()
	if !clients.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("load certificate authorities: %s holds no PEM certificate", c.CAFile)
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{pair},
		ClientCAs:    clients,
		ClientAuth:   tls.RequireAndVerifyClientCert,
	}, nil
}
