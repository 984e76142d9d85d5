package cluster

import (
	"fmt"
	"net/url"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/threeport/threeport-agent/internal/testing/certs"
)

// The rate limit of this package's clients, in requests a second. The default of 5 would limit tests and benchmarks.
const (
	clientQPS   = 1000
	clientBurst = 2000
)

// contextName is the name of the cluster, the user and the context in kubeconfigs.
const contextName = "threeport-local"

// User creates a user with a client certificate, and returns the path of its kubeconfig and its client configuration. Without
// groups it has only the permissions of its name and of system:authenticated. Another call with the same name replaces the
// kubeconfig.
func (c *Cluster) User(name string, groups ...string) (kubeconfig string, config *rest.Config, err error) {
	pair, err := c.authority.Client(name, groups...)
	if err != nil {
		return "", nil, err
	}
	path := c.dir.file("user-" + url.PathEscape(name) + ".kubeconfig")
	if err := clientcmd.WriteToFile(newKubeconfig("https://"+address(c.ports.api), c.authority, pair), path); err != nil {
		return "", nil, fmt.Errorf("write kubeconfig of %q: %w", name, err)
	}
	return path, c.clientConfig(pair), nil
}

func (c *Cluster) clientConfig(pair certs.KeyPair) *rest.Config {
	return &rest.Config{
		Host: "https://" + address(c.ports.api),
		TLSClientConfig: rest.TLSClientConfig{
			CAData:   c.authority.CertPEM(),
			CertData: pair.Cert,
			KeyData:  pair.Key,
		},
		QPS:   clientQPS,
		Burst: clientBurst,
	}
}

func newKubeconfig(server string, ca *certs.Authority, user certs.KeyPair) clientcmdapi.Config {
	config := clientcmdapi.NewConfig()
	config.Clusters[contextName] = &clientcmdapi.Cluster{
		Server:                   server,
		CertificateAuthorityData: ca.CertPEM(),
	}
	config.AuthInfos[contextName] = &clientcmdapi.AuthInfo{
		ClientCertificateData: user.Cert,
		ClientKeyData:         user.Key,
	}
	config.Contexts[contextName] = &clientcmdapi.Context{Cluster: contextName, AuthInfo: contextName}
	config.CurrentContext = contextName
	return *config
}
