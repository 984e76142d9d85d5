package cluster

import (
	"fmt"
	"os"
	"slices"
	"strconv"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/threeport/threeport-agent/internal/testing/certs"
)

// ports are the ports of a cluster. Controller manager, scheduler and kwok do not listen.
type ports struct {
	etcd, etcdPeer, api int
}

// serviceCIDR is the range of Services; the first address is the API server's.
const (
	serviceCIDR  = "10.96.0.0/16"
	apiServiceIP = "10.96.0.1"
)

// The time until a lost node is detected, and until its pods are evicted, with a real node. The defaults are 50 s and 300 s.
const (
	leaseSeconds    = 8 // renewed every 2
	evictionSeconds = "10"
)

// Users of the components, each with a client certificate.
var componentUsers = map[Component]struct {
	name  string
	group []string
}{
	// kube-apiserver binds the two names to their roles at its first start (bootstrap policy).
	ControllerManager: {name: "system:kube-controller-manager"},
	Scheduler:         {name: "system:kube-scheduler"},
	// kwok acts as every kubelet and creates their Events; there is no predefined role for that.
	Kwok: {name: "kwok", group: []string{"system:masters"}},
	// The API server's Node authorizer knows what a kubelet may do by these names.
	Kubelet: {name: "system:node:" + RealNodeName, group: []string{"system:nodes"}},
}

// writeFiles writes the configuration files of all components to the run directory.
func (c *Cluster) writeFiles() error {
	etcdAuthority, err := certs.NewAuthority("etcd")
	if err != nil {
		return err
	}
	etcdServing, err := etcdAuthority.Serving("etcd")
	if err != nil {
		return err
	}
	etcdClient, err := etcdAuthority.Client("kube-apiserver")
	if err != nil {
		return err
	}
	apiServing, err := c.authority.Serving("kube-apiserver", apiServiceIP, "kubernetes", "kubernetes.default",
		"kubernetes.default.svc", "kubernetes.default.svc.cluster.local")
	if err != nil {
		return err
	}
	for name, pair := range map[string]certs.KeyPair{"etcd": etcdServing, "etcd-client": etcdClient, "api": apiServing} {
		if err := pair.Write(c.dir.path, name); err != nil {
			return err
		}
	}
	private, public, err := certs.NewSigningKey()
	if err != nil {
		return err
	}
	stages, err := renderStages()
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		"etcd-ca.crt": etcdAuthority.CertPEM(), "ca.crt": c.authority.CertPEM(),
		"service-account.key": private, "service-account.pub": public,
		"stages.yaml": stages,
	} {
		if err := os.WriteFile(c.dir.file(name), content, 0o600); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	if c.options.RealNode {
		if err := c.writeNodeFiles(); err != nil {
			return err
		}
	}
	return c.writeKubeconfigs()
}

func (c *Cluster) writeKubeconfigs() error {
	for component, user := range componentUsers {
		pair, err := c.authority.Client(user.name, user.group...)
		if err != nil {
			return err
		}
		server := "https://" + address(c.ports.api)
		if component == Kubelet { // the address that pods use too
			server = "https://" + apiServiceIP
		}
		if err := clientcmd.WriteToFile(newKubeconfig(server, c.authority, pair), c.dir.file(string(component)+".kubeconfig")); err != nil {
			return fmt.Errorf("write kubeconfig of %s: %w", component, err)
		}
	}
	if err := clientcmd.WriteToFile(newKubeconfig("https://"+address(c.ports.api), c.authority, c.admin), c.Kubeconfig()); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}

// args returns the command line of a component.
func (c *Cluster) args(component Component) []string {
	switch component {
	case Etcd:
		return c.etcdArgs()
	case APIServer:
		return c.apiServerArgs()
	case ControllerManager:
		return c.controllerManagerArgs()
	case Scheduler:
		return []string{
			"--kubeconfig=" + c.dir.file("kube-scheduler.kubeconfig"),
			"--leader-elect=false",
			"--bind-address=" + loopback, "--secure-port=0", // 0: serves nothing
			"--kube-api-qps=500", "--kube-api-burst=1000",
		}
	case Kwok:
		return []string{
			"--kubeconfig=" + c.dir.file("kwok.kubeconfig"),
			"--config=" + c.dir.file("stages.yaml"),
			"--v=WARN",
			"--manage-all-nodes=false",
			"--manage-nodes-with-annotation-selector=" + nodeAnnotation + "=" + nodeAnnotationValue,
			"--node-lease-duration-seconds=" + strconv.Itoa(leaseSeconds),
			"--node-ip=" + nodeIP, "--cidr=10.244.0.0/16",
			"--server-address=", "--node-port=0", // no address and no port: serves nothing
		}
	case nodeInit:
		return []string{
			"--hostname=" + RealNodeName, "--address=" + realNodeIP + "/32", "--services=" + serviceCIDR,
			"--cgroup=" + nodeGroup(c.dir.path), "--keep=" + c.dir.cache(),
		}
	case Containerd:
		return []string{"--config=" + c.dir.file("containerd.toml")}
	case Kubelet:
		return c.kubeletArgs()
	case Kubectl, ctr:
	}
	return nil
}

