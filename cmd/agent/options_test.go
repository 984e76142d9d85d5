package main

import (
	"strings"
	"testing"
)

// Profiles have no authentication, so they are served to the own machine or pod only.
func TestOptions_PprofBindAddress(t *testing.T) {
	for _, tt := range []struct {
		address string
		ok      bool
	}{
		{"", true},
		{"127.0.0.1:6060", true},
		{"[::1]:6060", true},
		{"localhost:6060", true},
		{":6060", false},
		{"0.0.0.0:6060", false},
		{"10.0.0.1:6060", false},
		{"6060", false},
	} {
		err := parse(t, "--pprof-bind-address="+tt.address).validate(nil)
		if (err == nil) != tt.ok {
			t.Errorf("%q: got error %v, want none: %t", tt.address, err, tt.ok)
		}
		if err != nil && !strings.Contains(err.Error(), "--pprof-bind-address") {
			t.Errorf("%q: the error does not name the flag: %v", tt.address, err)
		}
	}
}

func TestOptions_TokenSecret(t *testing.T) {
	for _, tt := range []struct {
		file, secret string
		want         string // part of the error; empty for none
	}{
		{"/etc/threeport/cert/token", "threeport-agent-cert", ""},
		{"/etc/threeport/cert/token", "agents/threeport-agent-cert", ""},
		{"/etc/threeport/cert/token", "", ""},
		{"", "threeport-agent-cert", "--token-secret needs --token-file"},
		{"/etc/threeport/cert/token", "a/b/c", "--token-secret is"},
		{"/etc/threeport/cert/token", "/b", "--token-secret is"},
		{"/etc/threeport/cert/token", "a/", "--token-secret is"},
		{"/etc/threeport/cert/token", "Cert", "--token-secret is"},
		{"/etc/threeport/cert/my token", "cert", "no key of the Secret"},
	} {
		err := parse(t, "--threeport-api-server=https://api.example", "--auth-enabled=false", "--token-file="+tt.file, "--token-secret="+tt.secret).validate(nil)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("--token-file=%s --token-secret=%s: got error %v, want %q", tt.file, tt.secret, err, tt.want)
		}
	}
}

func TestOptions_Traces(t *testing.T) {
	for _, tt := range []struct {
		flags []string
		want  string // part of the error; empty for none
	}{
		{nil, ""},
		{[]string{"--otlp-traces-endpoint=http://collector:4318", "--otlp-traces-sample-ratio=1"}, ""},
		{[]string{"--otlp-traces-endpoint=https://collector:4318", "--otlp-headers-file=h"}, ""},
		{[]string{"--otlp-traces-endpoint=collector:4318"}, "OTLP endpoint: use a URL of HTTP"},
		{[]string{"--otlp-traces-endpoint=http://collector:4318", "--otlp-headers-file=h"}, "use an https URL or a loopback address"},
		{[]string{"--otlp-ca-file=ca.crt"}, "have no effect without an OTLP endpoint"},
		{[]string{"--otlp-traces-sample-ratio=1.5"}, "--otlp-traces-sample-ratio is 1.5: give a number from 0 to 1"},
		{[]string{"--otlp-traces-sample-ratio=NaN"}, "give a number from 0 to 1"},
	} {
		err := parse(t, append(tt.flags, "--sink=stdout")...).validate(nil)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got error %v, want %q", tt.flags, err, tt.want)
		}
	}
}
