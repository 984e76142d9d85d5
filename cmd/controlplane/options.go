package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/threeport/threeport-agent/internal/server"
	"github.com/threeport/threeport-agent/internal/server/auth"
	"github.com/threeport/threeport-agent/internal/version"
)

// options are the flags of the server.
type options struct {
	flags       *flag.FlagSet
	config      server.Config
	database    database
	showVersion bool
	// Requests a second.
	agentRate, viewerRate float64
}

// newOptions has the defaults. What is wrong with flags goes to stderr.
func newOptions(stderr io.Writer) *options {
	o := &options{config: server.DefaultConfig()}
	o.agentRate, o.viewerRate = o.config.Access.AgentRate.PerSecond, o.config.Access.ViewerRate.PerSecond
	o.flags = flag.NewFlagSet("controlplane", flag.ContinueOnError)
	o.flags.SetOutput(stderr)
	o.flags.Usage = func() {
		_, _ = io.WriteString(stderr, "usage: controlplane [flags]\n       controlplane token create|list|revoke [flags]\n       controlplane backup [flags] > FILE\n\n")
		o.flags.PrintDefaults()
	}
	o.database.register(o.flags)
	o.registerServer()
	o.registerAccess()
	o.registerSingleSignOn()
	o.registerLimits()
	return o
}

func (o *options) registerServer() {
	f, c := o.flags, &o.config
	f.StringVar(&c.BindAddress, "bind-address", c.BindAddress, "`HOST:PORT` to listen on; port 0 takes a free one")
	f.BoolVar(&c.StrictV0, "strict-v0", c.StrictV0, "be Threeport's own API and no better: nothing but v0, and the same RuntimeEventUID posted twice makes two rows (for tests)")
	f.BoolVar(&o.showVersion, "version", false, "print the version and exit")
}

func (o *options) registerAccess() {
	f, c := o.flags, &o.config
	f.BoolVar(&c.AuthEnabled, "auth-enabled", c.AuthEnabled, "serve TLS, to clients with a certificate or a token only")
	f.StringVar(&c.CertFile, "cert-file", c.CertFile, "PEM `file` of the server's certificate; this and the next two are read again when they change")
	f.StringVar(&c.KeyFile, "key-file", c.KeyFile, "PEM `file` of its private key")
	f.StringVar(&c.CAFile, "ca-file", c.CAFile, "PEM `file` of the authorities of clients' certificates; empty for tokens only")
	f.Func("certificate-role", "the `role` of a client certificate that says none itself: viewer or admin (default "+string(c.Access.CertificateRole)+")",
		func(name string) (err error) {
			c.Access.CertificateRole, err = auth.ParseRole(name)
			return err
		})
	f.Var((*perSecond)(&o.agentRate), "rate-limit", "`requests` a second that each cluster's agents may make, and twice as many at once; 0 for no limit")
	f.Var((*perSecond)(&o.viewerRate), "viewer-rate-limit", "`requests` a second that each viewer may make, and four times as many at once; 0 for no limit")
}

func (o *options) registerSingleSignOn() {
	f, s := o.flags, &o.config.Access.SingleSignOn
	f.StringVar(&s.Issuer, "oidc-issuer", "", "the `URL` of a provider of OpenID Connect, at which people log in to the page; none without it")
	f.StringVar(&s.CAFile, "oidc-ca-file", "", "PEM `file` of the authorities of the provider's certificate; empty for those of the system")
	f.StringVar(&s.ClientID, "oidc-client-id", "", "the `name` under which the provider knows this API")
	f.StringVar(&s.ClientSecretFile, "oidc-client-secret-file", "", "a `file` with the secret of the two, read for each log-in; empty for a public client")
	f.StringVar(&s.RedirectURL, "oidc-redirect-url", "", "the `URL` that the provider sends browsers back to: https://HOST[:PORT]"+auth.CallbackPath)
	f.Func("oidc-scopes", "the `scopes` to ask the provider for, with a space between them (default \""+strings.Join(s.Scopes, " ")+"\")", func(text string) error {
		s.Scopes = strings.Fields(text)
		return nil
	})
	f.StringVar(&s.NameClaim, "oidc-name-claim", s.NameClaim, "the `claim` of an ID token with a person's name, for people to read")
	f.StringVar(&s.GroupsClaim, "oidc-groups-claim", s.GroupsClaim, "the `claim` of an ID token with a person's groups: a text, or a list of them")
	f.Func("oidc-viewer-group", "a `group` whose members are viewers; may be given several times", appendTo(&s.ViewerGroups))
	f.Func("oidc-admin-group", "a `group` whose members are administrators; may be given several times", appendTo(&s.AdminGroups))
}

