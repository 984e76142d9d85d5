package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/threeport/threeport-agent/internal/server"
	"github.com/threeport/threeport-agent/internal/server/auth"
	"github.com/threeport/threeport-agent/internal/version"
)

// options are the flags of the server.
type options struct {
	flags        *flag.FlagSet
	config       server.Config
	database     databaseFlags
	pprofAddress string
	showVersion  bool
	// Requests per second.
	agentRate, viewerRate, adminRate float64
}

// newOptions registers the flags with their defaults.
func newOptions() *options {
	o := &options{config: server.DefaultConfig()}
	access := o.config.Access
	o.agentRate, o.viewerRate, o.adminRate = access.AgentRate.PerSecond, access.ViewerRate.PerSecond, access.AdminRate.PerSecond
	o.flags = flag.NewFlagSet("controlplane", flag.ContinueOnError)
	o.flags.SetOutput(io.Discard) // run prints errors
	o.database.register(o.flags)
	o.registerServer()
	o.registerAccess()
	o.registerSingleSignOn()
	o.registerLimits()
	o.registerTelemetry()
	return o
}

// printHelp prints the commands and the flags.
func (o *options) printHelp(out io.Writer) {
	_, _ = io.WriteString(out, "usage: controlplane [flags]\n       controlplane cluster add NAME [flags]\n       controlplane token create|list|revoke [flags]\n       controlplane workload assign|release [flags]\n       controlplane backup [flags] > FILE\n\n")
	o.flags.SetOutput(out)
	o.flags.PrintDefaults()
}

func (o *options) registerServer() {
	f, c := o.flags, &o.config
	f.StringVar(&c.BindAddress, "bind-address", c.BindAddress, "`HOST:PORT` to listen on; port 0 takes a free one")
	f.Func("trusted-proxies", "`CIDRs` of proxies, separated by commas, whose X-Forwarded-For names the client for limits of an address", func(text string) (err error) {
		c.TrustedProxies, err = parseCIDRs(text)
		return err
	})
	f.BoolVar(&c.StrictV0, "strict-v0", c.StrictV0, "behave exactly as Threeport's own API: serve v0 only, and create two rows if the same RuntimeEventUID is posted twice (for tests)")
	f.StringVar(&o.pprofAddress, "pprof-bind-address", "", "loopback `IP:PORT` of Go's profiles, /debug/pprof/; empty for none")
	f.BoolVar(&o.showVersion, "version", false, "print the version and exit")
}

// parseCIDRs parses networks that are separated by commas.
func parseCIDRs(text string) (networks []netip.Prefix, err error) {
	for item := range strings.SplitSeq(text, ",") {
		network, err := netip.ParsePrefix(strings.TrimSpace(item))
		if err != nil {
			return nil, fmt.Errorf("%q is not a CIDR: use one such as 10.0.0.0/8 or 192.0.2.7/32", item)
		}
		networks = append(networks, network.Masked())
	}
	return networks, nil
}

func (o *options) registerAccess() {
	f, c := o.flags, &o.config
	f.BoolVar(&c.AuthEnabled, "auth-enabled", c.AuthEnabled, "serve TLS, only to clients with a certificate or a token")
	f.StringVar(&c.CertFile, "cert-file", c.CertFile, "PEM `file` of the server's certificate; the server reads this and the next two files again when they change")
	f.StringVar(&c.KeyFile, "key-file", c.KeyFile, "PEM `file` of its private key")
	f.StringVar(&c.CAFile, "ca-file", c.CAFile, "PEM `file` of the authorities of clients' certificates; empty for tokens only")
	f.Func("certificate-role", "`role` of client certificates that name none: viewer, or admin for agents of v0; without it they are refused",
		func(name string) (err error) {
			c.Access.CertificateRole, err = auth.ParseRole(name)
			return err
		})
	f.BoolVar(&c.RequireAssignment, "require-assignment", c.RequireAssignment, "refuse agents the workloads that are not assigned to their cluster; false lets the first agent that reports a workload claim it")
	f.Var((*duration)(&c.Access.SessionLifetime), "session-lifetime", "`duration` of a session of the web UI")
	f.StringVar(&c.RedactionRules, "redaction-rules", "", "`file` or folder with redaction rules of your own, for the definitions that viewers and agents read; read again when they change; empty for the built-in rules only")
	f.Var((*perSecond)(&o.agentRate), "rate-limit", "`requests` per second of the agents of one cluster, with bursts of twice as many; 0 for no limit")
	f.Var((*perSecond)(&o.viewerRate), "viewer-rate-limit", "`requests` per second of one viewer, with bursts of four times as many; 0 for no limit")
	f.Var((*perSecond)(&o.adminRate), "admin-rate-limit", "`requests` per second of one administrator, or of agents of v0 at one address, with bursts of four times as many; 0 for no limit")
}

