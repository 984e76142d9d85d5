package threeport

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"sync"

	"github.com/threeport/threeport-agent/internal/scrub"
)

// credentials is an [http.RoundTripper] over a transport that is replaced when
// the certificate files change, and that adds the bearer token. A rotated
// Secret thus takes effect with the next request: with a new certificate,
// authorities and connections, without a restart.
//
// It looks at the files (a stat each) on every request, which is far cheaper
// than the request, and needs no goroutine.
type credentials struct {
	tlsFiles  tlsFiles
	tokenFile string

	mu      sync.Mutex
	current *http.Transport
	seen    fingerprint // of the files that current was made from
}

func newCredentials(c Config, https bool) (*credentials, error) {
	cr := &credentials{tokenFile: c.TokenFile}
	if https {
		cr.tlsFiles = tlsFiles{ca: c.CAFile, caOptional: !c.AuthEnabled && c.CAFile == DefaultCAFile}
		if c.AuthEnabled {
			cr.tlsFiles.cert, cr.tlsFiles.key = c.CertFile, c.KeyFile
		}
	}
	seen := cr.tlsFiles.fingerprint()
	config, err := cr.tlsFiles.load()
	if err != nil {
		return nil, err
	}
	cr.current, cr.seen = scrub.NewTransport(config), seen
	if _, err := cr.token(); err != nil {
		return nil, err
	}
	return cr, nil
}

// RoundTrip sends the request with the credentials of this moment.
func (c *credentials) RoundTrip(req *http.Request) (*http.Response, error) {
	token, err := c.token()
	if err != nil {
		return nil, err
	}
	if token != "" {
		req = req.Clone(req.Context())
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return c.transport().RoundTrip(req)
}

// CloseIdleConnections makes [http.Client.CloseIdleConnections] reach the transport.
func (c *credentials) CloseIdleConnections() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.current.CloseIdleConnections()
}

// transport is the current transport, replaced first if the files changed.
// Files caught in the middle of a change (a new certificate with the old key)
// do not load: the old transport serves on, and the next request looks again.
func (c *credentials) transport() *http.Transport {
	c.mu.Lock()
	defer c.mu.Unlock()
	// Taken before loading: a change in between is seen by the next request.
	now := c.tlsFiles.fingerprint()
	if now == c.seen {
		return c.current
	}
	config, err := c.tlsFiles.load()
	if err != nil {
		return c.current
	}
	c.current.CloseIdleConnections() // requests under way finish on it
	c.current, c.seen = scrub.NewTransport(config), now
	return c.current
}

// token is the bearer token, or "" if none is configured.
func (c *credentials) token() (string, error) {
	if c.tokenFile == "" {
		return "", nil
	}
	raw, err := os.ReadFile(c.tokenFile)
	if err != nil {
		return "", fmt.Errorf("read bearer token: %w", err)
	}
	token := strings.TrimSpace(string(raw))
	if token == "" {
		return "", fmt.Errorf("read bearer token: %s is empty", c.tokenFile)
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		// net/http would refuse the header with an error that quotes it.
		return "", fmt.Errorf("read bearer token: %s holds more than one token", c.tokenFile)
	}
	return token, nil
}

// tlsFiles are the paths that a TLS configuration is loaded from; the zero
// value is plain http.
type tlsFiles struct {
	cert, key, ca string
	caOptional    bool // a missing ca means the system's authorities
}

// load reads the files anew. It returns nil for plain http.
func (f tlsFiles) load() (*tls.Config, error) {
	if f == (tlsFiles{}) {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.cert != "" {
		pair, err := tls.LoadX509KeyPair(f.cert, f.key)
		if err != nil {
			return nil, fmt.Errorf("load client certificate: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	if f.ca == "" {
		return config, nil
	}
	pem, err := os.ReadFile(f.ca)
	switch {
	case errors.Is(err, fs.ErrNotExist) && f.caOptional:
		return config, nil
	case err != nil:
		return nil, fmt.Errorf("load certificate authorities: %w", err)
	}
	config.RootCAs = x509.NewCertPool()
	if !config.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("load certificate authorities: %s holds no PEM certificate", f.ca)
	}
	return config, nil
}

// fingerprint tells one state of the files from another, comparable with ==.
type fingerprint [3]struct {
	modified int64 // Unix nanoseconds
	size     int64 // bytes
}

// fingerprint follows symbolic links, so that it sees the swap by which the
// kubelet updates a mounted Secret. A missing file is the zero state.
func (f tlsFiles) fingerprint() fingerprint {
	var fp fingerprint
	for i, name := range []string{f.cert, f.key, f.ca} {
		if name == "" {
			continue
		}
		if info, err := os.Stat(name); err == nil {
			fp[i].modified, fp[i].size = info.ModTime().UnixNano(), info.Size()
		}
	}
	return fp
}
