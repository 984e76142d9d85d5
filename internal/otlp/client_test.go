package otlp

import (
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/threeport/threeport-agent/internal/testing/certs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func authorityOf(server *httptest.Server) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
}

func newClient(t *testing.T, config Config) *Client {
	t.Helper()
	c, err := NewClient(config, LogsPath, "test/1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestPost_Headers(t *testing.T) {
	headers := filepath.Join(t.TempDir(), "headers")
	var got http.Header
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header }))
	t.Cleanup(receiver.Close)
	write(t, headers, "")
	c := newClient(t, Config{Endpoint: receiver.URL, HeadersFile: headers})
	for _, tc := range []struct{ text, authorization, err string }{
		{"Authorization: Bearer one\n\nX-Scope-OrgID: team\n", "Bearer one", ""},
		{"authorization:Bearer two", "Bearer two", ""},
		{"Content-Type: text/plain", "", ""},
		{"Bearer secret", "", "line 1 of " + headers + " is no header"},
		{"X: a\nA b: secret", "", `invalid header field name "A b"`},
		{"X: sec\x00ret", "", `invalid header field value for "X"`},
	} {
		write(t, headers, tc.text)
		got = http.Header{}
		_, err := c.Post(t.Context(), nil)
		if got.Get("Authorization") != tc.authorization || tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
			t.Errorf("%q: the headers are %v, the error %v, want %q and %q", tc.text, got, err, tc.authorization, tc.err)
		}
		if err == nil && (got.Get("Content-Type") != "application/x-protobuf" || got.Get("User-Agent") != "test/1") {
			t.Errorf("%q: the headers are %v, want those of OTLP", tc.text, got)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("the error %v shows a secret", err)
		}
	}
	if err := os.Remove(headers); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Post(t.Context(), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without the file the error is %v", err)
	}
}

// A backend with a new authority is reached after a failure.
func TestPost_CAFileChanges_IsReadAgain(t *testing.T) {
	receiver := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("done")) }))
	t.Cleanup(receiver.Close)
	file := filepath.Join(t.TempDir(), "ca.crt")
	write(t, file, "no certificate")
	if _, err := NewClient(Config{Endpoint: receiver.URL, CAFile: file}, LogsPath, ""); err == nil || !strings.Contains(err.Error(), "--otlp-ca-file: no certificate in "+file) {
		t.Errorf("without a certificate the error is %v", err)
	}
	write(t, file, string(certs.ForTest(t).PEM()))
	c := newClient(t, Config{Endpoint: receiver.URL, CAFile: file})
	write(t, file, authorityOf(receiver))
	if _, err := c.Post(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "x509") {
		t.Errorf("with another authority the error is %v", err)
	}
	answer, err := c.Post(t.Context(), nil)
	if err != nil || !answer.Accepted() || string(answer.Body) != "done" {
		t.Errorf("with the new authority the answer is %+v, %v", answer, err)
	}
}

func TestPost_Redirect_IsNotFollowed(t *testing.T) {
	receiver := httptest.NewServer(http.RedirectHandler("/elsewhere", http.StatusTemporaryRedirect))
	t.Cleanup(receiver.Close)
	answer, err := newClient(t, Config{Endpoint: receiver.URL}).Post(t.Context(), nil)
	if err != nil || answer.Code != http.StatusTemporaryRedirect || answer.Accepted() {
		t.Errorf("the answer is %+v, %v, want the redirect", answer, err)
	}
}

func TestNewClient_Path(t *testing.T) {
	for endpoint, want := range map[string]string{
		"http://collector:4318": "http://collector:4318/v1/logs", "http://collector:4318/": "http://collector:4318/v1/logs", "https://a/otlp/v1/logs": "https://a/otlp/v1/logs",
	} {
		if got := newClient(t, Config{Endpoint: endpoint}).URL(); got != want {
			t.Errorf("the address of %s is %s, want %s", endpoint, got, want)
		}
	}
}

func TestConfig_Validate(t *testing.T) {
	for _, tc := range []struct {
		config Config
		err    string
	}{
		{Config{}, ""},
		{Config{CAFile: "ca", HeadersFile: "h"}, ""},
		{Config{Endpoint: "http://collector:4318"}, ""},
		{Config{Endpoint: "https://collector:4318/v1/logs", HeadersFile: "h"}, ""},
		{Config{Endpoint: "http://127.0.0.1:4318", HeadersFile: "h"}, ""},
		{Config{Endpoint: "http://[::1]:4318", HeadersFile: "h"}, ""},
		{Config{Endpoint: "http://collector:4318", HeadersFile: "h"}, "use an https URL"},
		{Config{Endpoint: "collector:4318"}, "use a URL of HTTP"},
		{Config{Endpoint: "grpc://collector:4317"}, "use a URL of HTTP"},
		{Config{Endpoint: "https://me:secret@coll ector"}, "use a URL of HTTP"},
		{Config{Endpoint: "https://me:secret@collector"}, "without a user, a query and a fragment"},
		{Config{Endpoint: "https://collector?key=secret"}, "without a user, a query and a fragment"},
	} {
		err := tc.config.Validate()
		if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
			t.Errorf("%+v: the error is %v, want %q", tc.config, err, tc.err)
		}
		if strings.Contains(fmt.Sprint(err), "secret") {
			t.Errorf("the error %v shows a secret", err)
		}
	}
}

func TestNewClient_WrongFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "headers")
	if err := os.WriteFile(file, []byte("Authorization: Bearer x\nsecret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		config Config
		want   string
	}{
		{Config{CAFile: "missing"}, "--otlp-ca-file"},
		{Config{CAFile: file}, "no certificate in"},
		{Config{HeadersFile: "missing"}, "--otlp-headers-file"},
		{Config{HeadersFile: file}, "line 2 of"},
	} {
		tc.config.Endpoint = "https://127.0.0.1:4318"
		_, err := NewClient(tc.config, LogsPath, "test")
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%+v: the error is %v, want %q", tc.config, err, tc.want)
		}
	}
}
