package main

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/util/validation"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/threeport/threeport-agent/internal/agent/credential"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// validateTokenSecret checks --token-secret, which needs --token-file.
func (o *options) validateTokenSecret() error {
	if o.tokenSecret == "" {
		return nil
	}
	if o.api.TokenFile == "" {
		return &flagError{
			[]string{"token-secret", "token-file"},
			errors.New("--token-secret needs --token-file: give the file of the token, which is mounted from that Secret"),
		}
	}
	namespace, name := splitSecret(o.tokenSecret)
	if len(validation.IsDNS1123Subdomain(name)) > 0 || len(validation.IsDNS1123Label(cmp.Or(namespace, "default"))) > 0 ||
		strings.HasPrefix(o.tokenSecret, "/") {
		return wrong("token-secret", fmt.Errorf("--token-secret is %q: give the NAME of a Secret, or NAMESPACE/NAME", o.tokenSecret))
	}
	if key := filepath.Base(o.api.TokenFile); len(validation.IsConfigMapKey(key)) > 0 {
		return wrong("token-file", fmt.Errorf("--token-file ends in %q, which is no key of the Secret of --token-secret", key))
	}
	return nil
}

// splitSecret splits NAMESPACE/NAME; the namespace is empty for NAME.
func splitSecret(text string) (namespace, name string) {
	if namespace, name, found := strings.Cut(text, "/"); found {
		return namespace, name
	}
	return "", text
}

// newRenewer returns what renews the token of the agent; nil without --token-secret or a control plane. The key of the Secret is the name of
// the file.
func newRenewer(o *options, config *rest.Config, api *threeport.Client, registry prometheus.Registerer, log logr.Logger) (*credential.Renewer, error) {
	if o.tokenSecret == "" || api == nil {
		return nil, nil
	}
	namespace, name := splitSecret(o.tokenSecret)
	if namespace == "" {
		var err error
		if namespace, err = podNamespace(); err != nil {
			return nil, err
		}
	}
	if namespace == "" {
		return nil, wrong("token-secret", fmt.Errorf("--token-secret is %q, and the agent runs outside a cluster: give NAMESPACE/NAME", o.tokenSecret))
	}
	client, err := corev1client.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("set up the renewal of the token: %w", err)
	}
	secret := credential.NewSecret(client.Secrets(namespace), name, filepath.Base(o.api.TokenFile))
	return credential.New(api, secret, credential.NewMetrics(registry), log), nil
}
