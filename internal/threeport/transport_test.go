package threeport

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/testing/certs"
)

// write replaces a file's content and makes sure that its time changes.
func write(t *testing.T, name string, content []byte) {
	t.Helper()
	before, _ := os.Stat(name)
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if before != nil {
		later := before.ModTime().Add(time.Second)
		if err := os.Chtimes(name, later, later); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRotation(t *testing.T) {
	ca := certs.ForTest(t)
	serverCert, serverKey := ca.Issue("server")
	pair, err := tls.X509KeyPair(serverCert, serverKey)
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(ca.PEM())
	var who, token string
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, token = r.TLS.PeerCertificates[0].Subject.CommonName, r.Header.Get("Authorization")
		reply(w, 200, `[{"ID":1}]`, "")
	}))
	server.TLS = &tls.Config{
		Certificates: []tls.Certificate{pair}, ClientCAs: clients,
		ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12,
	}
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.StartTLS()
	t.Cleanup(server.Close)

	dir := t.TempDir()
	config := Config{
		Server: server.Listener.Addr().String(), AuthEnabled: true, Timeout: DefaultTimeout,
		CertFile: filepath.Join(dir, "tls.crt"), KeyFile: filepath.Join(dir, "tls.key"),
		CAFile: filepath.Join(dir, "ca.crt"), TokenFile: filepath.Join(dir, "token"),
	}
	if _, err := New(config); err == nil {
		t.Error("a client was made without its certificate")
	}
	cert, key := ca.Issue("first")
	write(t, config.CertFile, cert)
	write(t, config.KeyFile, key)
	write(t, config.CAFile, ca.PEM())
	write(t, config.TokenFile, []byte("one\n"))
	client, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)

	expect := func(wantWho, wantToken string) {
		t.Helper()
		if err := client.UpdateWorkloadInstanceStatus(t.Context(), 1, "Healthy"); err != nil {
			t.Fatal(err)
		}
		if who != wantWho || token != wantToken {
			t.Errorf("authenticated as %q with %q, want %q with %q", who, token, wantWho, wantToken)
		}
	}
	expect("first", "Bearer one")

	write(t, config.TokenFile, []byte("two"))
	expect("first", "Bearer two")

	cert, key = ca.Issue("second")
	write(t, config.CertFile, cert)
	expect("first", "Bearer two") // certificate and key do not match yet
	write(t, config.KeyFile, key)
	expect("second", "Bearer two")

	write(t, config.CAFile, certs.ForTest(t).PEM())
	err = client.UpdateWorkloadInstanceStatus(t.Context(), 1, "Healthy")
	if KindOf(err) != KindRetryable {
		t.Errorf("a server of an authority no longer trusted: %v", err)
	}
	write(t, config.CAFile, ca.PEM())
	expect("second", "Bearer two")

	write(t, config.TokenFile, []byte("not\none"))
	if err := client.UpdateWorkloadInstanceStatus(t.Context(), 1, "Healthy"); err == nil {
		t.Error("a broken token file was used")
	}
}

func TestClient_CertificateExpiry(t *testing.T) {
	ca := certs.ForTest(t)
	files := ca.IssueFiles("agent")
	config := Config{
		Server: "127.0.0.1:1", AuthEnabled: true, Timeout: DefaultTimeout, CertFile: files.Cert, KeyFile: files.Key, CAFile: files.CA,
	}
	end := time.Now().Add(time.Hour).Truncate(time.Second)
	renew := func(end time.Time) {
		t.Helper()
		cert, key := ca.IssueUntil("agent", end)
		write(t, files.Cert, cert)
		write(t, files.Key, key)
	}
	renew(end)
	client, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	if got := client.CertificateExpiry(); !got.Equal(end) {
		t.Errorf("the certificate ends %s, want %s", got, end)
	}
	renew(end.Add(time.Hour))
	if got, want := client.CertificateExpiry(), end.Add(time.Hour); !got.Equal(want) {
		t.Errorf("the renewed certificate ends %s before any request, want %s", got, want)
	}

	plain, err := New(Config{Server: "http://127.0.0.1:1", Timeout: DefaultTimeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(plain.Close)
	if got := plain.CertificateExpiry(); !got.IsZero() {
		t.Errorf("without a certificate the end is %s, want the zero time", got)
	}
}