func (c *Cluster) etcdArgs() []string {
	clients := "https://" + address(c.ports.etcd)
	peers := "http://" + address(c.ports.etcdPeer)
	return []string{
		"--name=local",
		"--data-dir=" + c.dir.file("etcd"),
		"--listen-client-urls=" + clients, "--advertise-client-urls=" + clients,
		"--listen-peer-urls=" + peers, "--initial-advertise-peer-urls=" + peers,
		"--initial-cluster=local=" + peers,
		"--cert-file=" + c.dir.file("etcd.crt"), "--key-file=" + c.dir.file("etcd.key"),
		"--client-cert-auth", "--trusted-ca-file=" + c.dir.file("etcd-ca.crt"),
		"--enable-grpc-gateway=false", // would need a client certificate of its own
		"--unsafe-no-fsync",           // what survives a power cut is of no interest here
		"--log-level=warn", "--log-outputs=stderr",
	}
}

func (c *Cluster) apiServerArgs() []string {
	args := []string{
		"--bind-address=" + loopback, "--advertise-address=" + loopback,
		"--secure-port=" + strconv.Itoa(c.ports.api),
		"--endpoint-reconciler-type=none", // a loopback address is no endpoint for pods
		"--etcd-servers=https://" + address(c.ports.etcd),
		"--etcd-cafile=" + c.dir.file("etcd-ca.crt"),
		"--etcd-certfile=" + c.dir.file("etcd-client.crt"), "--etcd-keyfile=" + c.dir.file("etcd-client.key"),
		"--tls-cert-file=" + c.dir.file("api.crt"), "--tls-private-key-file=" + c.dir.file("api.key"),
		"--client-ca-file=" + c.dir.file("ca.crt"),
		"--anonymous-auth=false",
		"--authorization-mode=Node,RBAC",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + c.dir.file("service-account.pub"),
		"--service-account-signing-key-file=" + c.dir.file("service-account.key"),
		"--service-cluster-ip-range=" + serviceCIDR,
		"--allow-privileged=true",
	}
	if !slices.Contains(c.options.Components, ControllerManager) {
		// Without the controller manager there are no ServiceAccounts, which this plugin requires for pods.
		args = append(args, "--disable-admission-plugins=ServiceAccount")
	}
	if c.options.RealNode {
		args = append(args,
			"--enable-admission-plugins=NodeRestriction",
			"--egress-selector-config-file="+c.dir.file("egress.yaml"),
			"--kubelet-preferred-address-types=InternalIP",
			"--kubelet-certificate-authority="+c.dir.file("ca.crt"),
			"--kubelet-client-certificate="+c.dir.file("kubelet-client.crt"),
			"--kubelet-client-key="+c.dir.file("kubelet-client.key"),
			"--default-not-ready-toleration-seconds="+evictionSeconds,
			"--default-unreachable-toleration-seconds="+evictionSeconds,
		)
	}
	return append(args, c.options.APIServerArgs...)
}

func (c *Cluster) controllerManagerArgs() []string {
	args := []string{
		"--kubeconfig=" + c.dir.file("kube-controller-manager.kubeconfig"),
		"--leader-elect=false",
		"--bind-address=" + loopback, "--secure-port=0", // 0: serves nothing
		"--use-service-account-credentials",
		"--service-account-private-key-file=" + c.dir.file("service-account.key"),
		"--root-ca-file=" + c.dir.file("ca.crt"),
		// Hundreds of pods must start in seconds, and the default limit is 20 requests a second.
		"--kube-api-qps=500", "--kube-api-burst=1000",
		"--concurrent-deployment-syncs=10", "--concurrent-replicaset-syncs=10",
		"--concurrent-statefulset-syncs=10", "--concurrent-daemonset-syncs=5", "--concurrent-job-syncs=10",
	}
	if c.options.RealNode {
		args = append(args, "--node-monitor-period=1s", "--node-monitor-grace-period=20s")
	}
	return args
}
