// Package otlp sends messages of OTLP over HTTP to a backend of OpenTelemetry. It knows nothing of their contents.
package otlp

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/threeport/threeport-agent/internal/loopback"
)

// Config says where the messages of a signal are sent.
type Config struct {
	// Endpoint is an URL; empty for no export. Its path is that of the signal if it has none.
	Endpoint string
	// CAFile has the authorities of the backend's certificate in PEM; empty for those of the system. It is read again after a failure.
	CAFile string
	// HeadersFile has headers of the requests, one NAME: VALUE per line; empty for none. It is read before each request.
	HeadersFile string
}

// The paths of the signals.
const (
	LogsPath   = "/v1/logs"
	TracesPath = "/v1/traces"
)

// Validate names the first bad field and what it accepts. It reads no files.
func (c Config) Validate() error {
	if c.Endpoint == "" {
		return nil
	}
	at, err := c.url("")
	if err == nil && c.HeadersFile != "" && at.Scheme == "http" && !loopback.IsHost(at.Hostname()) {
		return errors.New("--otlp-headers-file with an OTLP endpoint of plain HTTP: the headers would be readable in the network, so use an https URL or a loopback address")
	}
	return err
}

// url is the address of the endpoint. The errors do not quote it, because it may have credentials.
func (c Config) url(path string) (*url.URL, error) {
	at, err := url.Parse(c.Endpoint)
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" {
		return nil, errors.New("OTLP endpoint: use a URL of HTTP, such as https://collector.example.org:4318")
	}
	if at.User != nil || at.RawQuery != "" || at.Fragment != "" {
		return nil, errors.New("OTLP endpoint: use a URL without a user, a query and a fragment; credentials belong into --otlp-headers-file")
	}
	if at.Path == "" || at.Path == "/" {
		at.Path = path
	}
	return at, nil
}

// requestTimeout is OTLP's default for a request with its answer.
const requestTimeout = 10 * time.Second

// maxAnswer limits the part of an answer that is read.
const maxAnswer = 64 << 10

// Client sends to one endpoint. It permits no concurrent calls.
type Client struct {
	config         Config
	url, userAgent string
	http           *http.Client
}

// NewClient returns a client of a valid configuration, which has an endpoint. path is that of the signal. The files must be readable.
func NewClient(config Config, path, userAgent string) (*Client, error) {
	at, err := config.url(path)
	if err != nil {
		return nil, err
	}
	c := &Client{config: config, url: at.String(), userAgent: userAgent, http: &http.Client{
		Timeout: requestTimeout,
		// The headers may be secret, and are for this host only.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	if _, err := c.headers(); err != nil {
		return nil, err
	}
	return c, c.connect()
}

// URL is the address to which the client sends.
func (c *Client) URL() string { return c.url }

// Close closes the connection.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// connect uses the current authorities for further connections.
func (c *Client) connect() error {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.config.CAFile != "" {
		authorities, err := os.ReadFile(c.config.CAFile)
		if err != nil {
			return fmt.Errorf("--otlp-ca-file: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(authorities) {
			return fmt.Errorf("--otlp-ca-file: no certificate in %s", c.config.CAFile)
		}
	}
	c.http.CloseIdleConnections()
	c.http.Transport = &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: config, ForceAttemptHTTP2: true, MaxIdleConns: 1}
	return nil
}

// Answer is the answer of a backend, with the beginning of its body.
type Answer struct {
	Code   int
	Header http.Header
	Body   []byte
}

// Accepted reports whether the backend accepted the message, at least in part.
func (a *Answer) Accepted() bool { return a.Code >= 200 && a.Code < 300 }

// Post sends a message. The next call after an error uses a new connection.
func (c *Client) Post(ctx context.Context, message []byte) (*Answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(message))
	if err != nil {
		return nil, err
	}
	if req.Header, err = c.headers(); err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Set("User-Agent", c.userAgent)
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, errors.Join(err, c.connect())
	}
	defer func() { _ = resp.Body.Close() }() // only read
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	return &Answer{resp.StatusCode, resp.Header, body}, nil
}

// headers returns the headers of HeadersFile. The errors show no values.
func (c *Client) headers() (http.Header, error) {
	headers := http.Header{}
	if c.config.HeadersFile == "" {
		return headers, nil
	}
	text, err := os.ReadFile(c.config.HeadersFile)
	if err != nil {
		return nil, fmt.Errorf("--otlp-headers-file: %w", err)
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		if strings.TrimSpace(line) == "" {
			continue
		}
		name, value, found := strings.Cut(line, ":")
		if !found {
			return nil, fmt.Errorf("--otlp-headers-file: line %d of %s is no header: use NAME: VALUE", n, c.config.HeadersFile)
		}
		headers.Set(strings.TrimSpace(name), strings.TrimSpace(value)) // net/http checks both
	}
	return headers, nil
}
