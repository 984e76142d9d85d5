package main

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"github.com/threeport/threeport-agent/internal/e2e/operator"
	"github.com/threeport/threeport-agent/internal/testing/certs"
)

// access has the connection settings of the control-plane API for the agent, the demo and the user.
type access struct {
	flags       []string              // of the API, that demand it
	credentials *operator.Credentials // nil if none are demanded
	transport   http.RoundTripper     // of the demo's own client
	setup       string                // command that goes before curl; may be empty
	curl        string
}

// openAccess requires no certificates.
func openAccess(string) (access, error) {
	return access{
		flags:     []string{"--auth-enabled=false"},
		transport: http.DefaultTransport,
		curl:      "curl -s",
	}, nil
}

// curlPair is the file name of the client certificate for the user's curl.
const curlPair = "demo"

// mutualAccess requires mutual TLS, with certificates below the cluster's run directory.
func mutualAccess(clusterDir string) (access, error) {
	dir := filepath.Join(clusterDir, "tls")
	if err := os.Mkdir(dir, 0o700); err != nil { //nolint:gosec // the cluster made the folder that it is in
		return access{}, fmt.Errorf("create folder of certificates: %w", err)
	}
	credentials, err := operator.NewCredentials(dir)
	if err != nil {
		return access{}, err
	}
	client, err := credentials.Client(curlPair)
	if err != nil {
		return access{}, err
	}
	pair, err := keyPairOf(client)
	if err != nil {
		return access{}, err
	}
	return access{
		flags:       credentials.APIFlags(),
		credentials: credentials,
		transport:   client.Transport,
		setup:       "export TLS=" + dir,
		curl:        "curl -s --cert $TLS/" + curlPair + ".crt --key $TLS/" + curlPair + ".key --cacert $TLS/api-ca.crt",
	}, pair.Write(dir, curlPair)
}

// keyPairOf returns the certificate of a client.
func keyPairOf(client *http.Client) (certs.KeyPair, error) {
	transport, ok := client.Transport.(*http.Transport)
	if !ok || transport.TLSClientConfig == nil || len(transport.TLSClientConfig.Certificates) != 1 {
		return certs.KeyPair{}, errors.New("expected a client with one certificate")
	}
	pair := transport.TLSClientConfig.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		return certs.KeyPair{}, fmt.Errorf("encode the client's key: %w", err)
	}
	return certs.KeyPair{
		Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}),
		Key:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
	}, nil
}
