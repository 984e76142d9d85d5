package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/threeport/threeport-agent/internal/otlp"
	"github.com/threeport/threeport-agent/internal/server/auth"
	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// The defaults of [Config].
const (
	DefaultBindAddress = "127.0.0.1:1323"
	DefaultDatabase    = "sqlite:controlplane.db"
	DefaultReturnTime  = 10 * time.Second
)

// Config is the configuration of a [Server].
type Config struct {
	// BindAddress is HOST:PORT; port 0 takes a free one.
	BindAddress string

	// Database is sqlite:FILE, sqlite::memory: or postgres://…; see [store.Config].
	Database string

	// Version is the version of the build, for the OpenAPI document.
	Version string

	// StrictV0 serves v0 exactly as Threeport's own API does, without report sets, page, tokens and metrics. The same
	// RuntimeEventUID posted twice makes two rows.
	StrictV0 bool

	// AuthEnabled serves TLS, to clients with a certificate of an authority in CAFile or with a token. Otherwise the API is
	// plain HTTP for everyone. The server reads the files again when they change.
	AuthEnabled bool
	CertFile    string // PEM, the server's certificate
	KeyFile     string // PEM, its private key
	CAFile      string // PEM, authorities of the clients' certificates; empty for tokens only

	// TrustedProxies are the networks of proxies whose X-Forwarded-For names the client for the limits of an address.
	TrustedProxies []netip.Prefix
	// RedactionRules is a file or directory of rules for definitions, besides the built-in rules; empty for none. The server
	// reads it again when it changes.
	RedactionRules string

	// RequireAssignment refuses agents the instances that are not assigned to their cluster. Otherwise the first agent that
	// reports an instance without a cluster claims it. It has no effect without authentication.
	RequireAssignment bool

	// Access configures authorization. Its Enabled and Hosts follow from the fields above.
	Access auth.Config
	// Maintenance configures when a cluster counts as silent, and how long rows are kept.
	Maintenance store.MaintainConfig
	// ReturnTime is how long an offline agent has to report again until old statuses are shown: see [store.Config].
	ReturnTime time.Duration
	// Limits bound the bodies of requests, and watches.
	Limits Limits
	// WorkloadMetrics configures the metric of each workload.
	WorkloadMetrics store.WorkloadMetrics
	// Logs configures the export of Events and status changes.
	Logs otlp.Config
	// Traces configures the export of the spans of sampled reports.
	Traces otlp.Config
}

// Limits bound the body of a request, the watches of one principal, and the stored data of one cluster.
type Limits struct {
	// Reports is the maximum number of reports of a report set.
	Reports int
	// BodyBytes is the maximum size of a report set as sent, DecodedBytes before compression.
	BodyBytes, DecodedBytes int64
	// V0BodyBytes is the maximum size of a body of v0. That of an agent may be smaller.
	V0BodyBytes int64
	// Watches is the maximum number of watches that a principal has open at a time.
	Watches int
	// ClusterBytes limits the stored definitions and objects of one cluster.
	ClusterBytes int64
}

// The bounds of [Limits] in bytes. No agent works with less than minBytes; more than maxBytes is a mistake.
const (
	minBytes = 1 << 16
	maxBytes = 1 << 30
)

// DefaultLimits are 1,000 reports in 8 MiB, or 64 MiB before compression, 16 MiB for v0, 200 watches, and 1 GiB per cluster.
func DefaultLimits() Limits {
	return Limits{Reports: store.MaxReports, BodyBytes: 8 << 20, DecodedBytes: 64 << 20, V0BodyBytes: 16 << 20, Watches: 200, ClusterBytes: store.DefaultClusterBytes}
}

// Validate names the first bad field and what it accepts.
func (l Limits) Validate() error {
	switch {
	case l.Reports < 1 || l.Reports > store.MaxReports:
		return fmt.Errorf("%d reports in a set: use 1 to %d", l.Reports, store.MaxReports)
	case l.BodyBytes < minBytes || l.BodyBytes > maxBytes:
		return fmt.Errorf("a body of %d bytes: use %d to %d", l.BodyBytes, minBytes, maxBytes)
	case l.V0BodyBytes < minBytes || l.V0BodyBytes > maxBytes:
		return fmt.Errorf("a body of v0 of %d bytes: use %d to %d", l.V0BodyBytes, minBytes, maxBytes)
	case l.ClusterBytes < minBytes:
		return fmt.Errorf("%d bytes of a cluster: use at least %d", l.ClusterBytes, minBytes)
	case l.DecodedBytes < l.BodyBytes || l.DecodedBytes > maxBytes:
		return fmt.Errorf("a body of %d bytes before compression: use at least the limit of a body (%d) and at most %d", l.DecodedBytes, l.BodyBytes, maxBytes)
	case l.Watches < 1 || l.Watches > maxWatchesPerRole:
		return fmt.Errorf("%d watches of a principal: use 1 to %d", l.Watches, maxWatchesPerRole)
	}
	return nil
}

