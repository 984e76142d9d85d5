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
// handshake, and what is new in them counts for this handshake and those after it; with requests that come with a client
// certificate too, for which authorities that are gone do not count any more. Files that do not belong together,
// as while they are being replaced, change nothing. It is safe for concurrent use.
type reloader struct {
	files      tlsFiles
	clientAuth tls.ClientAuthType
	log        *slog.Logger
	now        func() time.Time

	current atomic.Pointer[served]

	mu     sync.Mutex // of the following; who finds it taken need not look
	looked time.Time
	read   tlsContent // what the files held then: not always what is served
}

// served is what connections are made with.
type served struct {
	*tls.Config
	// authorities are those in ClientCAs, by their DER.
	authorities map[string]bool
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
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return r.newest().Config, nil },
	}
}

// trusts tells whether the client certificate of a connection would be taken now. Connections may outlive an authority by
// any time: agents keep theirs open, and a watch goes on for days.
func (r *reloader) trusts(state *tls.ConnectionState) bool {
	now := r.newest()
	for _, chain := range state.VerifiedChains {
		if now.authorities[string(chain[len(chain)-1].Raw)] {
			return true
		}
	}
	if now.ClientCAs == nil || len(state.PeerCertificates) == 0 {
		return false
	}
	// The authority may have a new certificate for the same key.
	between := x509.NewCertPool()
	for _, cert := range state.PeerCertificates[1:] {
		between.AddCert(cert)
	}
	_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{
		Roots: now.ClientCAs, Intermediates: between, CurrentTime: r.now(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	return err == nil
}

// newest is the configuration of the next connection.
func (r *reloader) newest() *served {
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
func (c tlsContent) config(clientAuth tls.ClientAuthType) (*served, error) {
	pair, err := tls.X509KeyPair(c.cert, c.key)
	if err != nil {
		return nil, fmt.Errorf("load server certificate: %w", err)
	}
	config := &served{Config: &tls.Config{
		MinVersion:   tls.VersionTLS12,
		NextProtos:   []string{"h2", "http/1.1"},
		Certificates: []tls.Certificate{pair},
		ClientAuth:   clientAuth,
		// A session that is resumed would not be held to the authorities of today.
		SessionTicketsDisabled: true,
	}}
	if clientAuth == tls.NoClientCert {
		return config, nil
	}
	found, err := authorities(c.ca)
	if err != nil {
		return nil, fmt.Errorf("load certificate authorities: %w", err)
	}
	config.ClientCAs, config.authorities = x509.NewCertPool(), make(map[string]bool, len(found))
	for _, cert := range found {
		config.ClientCAs.AddCert(cert)
		config.authorities[string(cert.Raw)] = true
	}
	return config, nil
}

// authorities reads certificates. A file that ends within one was caught while it was written.
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
