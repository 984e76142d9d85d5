package installed

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/threeport/threeport-agent/internal/e2e/cluster"
	"github.com/threeport/threeport-agent/internal/e2e/monitoring"
	"github.com/threeport/threeport-agent/internal/e2e/operator"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
	"github.com/threeport/threeport-agent/internal/e2e/world"
	"github.com/threeport/threeport-agent/internal/testing/certs"
)

// installation is a cluster in which an installer has installed the agent and the control-plane API, with a Prometheus and an Alertmanager.
type installation struct {
	*world.World
	*monitoring.Monitoring
	installer
	cluster   *cluster.Cluster
	uid       string // of the cluster
	authority *certs.Authority
	dir       string // for files of Prometheus

	web, account upstream.Deployed
	object       *unstructured.Unstructured // of web
}

// install installs everything, with workloads whose first reports are delivered.
func install(t *testing.T, by installer) *installation {
	t.Helper()
	c, err := cluster.Start(t.Context(), cluster.Options{RealNode: true, Nodes: -1, Log: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	i := &installation{World: world.New(t, &world.Cluster{Cluster: c}), installer: by, cluster: c, dir: t.TempDir()}
	i.Cleanup(i.showPods)
	for _, archive := range shared.images {
		i.Must(c.LoadImage(i.Ctx, archive))
	}
	// The disk of the database is small, so that it can be filled.
	i.Must(c.MountDisk(i.Ctx, apiVolume, "16m"))
	i.Must(c.PublishDial(i.Ctx, operator.APIAddress+":443", func(ctx context.Context) (net.Conn, error) { return i.dialAPI(ctx) }))
	system, err := i.Client.CoreV1().Namespaces().Get(i.Ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	i.Must(err)
	i.uid = string(system.UID)
	i.authority, err = certs.NewAuthority("threeport")
	i.Must(err)
	for _, program := range []string{"controlplane", "manager"} {
		i.kubectl("apply", "--server-side", "-f", filepath.Join(root, "config", program, "namespace.yaml"))
	}
	i.setSecret(apiNamespace, apiName+"-ca", map[string][]byte{"tls.crt": i.authority.CertPEM()})
	i.setSecret(operator.Namespace, operator.Name+"-ca", map[string][]byte{"tls.crt": i.authority.CertPEM()})
	i.setAPICertificate(time.Time{})
	i.setAgentCertificate(time.Time{})
	i.createMonitoringKinds()
	i.api(i)
	i.agent(i, false)
	i.connect()
	i.startMonitoring()
	i.web = i.Deploy("web", world.ConfigMap("conf"))
	i.account = i.Deploy("account", "{apiVersion: v1, kind: ServiceAccount, metadata: {name: account}}")
	i.object = i.Get(i.web.Objects[0])
	i.ExpectStatus(i.web, "Healthy")
	i.ExpectStatus(i.account, "Healthy")
	return i
}

// run runs a program with additional environment, and returns its output.
func (i *installation) run(env []string, program string, args ...string) string {
	i.Helper()
	cmd := exec.CommandContext(i.Ctx, program, args...)
	cmd.Env = append(os.Environ(), env...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		i.Fatalf("%s: %v\n%s\n%s", strings.Join(cmd.Args, " "), err, out, stderr.String())
	}
	return strings.TrimSpace(string(out))
}

// kubectl runs kubectl as the administrator of the cluster.
func (i *installation) kubectl(args ...string) string {
	i.Helper()
	return i.run([]string{"KUBECONFIG=" + i.cluster.Kubeconfig()}, shared.kubectl, args...)
}

// controlplane runs a command of the control-plane API in its Pod.
func (i *installation) controlplane(args ...string) string {
	i.Helper()
	return i.kubectl(append([]string{"exec", "-n", apiNamespace, "deployment/" + apiName, "--", "/controlplane"}, args...)...)
}

// awaitRollout waits until the Pods of a Deployment are the wanted ones.
func (i *installation) awaitRollout(namespace, name string) {
	i.Helper()
	i.kubectl("rollout", "status", "-n", namespace, "deployment/"+name, "--timeout="+world.Timeout.String())
	i.Eventually("the end of the old Pods of "+name, func() error {
		deployment, err := i.Client.AppsV1().Deployments(namespace).Get(i.Ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		list, err := i.Client.CoreV1().Pods(namespace).List(i.Ctx, metav1.ListOptions{})
		if err == nil && len(list.Items) != int(*deployment.Spec.Replicas) {
			err = fmt.Errorf("there are %d Pods", len(list.Items))
		}
		return err
	})
}

// pods returns the Pods of a namespace without a deletion timestamp.
func (i *installation) pods(ctx context.Context, namespace string) ([]corev1.Pod, error) {
	list, err := i.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var live []corev1.Pod
	for _, pod := range list.Items {
		if pod.DeletionTimestamp == nil {
			live = append(live, pod)
		}
	}
	return live, nil
}

// showPods logs the states of the Pods if the test has failed.
func (i *installation) showPods() {
	if !i.Failed() {
		return
	}
	for _, namespace := range []string{apiNamespace, operator.Namespace} {
		for _, command := range [][]string{{"get", "pods,events"}, {"logs", "-l", "app.kubernetes.io/name", "--tail=40", "--prefix"}} {
			cmd := exec.CommandContext(context.WithoutCancel(i.Ctx), shared.kubectl, append(command, "-n", namespace)...)
			cmd.Env = append(os.Environ(), "KUBECONFIG="+i.cluster.Kubeconfig())
			out, _ := cmd.CombinedOutput()
			i.Logf("%s", out)
		}
	}
}

// setSecret creates or replaces a Secret. The kubelet updates the volumes of a Pod when it syncs the Pod, which is once a minute, or when the
// Pod changes.
func (i *installation) setSecret(namespace, name string, data map[string][]byte) {
	i.Helper()
	secrets := i.Client.CoreV1().Secrets(namespace)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}
	_, err := secrets.Update(i.Ctx, secret, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = secrets.Create(i.Ctx, secret, metav1.CreateOptions{})
	}
	i.Must(err)
	i.syncPods(namespace)
}

// syncPods changes an annotation of the Pods of a namespace.
func (i *installation) syncPods(namespace string) {
	i.Helper()
	i.kubectl("annotate", "pods", "--all", "-n", namespace, "--overwrite", "synced="+fmt.Sprint(time.Now().UnixNano()))
}

// setAPICertificate sets the certificate of the API, which ends at a time; with the zero time, after the test.
func (i *installation) setAPICertificate(end time.Time) {
	i.Helper()
	pair, err := i.authority.Until(end).Serving("threeport-api-server", operator.APIHost, operator.APIAddress)
	i.Must(err)
	i.setSecret(apiNamespace, apiName+"-cert", map[string][]byte{"tls.crt": pair.Cert, "tls.key": pair.Key})
}

// setAgentCertificate sets the client certificate of the agent, which ends at a time; with the zero time, after the test.
func (i *installation) setAgentCertificate(end time.Time) {
	i.Helper()
	pair, err := i.authority.Until(end).Client(i.uid, "threeport:agents")
	i.Must(err)
	i.setSecret(operator.Namespace, operator.Name+"-cert", map[string][]byte{"tls.crt": pair.Cert, "tls.key": pair.Key})
}

// connect makes the test an administrator of the control plane, whose instances belong to the cluster.
func (i *installation) connect() {
	i.Helper()
	admin, err := i.authority.Client("admin", "threeport:admins")
	i.Must(err)
	pair, err := tls.X509KeyPair(admin.Cert, admin.Key)
	i.Must(err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(i.authority.CertPEM())
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}, RootCAs: roots},
		DialContext:     func(ctx context.Context, _, _ string) (net.Conn, error) { return i.dialAPI(ctx) },
	}
	i.Cleanup(transport.CloseIdleConnections)
	i.Upstream.API = upstream.API{
		URL: "https://" + operator.APIAddress, HTTP: &http.Client{Timeout: time.Minute, Transport: assigning{transport, i.uid}},
	}
}

// assigning is a transport that assigns new instances to a cluster.
type assigning struct {
	http.RoundTripper
	cluster string // UID
}

// RoundTrip implements http.RoundTripper.
func (a assigning) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("Threeport-Cluster-UID", a.cluster)
	return a.RoundTripper.RoundTrip(req)
}

// dialAPI connects to the Pod of the API.
func (i *installation) dialAPI(ctx context.Context) (net.Conn, error) {
	pods, err := i.pods(ctx, apiNamespace)
	if err != nil {
		return nil, err
	}
	for _, pod := range pods {
		if pod.Status.PodIP != "" {
			return i.cluster.DialNode(ctx, net.JoinHostPort(pod.Status.PodIP, "8443"))
		}
	}
	return nil, fmt.Errorf("none of the %d Pods of the API has an address", len(pods))
}