// DefaultConfig serves TLS on a loopback address, with the agent's default certificate files.
func DefaultConfig() Config {
	return Config{
		BindAddress: DefaultBindAddress,
		Database:    DefaultDatabase,
		AuthEnabled: true,

		RequireAssignment: true,

		CertFile:    threeport.DefaultCertFile,
		KeyFile:     threeport.DefaultKeyFile,
		CAFile:      threeport.DefaultCAFile,
		Access:      auth.DefaultConfig(),
		Maintenance: store.DefaultMaintainConfig(),
		ReturnTime:  DefaultReturnTime,
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
		return errors.New("single sign-on under strict v0: leave out one of them, because strict v0 has no page to log in to")
	}
	if c.StrictV0 && c.WorkloadMetrics.Workloads > 0 {
		return errors.New("metrics of workloads under strict v0: leave out one of them, because strict v0 has no metrics")
	}
	if c.RedactionRules != "" && (c.StrictV0 || !c.AuthEnabled) {
		return errors.New("redaction rules without effect: every client is an administrator without authentication and under strict v0, so leave out the rules")
	}
	return errors.Join(validateProxies(c.TrustedProxies), c.authConfig().Validate(), c.Maintenance.Validate(), c.Limits.Validate(), c.WorkloadMetrics.Validate(), c.validateOTLP())
}

// isBindAddress reports whether an address has a valid port. Listening checks the host.
func isBindAddress(address string) bool {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil
}

// authConfig is Access with the fields that follow from others.
func (c Config) authConfig() auth.Config {
	config := c.Access
	config.Enabled = c.AuthEnabled
	if host, _, err := net.SplitHostPort(c.BindAddress); err == nil && host != "" {
		config.Hosts = append(slices.Clone(config.Hosts), host)
	}
	return config
}

func (c Config) validateFiles() error {
	if !c.AuthEnabled {
		return nil
	}
	for _, f := range []struct{ name, value string }{
		{"certificate file", c.CertFile}, {"key file", c.KeyFile},
	} {
		if f.value == "" {
			return fmt.Errorf("%s is empty: set the path of a PEM file, or disable authentication", f.name)
		}
	}
	if c.StrictV0 && c.CAFile == "" {
		return errors.New("CA file is empty: set the path of a PEM file, because strict v0 knows clients by their certificates only")
	}
	return nil
}

// validateOTLP names the first bad flag of the exports.
func (c Config) validateOTLP() error {
	if c.Logs.Endpoint == "" && c.Traces.Endpoint == "" && (c.Logs.CAFile != "" || c.Logs.HeadersFile != "") {
		return errors.New("--otlp-ca-file and --otlp-headers-file have no effect without an OTLP endpoint: " +
			"set --otlp-logs-endpoint or --otlp-traces-endpoint, or leave out the files")
	}
	if c.StrictV0 && (c.Logs.Endpoint != "" || c.Traces.Endpoint != "") {
		return errors.New("export of logs or traces under strict v0: leave out one of them, because strict v0 has the features of Threeport's API only")
	}
	if err := c.Logs.Validate(); err != nil {
		return fmt.Errorf("--otlp-logs-endpoint: %w", err)
	}
	if err := c.Traces.Validate(); err != nil {
		return fmt.Errorf("--otlp-traces-endpoint: %w", err)
	}
	return nil
}

// logBytes limits the records that wait for export; 0 without an export.
func (c Config) logBytes() int64 {
	if c.Logs.Endpoint == "" {
		return 0
	}
	return store.DefaultLogBytes
}

// clientAuth is what a TLS handshake requires of a client. Strict v0 requires a certificate, and verifies it in the handshake. Otherwise
// a token will do. [auth.Authenticator] has a certificate verified, and refuses clients with neither.
func (c Config) clientAuth() tls.ClientAuthType {
	switch {
	case c.StrictV0:
		return tls.RequireAnyClientCert
	case c.CAFile == "":
		return tls.NoClientCert
	default:
		return tls.RequestClientCert
	}
}

// The timeouts of requests. A list of v0 may have hundreds of MiB. Report sets and streams have timeouts of their own.
const (
	headerTimeout = 10 * time.Second
	readTimeout   = 5 * time.Minute
	writeTimeout  = 5 * time.Minute
	idleTimeout   = 2 * time.Minute
)
