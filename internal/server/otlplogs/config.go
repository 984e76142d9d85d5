package otlplogs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
)

// Config configures an [Exporter].
type Config struct {
	// Endpoint is the URL to send to; empty for no export. Its path is that of OTLP if it has none.
	Endpoint string
	// CAFile has the authorities of the backend's certificate in PEM; empty for those of the system.
	CAFile string
	// HeadersFile has headers of the requests, one NAME: VALUE per line; empty for none. It is read before each request.
	HeadersFile string
}

// Validate names the first bad field and what it accepts. It reads no files.
func (c Config) Validate() error {
	if c.Endpoint == "" {
		if c.CAFile != "" || c.HeadersFile != "" {
			return errors.New("OTLP files without an endpoint for logs have no effect: set the endpoint, or leave out the files")
		}
		return nil
	}
	at, err := c.url()
	if err == nil && c.HeadersFile != "" && at.Scheme == "http" && !isLoopback(at.Hostname()) {
		return errors.New("headers for OTLP over plain HTTP would be readable in the network: use an https URL, or a loopback address")
	}
	return err
}

// defaultPath is that of OTLP over HTTP.
const defaultPath = "/v1/logs"

func (c Config) url() (*url.URL, error) {
	at, err := url.Parse(c.Endpoint)
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" || at.User != nil || at.Fragment != "" {
		return nil, errors.New("OTLP endpoint for logs: use a URL without a password, such as https://collector.example.org:4318/v1/logs")
	}
	if at.Path == "" || at.Path == "/" {
		at.Path = defaultPath
	}
	return at, nil
}

func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}

// newClient returns the HTTP client for the backend. It follows no redirects, so that secret headers reach no other host.
func (c Config) newClient() (*http.Client, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CAFile != "" {
		authorities, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read the CA file of the OTLP backend: %w", err)
		}
		transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(authorities) {
			return nil, fmt.Errorf("CA file of the OTLP backend: no certificate in %s", c.CAFile)
		}
	}
	return &http.Client{
		Transport: transport, Timeout: requestTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// addHeaders adds the headers of HeadersFile. Errors do not show values, which may be secret.
func (c Config) addHeaders(to http.Header) error {
	if c.HeadersFile == "" {
		return nil
	}
	text, err := os.ReadFile(c.HeadersFile)
	if err != nil {
		return fmt.Errorf("read the headers of the OTLP backend: %w", err)
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		if strings.TrimSpace(line) == "" {
			continue
		}
		name, value, found := strings.Cut(line, ":")
		if !found {
			return fmt.Errorf("headers of the OTLP backend: line %d of %s is no header: use NAME: VALUE", n, c.HeadersFile)
		}
		to.Set(strings.TrimSpace(name), strings.TrimSpace(value)) // net/http checks both
	}
	return nil
}
