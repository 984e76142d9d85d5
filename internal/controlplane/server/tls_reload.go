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
)

// lookEvery is how often the certificate files are looked at, at most: only handshakes look.
const lookEvery = time.Second

// reloader serves TLS with certificate files that may be replaced while it does. The files are read again at a
// handshake, and what is new in them counts for this handshake and those after it. Files that do not belong together,
// as while they are being replaced, change nothing. It is safe for concurrent use.
type reloader struct {
	files      tlsFiles
	clientAuth tls.ClientAuthType
	log        *slog.Logger
	now        func() time.Time

	current atomic.Pointer[tls.Config]

	mu     sync.Mutex // of the following; who finds it taken need not look
	looked time.Time
	read   tlsContent // what the files held then: not always what is served
}

// tlsFiles are the paths of a certificate, its key and the authorities of clients.
type tlsFiles struct{ cert, key, ca string }

// tlsContent is what the files hold.
type tlsContent struct{ cert, key, ca []byte }

// newReloader reads the files; they have to be valid now.
func newReloader(files tlsFiles, clientAuth tls.ClientAuthType, log *slog.Logger) (*reloader, error) {
	r := &reloader{files: files, clientAuth: clientAuth, log: log, now: time.Now}
	content, err := files.read()
	if err != nil {
		return nil, err
	}
	config, err := content.config(clientAuth)
	if err != nil {
		return nil, err
	}
	r.current.Store(config)
	r.read, r.looked = content, r.now()
	return r, nil
}

// config is the one to listen with.
func (r *reloader) config() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		NextProtos:         []string{"h2", "http/1.1"},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return r.newest(), nil },
	}
}

// newest is the configuration of the next connection.
func (r *reloader) newest() *tls.Config {
	if r.mu.TryLock() {
		defer r.mu.Unlock()
		if now := r.now(); now.Sub(r.looked) >= lookEvery {
			r.looked = now
			r.look()
		}
	}
	return r.current.Load()
}

// look reads the files, and takes what is new in them.
func (r *reloader) look() {
	content, err := r.files.read()
	if err != nil {
		r.log.Warn("Certificate files not read: the old ones serve on", "error", err)
		return
	}
	if content.equals(r.read) {
		return
	}
	r.read = content
	config, err := content.config(r.clientAuth)
	if err != nil {
		r.log.Warn("Certificate files changed, but cannot be used: the old ones serve on", "error", err)
		return
	}
	r.current.Store(config)
	r.log.Info("Certificate files changed: the new ones serve")
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
func (c tlsContent) config(clientAuth tls.ClientAuthType) (*tls.Config, error) {
	pair, err := tls.X509KeyPair(c.cert, c.key)
	if err != nil {
		return nil, fmt.Errorf("load server certificate: %w", err)
	}
	config := &tls.Config{
		MinVersion:   tls.VersionTLS12,
		NextProtos:   []string{"h2", "http/1.1"},
		Certificates: []tls.Certificate{pair},
		ClientAuth:   clientAuth,
		// A session that is resumed would not be held to the authorities of today.
		SessionTicketsDisabled: true,
	}
	if clientAuth == tls.NoClientCert {
		return config, nil
	}
	if config.ClientCAs, err = authorities(c.ca); err != nil {
		return nil, fmt.Errorf("load certificate authorities: %w", err)
	}
	return config, nil
}

// authorities reads certificates. A file that ends within one was caught while it was written.
func authorities(text []byte) (*x509.CertPool, error) {
	pool, count := x509.NewCertPool(), 0
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
		pool.AddCert(cert)
		count++
	}
	if count == 0 {
		return nil, errors.New("the file holds no PEM certificate")
	}
	if bytes.Contains(text, []byte("-----BEGIN")) {
		return nil, errors.New("the file ends within a PEM block")
	}
	return pool, nil
}
