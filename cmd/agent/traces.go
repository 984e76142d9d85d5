package main

import (
	"context"
	"errors"
	"flag"
	"fmt"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/threeport/threeport-agent/internal/agent/reporter"
	"github.com/threeport/threeport-agent/internal/otlp"
	"github.com/threeport/threeport-agent/internal/tracing"
	"github.com/threeport/threeport-agent/internal/version"
)

// traceOptions are the flags of traces.
type traceOptions struct {
	otlp.Config
	ratio float64
}

func (o *traceOptions) declare(flags *flag.FlagSet) {
	flags.StringVar(&o.Endpoint, "otlp-traces-endpoint", "",
		"URL to which traces of sampled reports are sent with OTLP over HTTP, such as https://collector.example.org:4318; empty for none")
	flags.Float64Var(&o.ratio, "otlp-traces-sample-ratio", 0.01,
		"share of the changes in the cluster whose reports are traced, 0 to 1")
	flags.StringVar(&o.CAFile, "otlp-ca-file", "",
		"PEM file of the certificate authorities that sign the certificate of the OTLP endpoint; empty for the system's")
	flags.StringVar(&o.HeadersFile, "otlp-headers-file", "",
		"file with headers for the OTLP endpoint, one NAME: VALUE per line, read before each request; empty for none")
}

func (o *traceOptions) validate() error {
	if !(o.ratio >= 0 && o.ratio <= 1) {
		return wrong("otlp-traces-sample-ratio", fmt.Errorf("--otlp-traces-sample-ratio is %g: give a number from 0 to 1", o.ratio))
	}
	if o.Endpoint == "" && (o.CAFile != "" || o.HeadersFile != "") {
		return wrong("otlp-traces-endpoint", errors.New("--otlp-ca-file and --otlp-headers-file have no effect without an OTLP endpoint: set --otlp-traces-endpoint, or leave out the files"))
	}
	if err := o.Validate(); err != nil {
		return &flagError{[]string{"otlp-traces-endpoint", "otlp-headers-file"}, err}
	}
	return nil
}

// openTraces returns the provider of traces, nil without an endpoint, and configures the reporter.
func (o *options) openTraces(ctx context.Context, registry prometheus.Registerer, log logr.Logger) (*tracing.Provider, error) {
	service := tracing.Service{Name: "threeport-agent", Version: version.String(), Cluster: o.clusterName, Metrics: "threeport_agent"}
	provider, err := tracing.Open(ctx, o.traces.Config, service, log)
	if err != nil {
		return nil, err
	}
	for _, collector := range provider.Collectors() {
		registry.MustRegister(collector)
	}
	o.reporter.Tracing = reporter.Tracing{Tracer: provider.Tracer(), Ratio: o.traces.ratio}
	return provider, nil
}
