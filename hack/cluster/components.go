package cluster

import (
	"fmt"
	"os"
	"slices"
	"strconv"

	"k8s.io/client-go/tools/clientcmd"
)

// ports of a cluster. Nothing else listens: controller manager, scheduler and kwok serve nothing.
type ports struct {
	etcd, etcdPeer, api int
}

// Users of the components, each with a client certificate.
var componentUsers = map[Component]struct {
	name  string
	group []string
}{
	// kube-apiserver binds the two names to their roles at its first start (bootstrap policy).
	ControllerManager: {name: "system:kube-controller-manager"},
	Scheduler:         {name: "system:kube-scheduler"},
	// kwok is every kubelet and the author of their Events at once, for which there is no role.
	Kwok: {name: "kwok", group: []string{"system:masters"}},
}

// writeFiles puts all that the components read into the run directory.
func (c *Cluster) writeFiles() error {
	etcdAuthority, err := newAuthority("etcd")
	if err != nil {
		return err
	}
	etcdServing, err := etcdAuthority.serving("etcd")
	if err != nil {
		return err
	}
	etcdClient, err := etcdAuthority.client("kube-apiserver")
	if err != nil {
		return err
	}
	apiServing, err := c.authority.serving("kube-apiserver")
	if err != nil {
		return err
	}
	for name, pair := range map[string]keyPair{"etcd": etcdServing, "etcd-client": etcdClient, "api": apiServing} {
		if err := pair.write(c.dir.path, name); err != nil {
			return err
		}
	}
	private, public, err := newSigningKey()
	if err != nil {
		return err
	}
	stages, err := renderStages()
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		"etcd-ca.crt": etcdAuthority.certPEM(), "ca.crt": c.authority.certPEM(),
		"service-account.key": private, "service-account.pub": public,
		"stages.yaml": stages,
	} {
		if err := os.WriteFile(c.dir.file(name), content, 0o600); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return c.writeKubeconfigs()
}

func (c *Cluster) writeKubeconfigs() error {
	for component, user := range componentUsers {
		pair, err := c.authority.client(user.name, user.group...)
		if err != nil {
			return err
		}
		if err := clientcmd.WriteToFile(c.kubeconfig(pair), c.dir.file(string(component)+".kubeconfig")); err != nil {
			return fmt.Errorf("write kubeconfig of %s: %w", component, err)
		}
	}
	if err := clientcmd.WriteToFile(c.kubeconfig(c.admin), c.Kubeconfig()); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}

// args is the command line of a component.
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
			"--node-lease-duration-seconds=40",
			"--node-ip=" + nodeIP, "--cidr=10.244.0.0/16",
			"--server-address=", "--node-port=0", // no address and no port: serves nothing
		}
	case Kubectl:
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
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + c.dir.file("service-account.pub"),
		"--service-account-signing-key-file=" + c.dir.file("service-account.key"),
		"--service-cluster-ip-range=10.96.0.0/16",
		"--allow-privileged=true",
	}
	if !slices.Contains(c.options.Components, ControllerManager) {
		// Nobody would make the ServiceAccount that this plugin demands of every pod.
		args = append(args, "--disable-admission-plugins=ServiceAccount")
	}
	return append(args, c.options.APIServerArgs...)
}

func (c *Cluster) controllerManagerArgs() []string {
	return []string{
		"--kubeconfig=" + c.dir.file("kube-controller-manager.kubeconfig"),
		"--leader-elect=false",
		"--bind-address=" + loopback, "--secure-port=0", // 0: serves nothing
		"--use-service-account-credentials",
		"--service-account-private-key-file=" + c.dir.file("service-account.key"),
		"--root-ca-file=" + c.dir.file("ca.crt"),
		// Hundreds of pods have to come up in seconds: by default its clients wait for 20 requests a second.
		"--kube-api-qps=500", "--kube-api-burst=1000",
		"--concurrent-deployment-syncs=10", "--concurrent-replicaset-syncs=10",
		"--concurrent-statefulset-syncs=10", "--concurrent-daemonset-syncs=5", "--concurrent-job-syncs=10",
	}
}
