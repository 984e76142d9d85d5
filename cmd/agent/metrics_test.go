package main

import (
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func parse(t *testing.T, args ...string) *options {
	t.Helper()
	flags := flag.NewFlagSet("agent", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	o := newOptions(flags)
	if err := flags.Parse(append(args, "--sink=stdout")); err != nil {
		t.Fatal(err)
	}
	o.complete()
	return o
}

func TestMetricsOptions_IsSecure(t *testing.T) {
	for _, tt := range []struct {
		args string // separated by spaces
		want bool
	}{
		{"", true},
		{"--metrics-bind-address=:8080", true},
		{"--metrics-bind-address=10.0.0.1:8080", true},
		{"--metrics-bind-address=[::]:8080", true},
		{"--metrics-bind-address=example.com:8080", true}, // may have any address
		{"--metrics-bind-address=127.0.0.1:8080", false},  // of earlier installations
		{"--metrics-bind-address=127.1.2.3:8080", false},
		{"--metrics-bind-address=[::1]:8080", false},
		{"--metrics-bind-address=localhost:8080", false},
		{"--metrics-bind-address=127.0.0.1:8080 --metrics-secure", true},
		{"--metrics-bind-address=:8080 --metrics-secure=false", false},
	} {
		o := parse(t, strings.Fields(tt.args)...)
		if err := o.validate(nil); err != nil {
			t.Errorf("%q: %v", tt.args, err)
		}
		if got := o.metrics.isSecure(); got != tt.want {
			t.Errorf("%q: got secure %t, want %t", tt.args, got, tt.want)
		}
	}
}

func TestMetricsOptions_CertDir(t *testing.T) {
	unreadable := t.TempDir()
	if err := os.WriteFile(filepath.Join(unreadable, "tls.crt"), []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		reason, want string
		args         []string
	}{
		{"a folder without files", "tls.crt: no such file", []string{"--metrics-cert-dir=" + t.TempDir()}},
		{"a folder without a key", "tls.key: no such file", []string{"--metrics-cert-dir=" + unreadable}},
		{"plain HTTP", "add --metrics-secure", []string{"--metrics-cert-dir=" + unreadable, "--metrics-bind-address=127.0.0.1:8080"}},
	} {
		err := parse(t, tt.args...).validate(nil)
		if err == nil || !strings.Contains(err.Error(), "--metrics-cert-dir") || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got error %v, want one with --metrics-cert-dir and %q", tt.reason, err, tt.want)
		}
	}
}
