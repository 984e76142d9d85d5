// Package tracing makes spans and exports them by OTLP, over HTTP with protobuf. Both programs use it. The stages that make spans import
// the API of OpenTelemetry only.
//
// While the collector does not answer, spans wait in a bounded queue, and are then dropped and counted. The programs go on.
package tracing

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/threeport/threeport-agent/internal/otlp"
)

// scope is the instrumentation scope of all spans.
const scope = "github.com/threeport/threeport-agent"

// shutdownTimeout bounds the last export.
const shutdownTimeout = 2 * time.Second

// maxAttribute bounds the value of an attribute, in bytes. It is the length of the longest name in Kubernetes.
const maxAttribute = 253

// Service is the program whose spans these are.
type Service struct {
	Name    string // threeport-agent or threeport-controlplane
	Version string
	Cluster string // the name of the cluster that the program belongs to; empty if it is not known
	Metrics string // the prefix of the program's metrics
}

// Provider makes spans. A nil Provider makes none.
type Provider struct {
	provider *sdktrace.TracerProvider
	queue    *queue
}

// Open returns a provider that exports spans as the configuration says, until Shutdown; nil without an endpoint.
func Open(ctx context.Context, config otlp.Config, service Service, log logr.Logger) (*Provider, error) {
	if config.Endpoint == "" {
		return nil, nil
	}
	sender, err := otlp.NewClient(config, otlp.TracesPath, service.Name+"/"+service.Version)
	if err != nil {
		return nil, fmt.Errorf("export of traces: %w", err)
	}
	exporter, err := otlptrace.New(ctx, client{sender})
	if err != nil {
		return nil, fmt.Errorf("export of traces: %w", err)
	}
	attributes := []attribute.KeyValue{
		attribute.String("service.name", service.Name),
		attribute.String("service.version", service.Version),
	}
	if host, err := os.Hostname(); err == nil { // in a cluster, the name of the pod
		attributes = append(attributes, attribute.String("service.instance.id", host))
	}
	if service.Cluster != "" {
		attributes = append(attributes, attribute.String("k8s.cluster.name", service.Cluster))
	}
	limits := sdktrace.NewSpanLimits()
	limits.AttributeValueLengthLimit = maxAttribute
	p := &Provider{queue: newQueue(context.WithoutCancel(ctx), exporter, service.Metrics, log)}
	p.provider = sdktrace.NewTracerProvider(
		sdktrace.WithSampler(sdktrace.AlwaysSample()), // the stages make spans of sampled reports only
		sdktrace.WithResource(resource.NewSchemaless(attributes...)),
		sdktrace.WithRawSpanLimits(limits),
		sdktrace.WithSpanProcessor(p.queue),
	)
	return p, nil
}

// Tracer returns the tracer of the program; nil for a nil Provider.
func (p *Provider) Tracer() trace.Tracer {
	if p == nil {
		return nil
	}
	return p.provider.Tracer(scope)
}

// Collectors are the metrics of the export; none for a nil Provider.
func (p *Provider) Collectors() []prometheus.Collector {
	if p == nil {
		return nil
	}
	return []prometheus.Collector{p.queue.spans}
}

// Shutdown exports the spans that wait, for at most two seconds, also if ctx has ended. No span may end afterwards.
func (p *Provider) Shutdown(ctx context.Context) {
	if p == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	_ = p.provider.Shutdown(ctx) // the queue counts and logs what it loses
}
