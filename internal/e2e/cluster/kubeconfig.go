package cluster

import (
	"fmt"
	"net/url"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/threeport/threeport-agent/internal/testing/certs"
)

// Requests a second of the clients that this package hands out. Tests and benchmarks are to be limited by the
// API server, not by a client's own default of 5 a second.
const (
	clientQPS   = 1000
	clientBurst = 2000
)

// contextName is the name of the cluster, the user and the context in every kubeconfig of ours.
const contextName = "threeport-local"

// User makes a new identity with a client certificate of its own, and returns it as the path of a kubeconfig and
// as a client configuration. Without groups it may do what RBAC grants to that name and to
// system:authenticated, which is next to nothing. A second call with the same name replaces the kubeconfig.
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
