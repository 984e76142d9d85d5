// Package operator installs the agent as users do: as a Deployment from config/ with the image of the Dockerfile. The local
// cluster has a real node. The agent uses mutual TLS to a control-plane API on this machine.
package operator

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/threeport/threeport-agent/internal/e2e/cluster"
	"github.com/threeport/threeport-agent/internal/e2e/image"
	"github.com/threeport/threeport-agent/internal/testing/certs"
)

// Names in config/default.
const (
	Namespace = "threeport-agent-system"
	Name      = "threeport-agent" // of the Deployment, and value of the label app.kubernetes.io/name
	APIHost   = "threeport-api-server.threeport-control-plane.svc"
)

// Names in overlay/kustomization.yaml.
const (
	imageName  = "localhost/threeport-agent"
	imageTag   = "local"
	Image      = imageName + ":" + imageTag
	APIAddress = "10.96.0.20" // the IP address of the control-plane API for pods
)

// rolloutTimeout is long enough for every rollout that does not hang.
const rolloutTimeout = "10m"

// Credentials are the certificates for mutual TLS between the agent and the control-plane API.
type Credentials struct {
	authority *certs.Authority
	dir       string
}

// NewCredentials creates an authority, and writes the control-plane API's certificate to a folder.
func NewCredentials(dir string) (*Credentials, error) {
	authority, err := certs.NewAuthority("threeport-control-plane")
	if err != nil {
		return nil, err
	}
	serving, err := authority.Serving("threeport-api-server", APIHost, APIAddress)
	if err != nil {
		return nil, err
	}
	if err := serving.Write(dir, "api"); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "api-ca.crt"), authority.CertPEM(), 0o600); err != nil {
		return nil, fmt.Errorf("write authority: %w", err)
	}
	return &Credentials{authority: authority, dir: dir}, nil
}

// APIFlags returns the flags of cmd/controlplane that make it require these credentials. A certificate without a group has the role admin,
// as in installations of v0.
func (c *Credentials) APIFlags() []string {
	return []string{
		"--auth-enabled=true",
		"--cert-file=" + filepath.Join(c.dir, "api.crt"), "--key-file=" + filepath.Join(c.dir, "api.key"),
		"--ca-file=" + filepath.Join(c.dir, "api-ca.crt"), "--certificate-role=admin",
	}
}

// Client returns an HTTP client that the control-plane API accepts. The groups of its certificate name its role.
func (c *Credentials) Client(name string, groups ...string) (*http.Client, error) {
	pair, err := c.authority.Client(name, groups...)
	if err != nil {
		return nil, err
	}
	cert, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		return nil, fmt.Errorf("certificate of %s: %w", name, err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(c.authority.CertPEM())
	return &http.Client{Timeout: time.Minute, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{cert}, RootCAs: roots, MinVersion: tls.VersionTLS13},
	}}, nil
}

// Operator is an installed agent.
type Operator struct {
	cluster *cluster.Cluster
	client  kubernetes.Interface
	kubectl string
	overlay string
}

// Install builds the agent's image from the source tree at root, loads it, and applies config/ with the overlay. api is the
// TCP address of the control-plane API on this machine. Install returns after the rollout; compiling the agent takes about a
// minute.
func Install(ctx context.Context, c *cluster.Cluster, root string, credentials *Credentials, api string) (*Operator, error) {
	binaries, err := cluster.FindBinaries(ctx, nil, cluster.Kubectl)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	o := &Operator{
		cluster: c, client: client, kubectl: binaries[cluster.Kubectl], overlay: filepath.Join(root, "internal", "e2e", "operator", "overlay"),
	}
	archive := filepath.Join(c.Dir(), "agent-image.tar")
	if err := image.Target(ctx, root, "agent", runtime.GOARCH, archive, Image); err != nil {
		return nil, err
	}
	if err := c.LoadImage(ctx, archive); err != nil {
		return nil, err
	}
	if err := c.Publish(ctx, APIAddress+":443", api); err != nil {
		return nil, err
	}
	if err := o.createSecrets(ctx, credentials); err != nil {
		return nil, err
	}
	return o, o.Apply(ctx)
}

// Apply applies config/ with the overlay, and returns after the rollout.
func (o *Operator) Apply(ctx context.Context) error {
	if _, err := o.Kubectl(ctx, "apply", "--server-side", "-k", o.overlay); err != nil {
		return err
	}
	return o.AwaitRollout(ctx)
}

// ChartValues returns the arguments of Helm with which the chart of the agent installs the same as [Operator.Apply]. No DNS server runs,
// so the chart has the address of the control-plane API.
func ChartValues() []string {
	return []string{
		"--set", "image.repository=" + imageName, "--set", "image.tag=" + imageTag, "--set", "image.pullPolicy=Never",
		"--set", "threeportApiServer=" + APIAddress,
	}
}

// createSecrets creates the namespace and the Secrets of the Deployment.
func (o *Operator) createSecrets(ctx context.Context, credentials *Credentials) error {
	pair, err := credentials.authority.Client(Name)
	if err != nil {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}}
	if _, err := o.client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create namespace: %w", err)
	}
	for name, data := range map[string]map[string][]byte{
		Name + "-cert": {"tls.crt": pair.Cert, "tls.key": pair.Key},
		Name + "-ca":   {"tls.crt": credentials.authority.CertPEM()},
	} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}
		if _, err := o.client.CoreV1().Secrets(Namespace).Create(ctx, secret, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create Secret: %w", err)
		}
	}
	return nil
}

// Kubectl runs kubectl as the cluster's administrator, and returns its output.
func (o *Operator) Kubectl(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, o.kubectl, args...) //nolint:gosec // kubectl, with the arguments of tests
	cmd.Env = append(os.Environ(), "KUBECONFIG="+o.cluster.Kubeconfig())
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("kubectl %v: %w\n%s", args, err, out)
	}
	return string(out), nil
}

// AwaitRollout waits until the rollout of the Deployment is complete.
func (o *Operator) AwaitRollout(ctx context.Context) error {
	_, err := o.Kubectl(ctx, "rollout", "status", "deployment/"+Name, "-n", Namespace, "--timeout="+rolloutTimeout)
	if err == nil {
		return nil
	}
	why, _ := o.Kubectl(ctx, "get", "pods,events", "-n", Namespace, "-o", "wide")
	logs, _ := o.Kubectl(ctx, "logs", "deployment/"+Name, "-n", Namespace, "--tail=20")
	return fmt.Errorf("install the agent: %w\n%s\n%s", err, why, logs)
}

// Pods returns the agent's pods without a deletion timestamp.
func (o *Operator) Pods(ctx context.Context) ([]corev1.Pod, error) {
	list, err := o.client.CoreV1().Pods(Namespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=" + Name})
	if err != nil {
		return nil, fmt.Errorf("list the agent's pods: %w", err)
	}
	var live []corev1.Pod
	for _, pod := range list.Items {
		if pod.DeletionTimestamp == nil {
			live = append(live, pod)
		}
	}
	return live, nil
}

// Logs returns the logs of all pods of the agent.
func (o *Operator) Logs(ctx context.Context) (string, error) {
	return o.Kubectl(ctx, "logs", "-n", Namespace, "-l", "app.kubernetes.io/name="+Name, "--tail=-1", "--prefix")
}
