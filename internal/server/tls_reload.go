package server

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// reloadInterval is the least time between two reads of the certificate files, which only handshakes cause.
const reloadInterval = time.Second

// certReloader serves TLS with certificate files that may be replaced meanwhile. A handshake reads the files again, and their
// new content applies to it and to later ones. It also applies to requests with a client certificate, which is refused once
// its authority is removed. Files that do not match, as while they are being replaced, change nothing. It is safe for
// concurrent use.
type certReloader struct {
	files      tlsFiles
	clientAuth tls.ClientAuthType
	log        *slog.Logger
	now        func() time.Time

	current atomic.Pointer[servedConfig]

	mu       sync.Mutex // guards the fields below; a handshake that does not get it uses current
	lastRead time.Time
	content  tlsContent // of the files at lastRead, which may be invalid and not served
}

// servedConfig is the configuration of new connections.
type servedConfig struct {
	*tls.Config
	authorities *clientAuthorities // nil if clients have no certificates
}

// tlsFiles are the paths of a certificate, its key and the authorities of clients.
type tlsFiles struct{ cert, key, ca string }

// tlsContent is the content of the files.
type tlsContent struct{ cert, key, ca []byte }

// newCertReloader reads the files, which have to be valid.
func newCertReloader(files tlsFiles, clientAuth tls.ClientAuthType, log *slog.Logger) (*certReloader, error) {
	r := &certReloader{files: files, clientAuth: clientAuth, log: log, now: time.Now}
	content, err := files.read()
	if err != nil {
		return nil, err
	}
	config, err := content.config(clientAuth)
	if err != nil {
		return nil, err
	}
	r.current.Store(config)
	r.content, r.lastRead = content, r.now()
	return r, nil
}

// config is the configuration to listen with.
func (r *certReloader) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"h2", "http/1.1"},
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			if opened, ok := hello.Conn.(*connection); ok {
				return limitHandshake(r.latest().Config, opened), nil
			}
			return r.latest().Config, nil
		},
	}
}

// collector is the metric of the served certificate. A scrape reads changed files, as a handshake does.
func (r *certReloader) collector() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "controlplane_certificate_expiration_timestamp_seconds",
		Help: "When the certificate of the API ends, in Unix seconds. It is absent without authentication.",
	}, func() float64 { return float64(r.latest().Certificates[0].Leaf.NotAfter.Unix()) })
}

// verify verifies the client certificate of a connection with the current authorities. Connections may outlive an authority for days:
// agents keep theirs open, and so do watches.
func (r *certReloader) verify(state *tls.ConnectionState) error {
	current := r.latest().authorities
	if current == nil || len(state.PeerCertificates) == 0 {
		return errors.New("clients have no certificates")
	}
	if err := current.check(state.PeerCertificates); err != nil {
		return err
	}
	return current.verify(state.PeerCertificates, r.now())
}

// latest is the configuration of the next connection.
func (r *certReloader) latest() *servedConfig {
	if r.mu.TryLock() {
		defer r.mu.Unlock()
		if now := r.now(); now.Sub(r.lastRead) >= reloadInterval {
			r.lastRead = now
			r.reload()
		}
	}
	return r.current.Load()
}

// reload reads the files, and serves their content if it has changed and is valid.
func (r *certReloader) reload() {
	content, err := r.files.read()
	if err != nil {
		r.log.Warn("Certificate files not read: the previous ones stay in use", "error", err)
		return
	}
	if content.equals(r.content) {
		return
	}
	r.content = content
	config, err := content.config(r.clientAuth)
	if err != nil {
		r.log.Warn("Certificate files changed but are invalid: the previous ones stay in use", "error", err)
		return
	}
	r.current.Store(config)
	r.log.Info("Certificate files changed: the new ones are in use")
}

func (f tlsFiles) read() (c tlsContent, err error) {
	for _, file := range []struct {
		what, path string
		content    *[]byte
	}{
		{"server certificate", f.cert, &c.cert}, {"server key", f.key, &c.key}, {"certificate authorities", f.ca, &c.ca},
	} {
		if file.path == "" {
			continue // without authorities no client has a certificate
		}
		if *file.content, err = os.ReadFile(file.path); err != nil {
			return c, fmt.Errorf("load %s: %w", file.what, err)
		}
	}
	return c, nil
}

func (c tlsContent) equals(other tlsContent) bool {
	return bytes.Equal(c.cert, other.cert) && bytes.Equal(c.key, other.key) && bytes.Equal(c.ca, other.ca)
}

// config is the configuration of connections.
func (c tlsContent) config(clientAuth tls.ClientAuthType) (*servedConfig, error) {
	pair, err := tls.X509KeyPair(c.cert, c.key)
	if err != nil {
		return nil, fmt.Errorf("load server certificate: %w", err)
	}
	config := &servedConfig{Config: &tls.Config{
		MinVersion:   tls.VersionTLS12,
		NextProtos:   []string{"h2", "http/1.1"},
		Certificates: []tls.Certificate{pair},
		ClientAuth:   clientAuth,
		// A resumed session would not be verified against the current authorities.
		SessionTicketsDisabled: true,
	}}
	if clientAuth == tls.NoClientCert {
		return config, nil
	}
	found, err := authorities(c.ca)
	if err != nil {
		return nil, fmt.Errorf("load certificate authorities: %w", err)
	}
	config.authorities = newClientAuthorities(found)
	config.ClientCAs = config.authorities.pool // a client gets their subjects
	config.VerifyConnection = func(state tls.ConnectionState) error {
		if err := config.authorities.check(state.PeerCertificates); err != nil || clientAuth != tls.RequireAnyClientCert {
			return err
		}
		return config.authorities.verify(state.PeerCertificates, time.Now())
	}
	return config, nil
}

// authorities parses certificates. A file that ends within one is still being written.
func authorities(text []byte) (found []*x509.Certificate, err error) {
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			break
		}
		text = rest
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		found = append(found, cert)
	}
	if len(found) == 0 {
		return nil, errors.New("the file holds no PEM certificate")
	}
	if bytes.Contains(text, []byte("-----BEGIN")) {
		return nil, errors.New("the file ends within a PEM block")
	}
	return found, nil
}
