package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strconv"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	certutil "k8s.io/client-go/util/cert"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/threeport/threeport-agent/internal/agent/endpoints"
	"github.com/threeport/threeport-agent/internal/agent/metricsauth"
	"github.com/threeport/threeport-agent/internal/loopback"
	"github.com/threeport/threeport-agent/internal/threeport"
)

const defaultMetricsAddress = ":8080"

// metricsOptions are the flags of /metrics.
type metricsOptions struct {
	address string
	secure  *bool // nil if the flag is not given
	certDir string
}

func (o *metricsOptions) declare(flags *flag.FlagSet) {
	flags.StringVar(&o.address, "metrics-bind-address", defaultMetricsAddress, "address of /metrics; 0 for none")
	flags.BoolFunc("metrics-secure",
		"serve /metrics with TLS, to clients with a token that permits get of /metrics (default true; false on a loopback address)",
		func(value string) error {
			secure, err := strconv.ParseBool(value)
			o.secure = &secure
			return err
		})
	flags.StringVar(&o.certDir, "metrics-cert-dir", "",
		"folder of the certificate of /metrics, tls.crt and tls.key; read again when they change; empty for a self-signed one")
}

func (o *metricsOptions) validate() error {
	if o.certDir == "" {
		return nil
	}
	if !o.isSecure() {
		return wrong("metrics-cert-dir", fmt.Errorf("--metrics-cert-dir needs TLS, which --metrics-bind-address=%s does not use by default: add --metrics-secure", o.address))
	}
	// The server would make a self-signed certificate instead of a missing one.
	if _, err := tls.LoadX509KeyPair(filepath.Join(o.certDir, "tls.crt"), filepath.Join(o.certDir, "tls.key")); err != nil {
		return wrong("metrics-cert-dir", fmt.Errorf("--metrics-cert-dir: %w", err))
	}
	return nil
}

// isSecure reports whether /metrics is served with TLS and authentication. Only processes of the same pod reach a loopback
// address, and installations from before the flag expect plain HTTP there.
func (o *metricsOptions) isSecure() bool {
	if o.secure != nil {
		return *o.secure
	}
	return !isLoopback(o.address)
}

func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && loopback.IsHost(host)
}

// addMetrics adds the server of /metrics, if there is an address for it.
func addMetrics(ctx context.Context, mgr ctrl.Manager, o *metricsOptions, log logr.Logger) error {
	if o.address == noAddress {
		return nil
	}
	handler := promhttp.HandlerFor(metrics.Registry, promhttp.HandlerOpts{})
	var config *tls.Config
	if o.isSecure() {
		authenticated, err := metricsauth.NewHandler(mgr.GetConfig(), mgr.GetHTTPClient(), handler, log)
		if err != nil {
			return fmt.Errorf("authenticate the clients of /metrics: %w", err)
		}
		if config, err = o.tls(mgr); err != nil {
			return fmt.Errorf("serve /metrics with TLS: %w", err)
		}
		handler = authenticated
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", handler)
	return addServer(ctx, mgr, "metrics", cmp.Or(o.address, defaultMetricsAddress), mux, config)
}

// registerCertificateExpiry registers the end of the client certificate. Without one there is no series, so no alert fires.
func registerCertificateExpiry(registry prometheus.Registerer, api *threeport.Client) {
	if api == nil || api.CertificateExpiry().IsZero() {
		return
	}
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "threeport_agent_client_certificate_expiration_timestamp_seconds",
		Help: "When the client certificate for the control-plane API ends, in Unix seconds. It is absent without a certificate.",
	}, func() float64 { return float64(api.CertificateExpiry().Unix()) }))
}

// tls returns the configuration of TLS, with the certificate of --metrics-cert-dir or a self-signed one.
func (o *metricsOptions) tls(mgr ctrl.Manager) (*tls.Config, error) {
	// Clients need no HTTP/2, and its streams would let one connection make many requests at once.
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	if o.certDir != "" {
		watcher, err := certwatcher.New(filepath.Join(o.certDir, "tls.crt"), filepath.Join(o.certDir, "tls.key"))
		if err != nil {
			return nil, err
		}
		config.GetCertificate = watcher.GetCertificate
		return config, mgr.Add(watcher)
	}
	cert, key, err := certutil.GenerateSelfSignedCertKey("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	config.Certificates = []tls.Certificate{pair}
	return config, err
}

// addServer adds a server to the manager. Replicas that do not lead run it too.
func addServer(ctx context.Context, mgr ctrl.Manager, name, address string, handler http.Handler, config *tls.Config) error {
	server, err := endpoints.New(ctx, name, address, handler, config)
	if err != nil {
		return err
	}
	return mgr.Add(server)
}
