package main

import (
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/threeport/threeport-agent/internal/agent/notify"
	"github.com/threeport/threeport-agent/internal/agent/outbox"
	"github.com/threeport/threeport-agent/internal/agent/reporter"
	"github.com/threeport/threeport-agent/internal/agent/resync"
	"github.com/threeport/threeport-agent/internal/threeport"
	"github.com/threeport/threeport-agent/internal/version"
)

// The values of --sink.
const (
	sinkAPI    = "api"
	sinkStdout = "stdout"
)

// options are the command line.
type options struct {
	api      threeport.Config
	reporter reporter.Config
	outbox   outbox.Config
	notify   notify.Config
	resync   resync.Config
	logging  zap.Options

	sink                    string
	clusterName             string
	reportSets              bool
	certDir                 string
	tokenSecret             string
	stateDir                string
	stateMax                resource.QuantityValue
	watchNamespaces         string
	healthRules             string
	redactionRules          string
	eventFilters            string
	metrics                 metricsOptions
	traces                  traceOptions
	probeAddress            string
	pprofAddress            string
	leaderElect             bool
	leaderElectionNamespace string
	configFile              string
	printConfig             bool
	showVersion             bool
}

// minStateBytes is the least value of --state-max-bytes.
const minStateBytes = 1 << 20

// newOptions declares the flags. --kubeconfig is declared by controller-runtime.
func newOptions(flags *flag.FlagSet) *options {
	o := &options{
		api:      threeport.DefaultConfig(),
		reporter: reporter.DefaultConfig(),
		outbox:   outbox.DefaultConfig(),
		notify:   notify.DefaultConfig(),
		resync:   resync.DefaultConfig(),
	}
	o.stateMax.Quantity = *resource.NewQuantity(o.outbox.MaxBytes, resource.BinarySI)
	flags.StringVar(&o.api.Server, "threeport-api-server", "",
		"address of the control-plane API: HOST[:PORT], or a URL")
	flags.BoolVar(&o.api.AuthEnabled, "auth-enabled", o.api.AuthEnabled,
		"authenticate to the control-plane API with a client certificate; false uses the token of --token-file, or no credential without it")
	flags.StringVar(&o.certDir, "cert-dir", filepath.Dir(o.api.CertFile),
		"folder of the client certificate, tls.crt and tls.key; read again when they change")
	flags.StringVar(&o.api.CAFile, "ca-file", o.api.CAFile,
		"PEM file of the certificate authorities that sign the control-plane API's certificate")
	flags.StringVar(&o.api.TokenFile, "token-file", "",
		"file with a bearer token for the control-plane API; read again when it changes")
	flags.StringVar(&o.tokenSecret, "token-secret", "",
		"Secret that --token-file is mounted from: NAME in the namespace of the agent, or NAMESPACE/NAME; the agent renews its token in it; empty for no renewal")
	flags.BoolVar(&o.reportSets, "report-sets", true,
		"use report sets if the control plane takes them; false forces v0: one request per report")
	flags.StringVar(&o.clusterName, "cluster-name", "",
		"name of this cluster for people who use the control plane; empty for none")
	flags.StringVar(&o.sink, "sink", sinkAPI,
		"destination of reports: api, or stdout to print one line per report")
	flags.StringVar(&o.watchNamespaces, "watch-namespaces", "",
		"comma-separated namespaces to watch; empty for the whole cluster if that is permitted, or else the namespaces of listed resources")
	flags.StringVar(&o.healthRules, "health-rules", "",
		"file or folder with health rules of your own, read again when they change; empty for the built-in rules only")
	flags.StringVar(&o.redactionRules, "redaction-rules", "",
		"file or folder with redaction rules of your own, read again when they change; empty for the built-in rules only")
	flags.StringVar(&o.eventFilters, "event-filters", "",
		"file or folder with filters that leave Events or derived objects out, shorten or limit them, read again when they change; empty for none")
	flags.IntVar(&o.notify.Concurrency, "send-concurrency", o.notify.Concurrency,
		"number of concurrent requests with reports to the control-plane API")
	flags.DurationVar(&o.notify.ShutdownTimeout, "shutdown-timeout", o.notify.ShutdownTimeout,
		"how long the agent delivers pending reports when it stops")
	flags.StringVar(&o.stateDir, "state-dir", "",
		"folder for the agent's durable state, of this agent only; empty to keep no state after a restart")
	flags.Var(&o.stateMax, "state-max-bytes",
		"bound of the state on disk and of pending reports in memory, such as 256Mi; beyond it the oldest pending Events are dropped and counted, Normal ones first")
	flags.DurationVar(&o.resync.Interval, "resync-interval", o.resync.Interval,
		"how often the rows of the control plane are compared with the cluster, and repaired; 0 for never")
	o.metrics.declare(flags)
	o.traces.declare(flags)
	flags.StringVar(&o.probeAddress, "health-probe-bind-address", ":8081",
		"address of /healthz and /readyz")
	flags.StringVar(&o.pprofAddress, "pprof-bind-address", "",
		"loopback address of Go's profiles, /debug/pprof/; empty for none")
	flags.BoolVar(&o.leaderElect, "leader-elect", false,
		"elect a leader among several replicas; only the leader reports")
	flags.StringVar(&o.leaderElectionNamespace, "leader-election-namespace", "",
		"namespace of the Leases of the election and of the heartbeat; empty for the namespace that the agent runs in")
	flags.StringVar(&o.configFile, "config", "",
		"YAML file with settings, which are the flags by their names; flags have precedence; read again when it changes")
	flags.BoolVar(&o.printConfig, "print-config", false, "print a file for --config with all settings and their defaults, and exit")
	flags.BoolVar(&o.showVersion, "version", false, "print the version and exit")
	o.logging.BindFlags(flags)
	// An error of the cluster or the control plane has no cause in the code, so its stack trace does not help.
	if err := flags.Set("zap-stacktrace-level", "panic"); err != nil {
		panic(err) // the flag does not exist, which is a programming error
	}
	return o
}