func (o *options) registerSingleSignOn() {
	f, s := o.flags, &o.config.Access.SingleSignOn
	f.StringVar(&s.Issuer, "oidc-issuer", "", "`URL` of the OpenID Connect provider for log-in to the web UI; empty for no single sign-on")
	f.StringVar(&s.CAFile, "oidc-ca-file", "", "PEM `file` of the authorities of the provider's certificate; empty for the system's")
	f.StringVar(&s.ClientID, "oidc-client-id", "", "client `ID` of this API at the provider")
	f.StringVar(&s.ClientSecretFile, "oidc-client-secret-file", "", "`file` with the client secret, read at each log-in; empty for a public client")
	f.StringVar(&s.RedirectURL, "oidc-redirect-url", "", "`URL` to which the provider redirects browsers: https://HOST[:PORT]"+auth.CallbackPath)
	f.Func("oidc-scopes", "`scopes` to request from the provider, separated by spaces (default \""+strings.Join(s.Scopes, " ")+"\")", func(text string) error {
		s.Scopes = strings.Fields(text)
		return nil
	})
	f.StringVar(&s.NameClaim, "oidc-name-claim", s.NameClaim, "`claim` of the ID token with the user's name for display")
	f.StringVar(&s.GroupsClaim, "oidc-groups-claim", s.GroupsClaim, "`claim` of the ID token with the user's groups: a string or a list of strings")
	f.Func("oidc-viewer-group", "`group` of viewers; may be repeated", appendTo(&s.ViewerGroups))
	f.Func("oidc-admin-group", "`group` of administrators; may be repeated", appendTo(&s.AdminGroups))
}

// appendTo makes a flag that may be repeated. Groups of directories have commas in their names, so a list separated by commas
// would be ambiguous.
func appendTo(list *[]string) func(string) error {
	return func(text string) error {
		*list = append(*list, text)
		return nil
	}
}

func (o *options) registerTelemetry() {
	f, c := o.flags, &o.config
	f.StringVar(&c.Logs.Endpoint, "otlp-logs-endpoint", "", "`URL` to which Events and status changes are sent as logs with OTLP over HTTP, such as https://collector.example.org:4318; empty for none")
	f.StringVar(&c.Traces.Endpoint, "otlp-traces-endpoint", "", "`URL` to which the spans of sampled reports are sent with OTLP over HTTP; empty for no traces")
	f.StringVar(&c.Logs.CAFile, "otlp-ca-file", "", "PEM `file` of the authorities of the certificates of both OTLP endpoints; empty for the system's")
	f.StringVar(&c.Logs.HeadersFile, "otlp-headers-file", "", "`file` with headers for both OTLP endpoints, one NAME: VALUE per line, read before each request; empty for none")
}

func (o *options) registerLimits() {
	f, l, m := o.flags, &o.config.Limits, &o.config.Maintenance
	f.Var((*count)(&l.Reports), "max-reports", "maximum number of `reports` in a report set")
	f.Var((*size)(&l.BodyBytes), "max-body", "maximum size of a report set as sent, in `bytes`: a number, optionally with KiB, MiB or GiB")
	f.Var((*size)(&l.DecodedBytes), "max-decoded-body", "maximum size of a report set before compression, in `bytes`")
	f.Var((*size)(&l.V0BodyBytes), "max-v0-body", "maximum size of a body of v0, in `bytes`; an agent may send up to 5 MiB for a resource, and 1 MiB for others")
	f.Var((*count)(&l.Watches), "max-watches", "maximum `number` of watches that one viewer or administrator may have open")
	f.Var((*size)(&l.ClusterBytes), "max-cluster-bytes", "maximum size of the stored definitions and objects of one cluster, in `bytes`; reports beyond it are rejected")
	f.Var((*duration)(&m.AgentTimeout), "agent-timeout", "`duration` without reports after which the workloads of an agent are Unknown")
	f.Var((*duration)(&m.Retention.EventAge), "event-retention", "`duration` for which Events are kept")
	f.Var((*count)(&m.Retention.EventCount), "events-per-workload", "maximum `number` of Events per workload; the oldest are removed")
	f.Var((*duration)(&m.Retention.TombstoneAge), "tombstone-retention", "`duration` for which deleted objects are remembered")
	f.Var((*count)(&o.config.WorkloadMetrics.Workloads), "workload-metrics", "maximum `number` of workloads with a metric of their status, the first by ID; 0 for no such metric")
	f.Func("workload-metrics-labels", "`labels` of this metric besides the status, separated by commas: some of workload, cluster, cluster_uid, workload_id, workload_type (default workload,cluster)",
		func(text string) error {
			o.config.WorkloadMetrics.Labels = strings.Split(text, ",")
			return nil
		})
	f.Var((*duration)(&m.Retention.AuditAge), "audit-retention", "`duration` for which audit records are kept; 0 keeps all")
}

