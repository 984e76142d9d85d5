package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
)

func parse(t *testing.T, args ...string) *options {
	t.Helper()
	flags := flag.NewFlagSet("agent", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	o := newOptions(flags)
	if err := flags.Parse(append(args, "--sink=stdout")); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestMetricsOptions_IsSecure(t *testing.T) {
	for _, tt := range []struct {
		reason, address, secure string // an empty flag is not given
		want                    bool
	}{
		{reason: "default", want: true},
		{reason: "the shipped address", address: ":8080", want: true},
		{reason: "an address of the pod", address: "10.0.0.1:8080", want: true},

		{reason: "all addresses of IPv6", address: "[::]:8080", want: true},
		{reason: "a name that may have any address", address: "example.com:8080", want: true},

		{reason: "the loopback address of earlier installations", address: "127.0.0.1:8080"},
		{reason: "another loopback address", address: "127.1.2.3:8080"},

		{reason: "the loopback address of IPv6", address: "[::1]:8080"},
		{reason: "localhost", address: "localhost:8080"},

		{reason: "loopback, explicit", address: "127.0.0.1:8080", secure: "true", want: true},
		{reason: "other address, explicit", address: ":8080", secure: "false"},
	} {
		var args []string
		if tt.address != "" {
			args = append(args, "--metrics-bind-address="+tt.address)
		}
		if tt.secure != "" {
			args = append(args, "--metrics-secure="+tt.secure)
		}
		o := parse(t, args...)
		if err := o.validate(nil); err != nil {
			t.Errorf("%s: %v", tt.reason, err)
		}
		if got := o.metrics.isSecure(); got != tt.want {
			t.Errorf("%s: got secure %t, want %t", tt.reason, got, tt.want)
		}
		if server := o.metrics.server(); server.SecureServing != tt.want || (server.FilterProvider != nil) != tt.want {
			t.Errorf("%s: got TLS %t and authentication %t, want both %t", tt.reason, server.SecureServing, server.FilterProvider != nil, tt.want)
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

// filtered returns a handler behind authentication by an API server.
func filtered(t *testing.T, apiServer string) http.Handler {
	t.Helper()
	config := &rest.Config{Host: apiServer, QPS: -1} // as controller-runtime configures the manager
	filter, err := authenticate(config, &http.Client{})
	if err != nil {
		t.Fatal(err)
	}
	handler, err := filter(logr.Discard(), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("a request without a valid token is served")
	}))
	if err != nil {
		t.Fatal(err)
	}
	return handler
}

func get(ctx context.Context, handler http.Handler, token string) (status int) {
	req := httptest.NewRequestWithContext(ctx, http.MethodGet, "/metrics", http.NoBody)
	req.Header.Set("Authorization", "Bearer "+token)
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, req)
	return answer.Code
}

func TestAuthenticate_NoAPIServer_IsRefused(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	if status := get(t.Context(), filtered(t, server.URL), "any"); status != http.StatusInternalServerError {
		t.Errorf("GET /metrics answers %d, want %d", status, http.StatusInternalServerError)
	}
}

func TestAuthenticate_InvalidTokens_AreReviewedAtLimitedRate(t *testing.T) {
	var reviews atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		reviews.Add(1)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","status":{"authenticated":false}}`)
	}))
	defer server.Close()
	handler := filtered(t, server.URL)
	begin := time.Now()
	var clients sync.WaitGroup
	for i := range 2 * reviewBurst {
		clients.Go(func() {
			if status := get(t.Context(), handler, fmt.Sprintf("invalid-%d", i)); status == http.StatusOK {
				t.Errorf("GET /metrics with an invalid token answers %d", status)
			}
		})
	}
	clients.Wait()
	least := (reviewBurst/reviewQPS)*time.Second - 500*time.Millisecond
	if took := time.Since(begin); took < least || reviews.Load() == 0 {
		t.Errorf("the API server reviewed %d tokens within %s, want some, and %s or more", reviews.Load(), took, least)
	}
}