// complete sets the options that follow from flags.
func (o *options) complete() {
	o.api.CertFile = filepath.Join(o.certDir, "tls.crt")
	o.api.KeyFile = filepath.Join(o.certDir, "tls.key")
	o.outbox.MaxSyncs, o.outbox.MaxLarge = max(1, o.notify.Concurrency*3/4), max(1, o.notify.Concurrency/4)
	o.outbox.MaxBytes = o.stateMax.Value()
	switch o.sink {
	case sinkAPI:
		o.outbox.Protocol, o.outbox.InitialSync = notify.ProtocolV0, true
	case sinkStdout:
		o.outbox.Protocol = notify.ProtocolStdout
	}
	for name := range strings.SplitSeq(o.watchNamespaces, ",") {
		if name = strings.TrimSpace(name); name != "" {
			o.reporter.Namespaces = append(o.reporter.Namespaces, name)
		}
	}
}

// validate checks completed options. Its error names the wrong flag and the accepted values.
func (o *options) validate(args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("unexpected argument %q: the agent takes flags only", args[0])
	}
	if err := o.validateSink(); err != nil {
		return err
	}
	if len(o.clusterName) > threeport.MaxClusterName {
		return wrong("cluster-name", fmt.Errorf("--cluster-name has %d bytes: give %d at most", len(o.clusterName), threeport.MaxClusterName))
	}
	if err := o.reporter.Validate(); err != nil {
		return wrong("watch-namespaces", fmt.Errorf("--watch-namespaces: %w", err))
	}
	if err := o.notify.Validate(); err != nil {
		return &flagError{
			[]string{"send-concurrency", "shutdown-timeout"}, fmt.Errorf("delivery (--send-concurrency, --shutdown-timeout): %w", err),
		}
	}
	if o.outbox.MaxBytes < minStateBytes {
		return wrong("state-max-bytes", fmt.Errorf("--state-max-bytes is %s: give 1Mi or more", &o.stateMax))
	}
	if err := o.resync.Validate(); err != nil {
		return wrong("resync-interval", fmt.Errorf("--resync-interval: %w", err))
	}
	if o.pprofAddress != "" && !isLoopback(o.pprofAddress) {
		return wrong("pprof-bind-address", fmt.Errorf("--pprof-bind-address is %q: give a loopback address such as 127.0.0.1:6060, because profiles have no authentication", o.pprofAddress))
	}
	return errors.Join(o.metrics.validate(), o.traces.validate())
}

// validateSink checks the options of the destination of reports.
func (o *options) validateSink() error {
	switch o.sink {
	case sinkAPI:
		if o.api.Server == "" {
			return wrong("threeport-api-server", errors.New("--threeport-api-server is missing: give the control-plane API's HOST[:PORT], or --sink=stdout to print reports instead"))
		}
		if err := o.api.Validate(); err != nil {
			return &flagError{
				[]string{"threeport-api-server", "auth-enabled", "cert-dir", "ca-file", "token-file"},
				fmt.Errorf("control-plane API (--threeport-api-server, --auth-enabled, --cert-dir, --ca-file, --token-file): %w", err),
			}
		}
	case sinkStdout:
	default:
		return wrong("sink", fmt.Errorf("--sink is %q: give api or stdout", o.sink))
	}
	return o.validateTokenSecret()
}

// wrong is the error of a flag's value.
func wrong(name string, err error) error { return &flagError{[]string{name}, err} }

// versionText returns the version of the build and of Go.
func versionText() string {
	return fmt.Sprintf("threeport-agent %s (%s)", version.String(), runtime.Version())
}
