package main

import (
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/threeport/threeport-agent/internal/agent/notify"
	"github.com/threeport/threeport-agent/internal/agent/outbox"
	"github.com/threeport/threeport-agent/internal/agent/reporter"
	"github.com/threeport/threeport-agent/internal/agent/resync"
	"github.com/threeport/threeport-agent/internal/threeport"
	"github.com/threeport/threeport-agent/internal/version"
)

// Where reports go.
const (
	sinkAPI    = "api"
	sinkStdout = "stdout"
)

// options are the command line.
type options struct {
	api     threeport.Config
	watch   reporter.Config
	outbox  outbox.Config
	notify  notify.Config
	audit   resync.Config
	logging zap.Options

	sink                    string
	clusterName             string
	reportSets              bool
	certDir                 string
	stateDir                string
	stateMax                resource.QuantityValue
	watchNamespaces         string
	healthRules             string
	metricsAddress          string
	probeAddress            string
	leaderElect             bool
	leaderElectionNamespace string
	showVersion             bool
}

// leastState is the least that --state-max-bytes may be.
const leastState = 1 << 20

// mostClusterName is the most that --cluster-name may have, in bytes: what the control plane takes.
const mostClusterName = 253

// newOptions declares the flags. --kubeconfig is declared by controller-runtime.
func newOptions(flags *flag.FlagSet) *options {
	o := &options{
		api:    threeport.DefaultConfig(),
		watch:  reporter.DefaultConfig(),
		outbox: outbox.DefaultConfig(),
		notify: notify.DefaultConfig(),
		audit:  resync.DefaultConfig(),
	}
	o.stateMax.Quantity = *resource.NewQuantity(o.outbox.MaxBytes, resource.BinarySI)
	flags.StringVar(&o.api.Server, "threeport-api-server", "",
		"control-plane API to report to: HOST[:PORT], or a URL")
	flags.BoolVar(&o.api.AuthEnabled, "auth-enabled", o.api.AuthEnabled,
		"authenticate to the control-plane API with a client certificate")
	flags.StringVar(&o.certDir, "cert-dir", filepath.Dir(o.api.CertFile),
		"folder of the client certificate, tls.crt and tls.key; read again when they change")
	flags.StringVar(&o.api.CAFile, "ca-file", o.api.CAFile,
		"PEM file of the authorities that the control-plane API's certificate is checked against")
	flags.StringVar(&o.api.TokenFile, "token-file", "",
		"file with a bearer token for the control-plane API; read again when it changes")
	flags.BoolVar(&o.reportSets, "report-sets", true,
		"deliver in report sets where the control plane takes them; false for one by one, as v0 has it")
	flags.StringVar(&o.clusterName, "cluster-name", "",
		"name of this cluster for the people who look at the control plane; empty for none")
	flags.StringVar(&o.sink, "sink", sinkAPI,
		"where reports go: api, or stdout to print a line for each instead")
	flags.StringVar(&o.watchNamespaces, "watch-namespaces", "",
		"comma-separated namespaces to watch; empty for the whole cluster where that is permitted, else the namespaces of listed resources")
	flags.StringVar(&o.healthRules, "health-rules", "",
		"file or folder of rules of your own for judging objects, read again when they change; empty for those that are built in")
	flags.IntVar(&o.notify.Concurrency, "send-concurrency", o.notify.Concurrency,
		"requests with reports that may be on their way to the control-plane API at a time")
	flags.DurationVar(&o.notify.ShutdownTimeout, "shutdown-timeout", o.notify.ShutdownTimeout,
		"how long pending reports are flushed for when the agent stops")
	flags.StringVar(&o.stateDir, "state-dir", "",
		"folder for the agent's durable state, one for each agent; empty to keep nothing when the agent ends")
	flags.Var(&o.stateMax, "state-max-bytes",
		"how much is kept, on disk and, of what waits, in memory, such as 256Mi; beyond it the oldest waiting Events are dropped, Normal ones first, and counted")
	flags.DurationVar(&o.audit.Interval, "resync-interval", o.audit.Interval,
		"how often what the control plane has is compared with the cluster, and repaired; 0 for never")
	flags.StringVar(&o.metricsAddress, "metrics-bind-address", ":8080",
		"address of /metrics; 0 for none")
	flags.StringVar(&o.probeAddress, "health-probe-bind-address", ":8081",
		"address of /healthz and /readyz")
	flags.BoolVar(&o.leaderElect, "leader-elect", false,
		"let only one of several replicas report")
	flags.StringVar(&o.leaderElectionNamespace, "leader-election-namespace", "",
		"namespace of the leader's lease; empty for the namespace that the agent runs in")
	flags.BoolVar(&o.showVersion, "version", false, "print the version and exit")
	o.logging.BindFlags(flags)
	return o
}

// validate completes the options, and names the flag that is wrong and what it accepts.
func (o *options) validate(args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("unexpected argument %q: the agent takes flags only", args[0])
	}
	o.api.CertFile = filepath.Join(o.certDir, "tls.crt")
	o.api.KeyFile = filepath.Join(o.certDir, "tls.key")
	switch o.sink {
	case sinkAPI:
		if o.api.Server == "" {
			return errors.New("--threeport-api-server is missing: give the control-plane API's HOST[:PORT], or --sink=stdout to print reports instead")
		}
		if err := o.api.Validate(); err != nil {
			return fmt.Errorf("control-plane API (--threeport-api-server, --auth-enabled, --cert-dir, --ca-file, --token-file): %w", err)
		}
	case sinkStdout:
	default:
		return fmt.Errorf("--sink is %q: give api or stdout", o.sink)
	}
	if len(o.clusterName) > mostClusterName {
		return fmt.Errorf("--cluster-name has %d bytes: give %d at most", len(o.clusterName), mostClusterName)
	}
	for name := range strings.SplitSeq(o.watchNamespaces, ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
			return fmt.Errorf("--watch-namespaces: %q is not the name of a namespace: %s", name, problems[0])
		}
		o.watch.Namespaces = append(o.watch.Namespaces, name)
	}
	if err := o.watch.Validate(); err != nil {
		return err
	}
	if err := o.notify.Validate(); err != nil {
		return fmt.Errorf("delivery (--send-concurrency, --shutdown-timeout): %w", err)
	}
	if o.outbox.MaxBytes = o.stateMax.Value(); o.outbox.MaxBytes < leastState {
		return fmt.Errorf("--state-max-bytes is %s: give 1Mi or more", &o.stateMax)
	}
	if err := o.audit.Validate(); err != nil {
		return fmt.Errorf("--resync-interval: %w", err)
	}
	return nil
}

// versionText returns the version of the build and of Go.
func versionText() string {
	return fmt.Sprintf("threeport-agent %s (%s)", version.String(), runtime.Version())
}
