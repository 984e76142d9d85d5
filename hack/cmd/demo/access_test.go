package main

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// newMutualAccess returns the access with mutual TLS, and the folder of its certificates.
func newMutualAccess(t *testing.T) (access, string) {
	t.Helper()
	dir := t.TempDir()
	a, err := mutualAccess(dir)
	if err != nil {
		t.Fatal(err)
	}
	return a, filepath.Join(dir, "tls")
}

func TestMutualAccess_Curl_NamesExistingFiles(t *testing.T) {
	a, dir := newMutualAccess(t)
	variable, value, _ := strings.Cut(strings.TrimPrefix(a.setup, "export "), "=")
	if value != dir {
		t.Errorf("expected the setup to name %s, it is %q", dir, a.setup)
	}
	files := regexp.MustCompile(`--(?:cert|key|cacert) \$`+variable+`(\S+)`).FindAllStringSubmatch(a.curl, -1)
	if len(files) != 3 {
		t.Fatalf("expected three files in %q", a.curl)
	}
	for _, file := range files {
		info, err := os.Stat(filepath.Join(dir, file[1]))
		if err != nil {
			t.Error(err)
		} else if info.Mode().Perm() != 0o600 {
			t.Errorf("expected %s to be the user's only, its mode is %s", file[1], info.Mode())
		}
	}
}

func TestMutualAccess_Curl_HasDemoIdentity(t *testing.T) {
	a, dir := newMutualAccess(t)
	fromFiles, err := tls.LoadX509KeyPair(filepath.Join(dir, curlPair+".crt"), filepath.Join(dir, curlPair+".key"))
	if err != nil {
		t.Fatal(err)
	}
	authority, err := os.ReadFile(filepath.Join(dir, "api-ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	_, err = fromFiles.Leaf.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	if err != nil {
		t.Errorf("expected the API to accept the certificate: %v", err)
	}
	own := a.transport.(*http.Transport).TLSClientConfig.Certificates[0]
	if !fromFiles.Leaf.Equal(own.Leaf) {
		t.Errorf("expected the files to have the demo's certificate, they have that of %s", fromFiles.Leaf.Subject)
	}
}

func TestKeyPairOf_ClientWithoutCertificate_Fails(t *testing.T) {
	if _, err := keyPairOf(&http.Client{}); err == nil {
		t.Error("expected an error for a client without a certificate")
	}
}
