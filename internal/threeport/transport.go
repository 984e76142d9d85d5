package threeport

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/threeport/threeport-agent/internal/scrub"
)

// reloadingTransport is an [http.RoundTripper] over a transport that is replaced when the certificate files change. So a
// rotated Secret takes effect with the next request, on a new connection.
//
// It calls stat for the files on every request, which is cheap compared with the request, and needs no goroutine.
type reloadingTransport struct {
	tlsFiles tlsFiles

	mu      sync.Mutex
	current *http.Transport
	expiry  time.Time   // when the client certificate in current ends; zero without one
	seen    fingerprint // fingerprint of the files in current
}

func newReloadingTransport(c Config, https bool) (*reloadingTransport, error) {
	t := &reloadingTransport{}
	if https {
		t.tlsFiles = tlsFiles{ca: c.CAFile, caOptional: !c.AuthEnabled && c.CAFile == DefaultCAFile}
		if c.AuthEnabled {
			t.tlsFiles.cert, t.tlsFiles.key = c.CertFile, c.KeyFile
		}
	}
	seen := t.tlsFiles.fingerprint()
	config, err := t.tlsFiles.load()
	if err != nil {
		return nil, err
	}
	t.use(config, seen)
	return t, nil
}

// RoundTrip sends a request with the current certificate.
func (t *reloadingTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	return t.transport().RoundTrip(req)
}

// CloseIdleConnections makes [http.Client.CloseIdleConnections] reach the transport.
func (t *reloadingTransport) CloseIdleConnections() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.current.CloseIdleConnections()
}

// transport returns the current transport, and first replaces it if the files have changed. Half-written files, such as a
// new certificate with the old key, do not load. Then the old transport stays, and the next request tries again.
func (t *reloadingTransport) transport() *http.Transport {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.tlsFiles.fingerprint() // before loading, so that the next request finds a change in between
	if now == t.seen {
		return t.current
	}
	config, err := t.tlsFiles.load()
	if err != nil {
		return t.current
	}
	t.current.CloseIdleConnections() // requests under way finish on it
	t.use(config, now)
	return t.current
}

// use replaces the transport by one with a configuration, which is nil for plain http.
func (t *reloadingTransport) use(config *tls.Config, seen fingerprint) {
	t.current, t.seen, t.expiry = scrub.NewTransport(config), seen, time.Time{}
	if config != nil && len(config.Certificates) > 0 {
		t.expiry = config.Certificates[0].Leaf.NotAfter
	}
}

// certificateExpiry returns when the client certificate ends that the next request uses; zero without one.
func (t *reloadingTransport) certificateExpiry() time.Time {
	t.transport() // reads changed files
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.expiry
}

// tlsFiles are the paths of the files for a TLS configuration; empty for plain http.
type tlsFiles struct {
	cert, key, ca string
	caOptional    bool // without the file the system's authorities are used
}

// load reads the files. It returns nil for plain http.
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

// fingerprint identifies a version of the files. Fingerprints are compared with ==.
type fingerprint [3]struct {
	modified int64 // Unix nanoseconds
	size     int64 // bytes
}

// fingerprint follows symbolic links, because the kubelet updates a mounted Secret by replacing a link. The fingerprint of a
// missing file is zero.
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
