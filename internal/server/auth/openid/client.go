package openid

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
)

// maxResponseBytes limits each response of the provider.
const maxResponseBytes = 1 << 20

// newClient returns the HTTP client for the provider. It follows no redirects, so that secrets reach no other host.
func newClient(config Config) (*http.Client, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	if config.CAFile != "" {
		authorities, err := os.ReadFile(config.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read CA file of the identity provider: %w", err)
		}
		transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(authorities) {
			return nil, fmt.Errorf("CA file of the identity provider: no certificate in %s", config.CAFile)
		}
	}
	return &http.Client{
		Transport: limitedTransport{transport}, Timeout: config.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// limitedTransport limits the size of responses.
type limitedTransport struct{ *http.Transport }

// RoundTrip implements [http.RoundTripper].
func (b limitedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.Transport.RoundTrip(r)
	if err == nil {
		resp.Body = http.MaxBytesReader(nil, resp.Body, maxResponseBytes)
	}
	return resp, err
}
