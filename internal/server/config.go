package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/threeport/threeport-agent/internal/server/auth"
	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// The defaults of [Config].
const (
	DefaultBindAddress = "127.0.0.1:1323"
	DefaultDatabase    = "sqlite:controlplane.db"
)

// Config says where the API listens, where it keeps its rows and whom it serves.
type Config struct {
	// BindAddress is HOST:PORT; port 0 takes a free one.
	BindAddress string

	// Database is sqlite:FILE, sqlite::memory: or postgres://…; see [store.Config].
	Database string

	// Version is that of the build, as the document of the API has it.
	Version string

	// StrictV0 leaves out all that the API does better than Threeport's own, and everything that is not v0: the same
	// RuntimeEventUID posted twice makes two rows, and there are no report sets, no page, no tokens and no metrics.
	StrictV0 bool

	// AuthEnabled serves TLS, and only clients with a certificate of an authority in CAFile, or with a token. Without it
	// the API is plain HTTP for everyone. The files are read again when they change.
	AuthEnabled bool
	CertFile    string // PEM, the server's certificate
	KeyFile     string // PEM, its private key
	CAFile      string // PEM, authorities of the clients' certificates; empty if there are only tokens

	// Access says what clients may do. Whether they are asked who they are is AuthEnabled's to say.
	Access auth.Config
	// Maintenance says when clusters count as silent, and what is kept for how long.
	Maintenance store.MaintainConfig
	// Limits bound report sets.
	Limits Limits
}

// Limits bound one report set.
type Limits struct {
	// Reports is how many it may have.
	Reports int
	// BodyBytes is how large it may be as sent, DecodedBytes how large before compression.
	BodyBytes, DecodedBytes int64
}

// The bounds of [Limits]: less than the least no agent can work with, and more than the most is a slip.
const (
	leastBytes = 1 << 16
	mostBytes  = 1 << 30
)

// DefaultLimits are 1,000 reports in 8 MiB, or 64 MiB before compression.
func DefaultLimits() Limits {
	return Limits{Reports: store.MaxReports, BodyBytes: 8 << 20, DecodedBytes: 64 << 20}
}

// Validate names the first bad field and what it accepts.
func (l Limits) Validate() error {
	switch {
	case l.Reports < 1 || l.Reports > store.MaxReports:
		return fmt.Errorf("%d reports in a set: accepted are 1 to %d", l.Reports, store.MaxReports)
	case l.BodyBytes < leastBytes || l.BodyBytes > mostBytes:
		return fmt.Errorf("a body of %d bytes: accepted are %d to %d", l.BodyBytes, leastBytes, mostBytes)
	case l.DecodedBytes < l.BodyBytes || l.DecodedBytes > mostBytes:
		return fmt.Errorf("a body of %d bytes before compression: accepted are those of a body (%d) to %d", l.DecodedBytes, l.BodyBytes, mostBytes)
	}
	return nil
}

// DefaultConfig is TLS on a loopback address, with the certificate files where the agent has its own.
func DefaultConfig() Config {
	return Config{
		BindAddress: DefaultBindAddress,
		Database:    DefaultDatabase,
		AuthEnabled: true,
		CertFile:    threeport.DefaultCertFile,
		KeyFile:     threeport.DefaultKeyFile,
		CAFile:      threeport.DefaultCAFile,
		Access:      auth.DefaultConfig(),
		Maintenance: store.DefaultMaintainConfig(),
		Limits:      DefaultLimits(),
	}
}

// Validate names the first bad field and what it accepts. It reads no files.
func (c Config) Validate() error {
	if !isBindAddress(c.BindAddress) {
		return fmt.Errorf("bind address %q: accepted is HOST:PORT, such as %s, with a port of 0 to 65535", c.BindAddress, DefaultBindAddress)
	}
	if err := store.ValidateAddress(c.Database); err != nil {
		return err
	}
	if err := c.validateFiles(); err != nil {
		return err
	}
	if c.StrictV0 && c.Access.SingleSignOn.Issuer != "" {
		return errors.New("single sign-on under strict v0, which has no page to log in to: leave out one of them")
	}
	return errors.Join(c.access().Validate(), c.Maintenance.Validate(), c.Limits.Validate())
}

// isBindAddress tells whether it has a port. What of the host there is on this machine, listening finds.
func isBindAddress(address string) bool {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil
}

// access is Access, as it follows from the other fields.
func (c Config) access() auth.Config {
	may := c.Access
	may.Enabled = c.AuthEnabled
	if host, _, err := net.SplitHostPort(c.BindAddress); err == nil && host != "" {
		may.Hosts = append(slices.Clone(may.Hosts), host)
	}
	return may
}

func (c Config) validateFiles() error {
	if !c.AuthEnabled {
		return nil
	}
	for _, f := range []struct{ name, value string }{
		{"certificate file", c.CertFile}, {"key file", c.KeyFile},
	} {
		if f.value == "" {
			return fmt.Errorf("%s is empty: authentication needs the path of a PEM file", f.name)
		}
	}
	if c.StrictV0 && c.CAFile == "" {
		return errors.New("CA file is empty: v0 knows clients by their certificates only, and needs the path of a PEM file")
	}
	return nil
}

// clientAuth is what a TLS handshake asks of a client. v0 wants a certificate; else a token does instead, and whoever has
// neither is for [auth.Access] to refuse.
func (c Config) clientAuth() tls.ClientAuthType {
	switch {
	case c.StrictV0:
		return tls.RequireAndVerifyClientCert
	case c.CAFile == "":
		return tls.NoClientCert
	default:
		return tls.VerifyClientCertIfGiven
	}
}

// timeouts of requests. A body of v0 may have hundreds of MiB; report sets and watches have times of their own.
const (
	headerTimeout = 10 * time.Second
	readTimeout   = 5 * time.Minute
	writeTimeout  = 5 * time.Minute
	idleTimeout   = 2 * time.Minute
)
