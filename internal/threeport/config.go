package threeport

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/threeport/threeport-agent/internal/loopback"
)

// Where a client's credentials are mounted by default.
const (
	DefaultCertFile = "/etc/threeport/cert/tls.crt"
	DefaultKeyFile  = "/etc/threeport/cert/tls.key"
	DefaultCAFile   = "/etc/threeport/ca/tls.crt"
)

// DefaultTimeout bounds one request, from dialling to the last byte of its answer.
const DefaultTimeout = 10 * time.Second

// Config says where the control-plane API is and how to authenticate to it.
type Config struct {
	// Server is HOST[:PORT] or a URL (http or https, optionally with a path).
	// Without a scheme it is https if AuthEnabled, else http.
	Server string

	// AuthEnabled turns on mutual TLS with the three files below. Without it
	// CertFile and KeyFile are not read. CAFile is still read for a server given
	// as https. If it is the default and does not exist, the system's
	// authorities are trusted.
	AuthEnabled bool
	CertFile    string // PEM, client certificate
	KeyFile     string // PEM, its private key
	CAFile      string // PEM, authorities of the server's certificate

	// TokenFile holds a bearer token to send with each request; empty for none.
	// Like the certificate files it is read again when it changes.
	TokenFile string

	// Timeout bounds one request.
	Timeout time.Duration

	// The client calls Allowed before each request, and makes no request if it
	// returns an error. Nil allows all requests.
	Allowed func() error
}

// DefaultConfig is mutual TLS with the files where they are mounted. Server has
// no default.
func DefaultConfig() Config {
	return Config{
		AuthEnabled: true,
		CertFile:    DefaultCertFile,
		KeyFile:     DefaultKeyFile,
		CAFile:      DefaultCAFile,
		Timeout:     DefaultTimeout,
	}
}

// Validate names the first bad field and what it accepts. It reads no files.
func (c Config) Validate() error {
	base, err := c.baseURL()
	if err != nil {
		return err
	}
	if c.AuthEnabled {
		for _, f := range []struct{ name, value string }{
			{"CertFile", c.CertFile}, {"KeyFile", c.KeyFile}, {"CAFile", c.CAFile},
		} {
			if f.value == "" {
				return fmt.Errorf("field %s is empty: authentication needs the path of a PEM file", f.name)
			}
		}
	}
	if c.TokenFile != "" && base.Scheme == "http" && !loopback.IsHost(base.Hostname()) {
		return errors.New("field TokenFile: a token is sent over https, or to a loopback address, only")
	}
	if c.Timeout <= 0 {
		return fmt.Errorf("field Timeout %v: must be above zero, such as %v", c.Timeout, DefaultTimeout)
	}
	return nil
}

const serverForms = "give HOST, HOST:PORT, or an http or https URL"

// baseURL is the server's URL without a trailing slash.
func (c Config) baseURL() (*url.URL, error) {
	if c.Server == "" {
		return nil, errors.New("field Server is empty: " + serverForms)
	}
	text := c.Server
	if !strings.Contains(text, "://") {
		if c.AuthEnabled {
			text = "https://" + text
		} else {
			text = "http://" + text
		}
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		// The parser's text repeats the input, which may hold credentials.
		return nil, errors.New("field Server cannot be read: " + serverForms)
	case u.User != nil:
		return nil, errors.New("field Server carries a user name or password: " + serverForms)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("field Server %q: %s", c.Server, serverForms)
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, fmt.Errorf("field Server %q has a query or fragment: %s", c.Server, serverForms)
	case u.Scheme == "http" && c.AuthEnabled:
		return nil, fmt.Errorf("field Server %q is plain http while AuthEnabled asks for mutual TLS: use https, or disable authentication", c.Server)
	}
	if err := validateHost(u); err != nil {
		return nil, fmt.Errorf("field Server %q: %w", c.Server, err)
	}
	u.Path = strings.TrimRight(u.Path, "/")
	u.RawPath = ""
	return u, nil
}

func validateHost(u *url.URL) error {
	if u.Hostname() == "" || strings.ContainsAny(u.Hostname(), " \t") {
		return errors.New("there is no host: " + serverForms)
	}
	if u.Port() == "" && !strings.HasSuffix(u.Host, ":") {
		return nil // the scheme's own
	}
	if port, err := strconv.ParseUint(u.Port(), 10, 16); err != nil || port == 0 {
		return errors.New("the port must be 1 to 65535")
	}
	return nil
}
