package tracing

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Config says where spans are sent.
type Config struct {
	// Endpoint is the URL of an OTLP receiver; empty for no traces. Without a path it is that of OTLP, /v1/traces.
	Endpoint string
	// CAFile is a PEM file of the authorities of the receiver's certificate; empty for the system's. It is read again after a failure.
	CAFile string
	// HeadersFile has headers for each request, one a line as "Name: value"; empty for none. It is read for each request.
	HeadersFile string
}

// Validate names the first wrong flag and the accepted values. It reads no files.
func (c Config) Validate() error {
	if c.Endpoint == "" {
		return nil
	}
	u, err := c.url()
	if err != nil {
		return err
	}
	if c.HeadersFile != "" && u.Scheme == "http" && !isLoopback(u.Hostname()) {
		return errors.New("--otlp-headers-file: the headers are credentials, so --otlp-traces-endpoint has to be https, or a loopback address")
	}
	return nil
}

// defaultPath is that of OTLP over HTTP.
const defaultPath = "/v1/traces"

func (c Config) url() (*url.URL, error) {
	const forms = "give an http or https URL such as https://collector.example:4318" + defaultPath
	u, err := url.Parse(c.Endpoint)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https": // the text may have credentials
		return nil, errors.New("--otlp-traces-endpoint is not a URL of HTTP: " + forms)
	case u.User != nil || u.Fragment != "":
		return nil, errors.New("--otlp-traces-endpoint has a user, a password or a fragment: give credentials in --otlp-headers-file")
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = defaultPath
	}
	return u, nil
}

func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}

// client sends spans to an OTLP receiver. It implements [otlptrace.Client], without concurrent calls. The client of otlptracehttp links
// gRPC, and drops nothing while it repeats a request.
type client struct {
	config Config
	url    string
	http   *http.Client
}

func newClient(config Config) (*client, error) {
	u, err := config.url()
	if err != nil {
		return nil, err
	}
	c := &client{config: config, url: u.String()}
	if _, err := c.headers(); err != nil {
		return nil, err
	}
	return c, c.connect()
}

// connect replaces the HTTP client by one with the current authorities.
func (c *client) connect() error {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.config.CAFile != "" {
		pem, err := os.ReadFile(c.config.CAFile)
		if err != nil {
			return fmt.Errorf("--otlp-ca-file: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return fmt.Errorf("--otlp-ca-file: %s has no PEM certificate", c.config.CAFile)
		}
	}
	if c.http != nil {
		c.http.CloseIdleConnections()
	}
	c.http = &http.Client{
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: config, MaxIdleConns: 1},
		// The headers are for this receiver only.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return nil
}

// headers returns the headers of the file. The error quotes no value.
func (c *client) headers() (http.Header, error) {
	headers := http.Header{}
	if c.config.HeadersFile == "" {
		return headers, nil
	}
	text, err := os.ReadFile(c.config.HeadersFile)
	if err != nil {
		return nil, fmt.Errorf("--otlp-headers-file: %w", err)
	}
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		if strings.TrimSpace(line) == "" {
			continue
		}
		name, value, found := strings.Cut(line, ":")
		if !found {
			return nil, fmt.Errorf("--otlp-headers-file: %s:%d is not a header: write one a line, such as Authorization: Bearer TOKEN", c.config.HeadersFile, number)
		}
		headers.Set(strings.TrimSpace(name), strings.TrimSpace(value)) // net/http checks both
	}
	return headers, nil
}

// Start does nothing: the first request connects.
func (c *client) Start(context.Context) error { return nil }

// Stop closes the connection.
func (c *client) Stop(context.Context) error {
	c.http.CloseIdleConnections()
	return nil
}

// UploadTraces sends spans. After a failure, the next request uses a new connection.
func (c *client) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	err := c.post(ctx, spans)
	if err != nil {
		err = errors.Join(err, c.connect())
	}
	return err
}

func (c *client) post(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	// The request of OTLP has the same fields. Its own package needs gRPC.
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil {
		return fmt.Errorf("encode spans: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if request.Header, err = c.headers(); err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-protobuf")
	request.Header.Set("User-Agent", "threeport")
	answer, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close() //nolint:errcheck // only read
	if _, err := io.CopyN(io.Discard, answer.Body, 64<<10); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the answer: %w", err)
	}
	if answer.StatusCode < 200 || answer.StatusCode >= 300 {
		return fmt.Errorf("the collector answered with HTTP %d", answer.StatusCode)
	}
	return nil
}