// complete returns the configuration of the flags, if it is valid.
func (o *options) complete() (config server.Config, err error) {
	config = o.config
	config.Version = version.String()
	config.Traces.CAFile, config.Traces.HeadersFile = config.Logs.CAFile, config.Logs.HeadersFile
	if config.Database, err = o.database.address(); err != nil {
		return config, err
	}
	if err := validateProfiles(o.pprofAddress); err != nil {
		return config, err
	}
	if err := o.checkAuthentication(); err != nil {
		return config, err
	}
	config.Access.AgentRate = rate(o.agentRate, 2)
	config.Access.ViewerRate = rate(o.viewerRate, 4)
	config.Access.AdminRate = rate(o.adminRate, 4)
	return config, config.Validate()
}

// checkAuthentication refuses flags that have no effect without authentication.
func (o *options) checkAuthentication() error {
	if o.config.AuthEnabled {
		return nil
	}
	var given []string
	o.flags.Visit(func(f *flag.Flag) {
		switch f.Name {
		case "cert-file", "key-file", "ca-file", "certificate-role", "redaction-rules", "rate-limit", "viewer-rate-limit", "admin-rate-limit",
			"max-watches", "session-lifetime", "require-assignment":
			given = append(given, "--"+f.Name)
		}
	})
	if len(given) > 0 {
		return fmt.Errorf("%s without authentication has no effect, since every client is an administrator over plain HTTP: leave out --auth-enabled=false or these flags",
			strings.Join(given, ", "))
	}
	return nil
}

// rate is a number of requests per second, with bursts of burst times as many.
func rate(perSecond, burst float64) auth.Rate {
	const most = 1_000_000
	return auth.Rate{PerSecond: perSecond, Burst: int(math.Ceil(min(perSecond*burst, most)))}
}

// duration is a duration as a flag. Its error names the accepted values, unlike that of the flag package.
type duration time.Duration

// String is the duration in the form that Set parses.
func (d *duration) String() string { return time.Duration(*d).String() }

// Set parses a duration with its unit.
func (d *duration) Set(text string) error {
	parsed, err := time.ParseDuration(text)
	if err != nil {
		return errors.New("not a duration: use a number with a unit, such as 90s, 5m or 24h")
	}
	*d = duration(parsed)
	return nil
}

// count is a whole number as a flag. Its error names the accepted values, unlike that of the flag package.
type count int

// String is the number in the form that Set parses.
func (c *count) String() string { return strconv.Itoa(int(*c)) }

// Set parses a whole number.
func (c *count) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil {
		return errors.New("not a whole number: use one such as 1000")
	}
	*c = count(n)
	return nil
}

// perSecond is a rate as a flag.
type perSecond float64

// String is the rate in the form that Set parses.
func (p *perSecond) String() string { return strconv.FormatFloat(float64(*p), 'g', -1, 64) }

// Set parses a number.
func (p *perSecond) Set(text string) error {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) || n < 0 {
		return errors.New("not a number of requests per second: use one such as 0.5 or 200, or 0 for no limit")
	}
	*p = perSecond(n)
	return nil
}

// size is a number of bytes as a flag.
type size int64

var units = []struct {
	name  string
	bytes int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"", 1}}

// String is the size in the largest unit without a fraction.
func (s *size) String() string {
	for _, unit := range units {
		if n := int64(*s); n >= unit.bytes && n%unit.bytes == 0 {
			return fmt.Sprintf("%d%s", n/unit.bytes, unit.name)
		}
	}
	return "0"
}

// Set parses a number with an optional unit.
func (s *size) Set(text string) error {
	for _, unit := range units {
		digits, found := strings.CutSuffix(text, unit.name)
		if !found {
			continue
		}
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || n < 1 || n > math.MaxInt64/unit.bytes {
			break
		}
		*s = size(n * unit.bytes)
		return nil
	}
	return errors.New("not a size: use a number of bytes such as 65536, 64KiB or 8MiB")
}