// appendTo makes a flag that may be given several times. A list with commas would not do for names of groups: those of
// directories have commas.
func appendTo(list *[]string) func(string) error {
	return func(text string) error {
		*list = append(*list, text)
		return nil
	}
}

func (o *options) registerLimits() {
	f, l, m := o.flags, &o.config.Limits, &o.config.Maintenance
	f.IntVar(&l.Reports, "max-reports", l.Reports, "how many `reports` a set may have")
	f.Var((*size)(&l.BodyBytes), "max-body", "how large a report set may be as sent, in `bytes`: a number, or one with KiB, MiB or GiB")
	f.Var((*size)(&l.DecodedBytes), "max-decoded-body", "how large a report set may be before compression, in `bytes`")
	f.DurationVar(&m.AgentTimeout, "agent-timeout", m.AgentTimeout, "how `long` an agent may say nothing before its workloads are Unknown")
	f.DurationVar(&m.Retention.EventAge, "event-retention", m.Retention.EventAge, "how `long` Events are kept")
	f.IntVar(&m.Retention.EventCount, "events-per-workload", m.Retention.EventCount, "how `many` Events are kept of a workload; the oldest go")
	f.DurationVar(&m.Retention.TombstoneAge, "tombstone-retention", m.Retention.TombstoneAge, "how `long` it is remembered what was deleted")
}

// complete is the configuration that the flags say, if they are valid.
func (o *options) complete() (config server.Config, err error) {
	config = o.config
	config.Version = version.String()
	if config.Database, err = o.database.address(); err != nil {
		return config, err
	}
	if err := o.checkAuthentication(); err != nil {
		return config, err
	}
	config.Access.AgentRate = rate(o.agentRate, 2)
	config.Access.ViewerRate = rate(o.viewerRate, 4)
	return config, config.Validate()
}

// checkAuthentication refuses flags that were given, and would not count without authentication.
func (o *options) checkAuthentication() error {
	if o.config.AuthEnabled {
		return nil
	}
	var given []string
	o.flags.Visit(func(f *flag.Flag) {
		switch f.Name {
		case "cert-file", "key-file", "ca-file", "certificate-role", "rate-limit", "viewer-rate-limit":
			given = append(given, "--"+f.Name)
		}
	})
	if len(given) > 0 {
		return fmt.Errorf("%s without authentication: everybody is an administrator then, over plain HTTP; leave out --auth-enabled=false, or these flags",
			strings.Join(given, ", "))
	}
	return nil
}

// rate is so many requests a second, and burst times as many at once.
func rate(perSecond, burst float64) auth.Rate {
	const most = 1_000_000
	return auth.Rate{PerSecond: perSecond, Burst: int(math.Ceil(min(perSecond*burst, most)))}
}

// perSecond is a rate as a flag.
type perSecond float64

// String is the rate as Set reads it.
func (p *perSecond) String() string { return strconv.FormatFloat(float64(*p), 'g', -1, 64) }

// Set reads a number.
func (p *perSecond) Set(text string) error {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) || n < 0 {
		return errors.New("accepted is a number of requests a second, such as 0.5 or 200; 0 for no limit")
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

// String is the size in the largest unit that it is a whole number of.
func (s *size) String() string {
	for _, unit := range units {
		if n := int64(*s); n >= unit.bytes && n%unit.bytes == 0 {
			return fmt.Sprintf("%d%s", n/unit.bytes, unit.name)
		}
	}
	return "0"
}

// Set reads a number with a unit or without.
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
	return errors.New("accepted is a number of bytes, such as 65536, 64KiB or 8MiB")
}
