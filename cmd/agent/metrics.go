package main

import (
	"crypto/tls"
	"flag"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"

	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/threeport/threeport-agent/internal/agent/metricsauth"
)

// metricsOptions are the flags of /metrics.
type metricsOptions struct {
	address string
	secure  *bool // nil if the flag is not given
	certDir string
}

func (o *metricsOptions) declare(flags *flag.FlagSet) {
	flags.StringVar(&o.address, "metrics-bind-address", ":8080", "address of /metrics; 0 for none")
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
		return fmt.Errorf("--metrics-cert-dir needs TLS, which --metrics-bind-address=%s does not use by default: add --metrics-secure", o.address)
	}
	// The server would make a self-signed certificate instead of a missing one.
	if _, err := tls.LoadX509KeyPair(filepath.Join(o.certDir, "tls.crt"), filepath.Join(o.certDir, "tls.key")); err != nil {
		return fmt.Errorf("--metrics-cert-dir: %w", err)
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
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// server returns the options of the server of /metrics.
func (o *metricsOptions) server() metricsserver.Options {
	options := metricsserver.Options{BindAddress: o.address, CertDir: o.certDir}
	if o.isSecure() {
		options.SecureServing, options.FilterProvider = true, metricsauth.NewFilter
		// Clients need no HTTP/2, and its streams would let one connection make many requests at once.
		options.TLSOpts = []func(*tls.Config){func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }}
	}
	return options
}
