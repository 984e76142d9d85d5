package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/e2e/image"
	"github.com/threeport/threeport-agent/internal/testing/certs"
)

// RealNodeName is the name of the node that runs containers, see [Options.RealNode].
const RealNodeName = "node-real"

// The addresses of the real node. They exist in its network namespace only.
const (
	realNodeIP  = "192.0.2.2" // reserved for documentation, as nodeIP is
	realPodCIDR = "10.245.0.0/24"
)

// pauseImage is what a pod's sandbox runs.
const pauseImage = "localhost/pause:1"

// containerdSocket is where containerd listens, in the node's mount namespace.
const containerdSocket = "/run/containerd/containerd.sock"

// startNode starts the real node and returns when it is ready. The API server is ready already.
func (c *Cluster) startNode(ctx context.Context) error {
	if err := c.buildNode(ctx); err != nil {
		return err
	}
	if err := c.launchAndAwait(ctx, nodeInit); err != nil {
		return err
	}
	if err := c.Publish(ctx, net.JoinHostPort(apiServiceIP, "443"), address(c.ports.api)); err != nil {
		return err
	}
	if err := c.serveEgress(ctx); err != nil {
		return err
	}
	if err := c.launchAndAwait(ctx, Containerd); err != nil {
		return err
	}
	if err := c.LoadImage(ctx, c.dir.file("pause.tar")); err != nil {
		return err
	}
	return c.launchAndAwait(ctx, Kubelet)
}

// buildNode makes what the node needs of this source tree: its first process and the image of sandboxes.
func (c *Cluster) buildNode(ctx context.Context) error {
	root, err := SourceTree()
	if err != nil {
		return err
	}
	module := filepath.Join(root, "internal", "e2e")
	return errors.Join(
		image.Compile(ctx, module, "./cluster/nodeinit", c.binaries[nodeInit]),
		image.Program(ctx, module, "./cluster/pause", c.dir.file("pause.tar"), pauseImage),
	)
}

// LoadImage makes the images in an archive (docker-archive or OCI) known to the real node. Pods use them with
// imagePullPolicy Never.
func (c *Cluster) LoadImage(ctx context.Context, archive string) error {
	file, err := os.Open(archive) //nolint:gosec // the caller names it
	if err != nil {
		return fmt.Errorf("load image: %w", err)
	}
	defer file.Close() //nolint:errcheck // it was only read
	out, err := c.runInNode(ctx, file, c.binaries[ctr], "--address", containerdSocket, "--namespace", "k8s.io", "images", "import", "-")
	if err != nil {
		return fmt.Errorf("load image %s (is it what docker save or make image writes?): %w\n%s", archive, err, out)
	}
	return nil
}

// LoadBehave compiles internal/e2e/behave, the program of test workloads, and loads its image, [image.Behave].
func (c *Cluster) LoadBehave(ctx context.Context) error {
	root, err := SourceTree()
	if err != nil {
		return err
	}
	archive := c.dir.file("behave.tar")
	if err := image.Program(ctx, filepath.Join(root, "internal", "e2e"), "./behave", archive, image.Behave); err != nil {
		return err
	}
	return c.LoadImage(ctx, archive)
}

// nodePID is the process ID of the node's first process, whose namespaces are the node.
func (c *Cluster) nodePID() (int, error) {
	pid := c.PID(nodeInit)
	if pid == 0 {
		return 0, errors.New("this cluster runs no real node: see cluster.Options.RealNode")
	}
	return pid, nil
}

// NodeFile is the path of a file of the real node, seen from outside: such as /var/log/pods. Its private folders
// are in memory, and end with the node.
func (c *Cluster) NodeFile(path string) (string, error) {
	pid, err := c.nodePID()
	if err != nil {
		return "", err
	}
	return filepath.Join("/proc", fmt.Sprint(pid), "root", path), nil
}

// MountDisk mounts an empty disk in memory on a folder of the real node, which it creates. The size is as for the option of tmpfs: 8m.
func (c *Cluster) MountDisk(ctx context.Context, path, size string) error {
	for _, command := range [][]string{{"mkdir", "-p", path}, {"mount", "-t", "tmpfs", "-o", "nosuid,nodev,size=" + size, "tmpfs", path}} {
		if out, err := c.runInNode(ctx, nil, command[0], command[1:]...); err != nil {
			return fmt.Errorf("mount a disk of %s on %s: %w\n%s", size, path, err, out)
		}
	}
	return nil
}

// PodProcess returns the PID, on this machine, of a program that runs in a pod. It finds the process by its control group.
func PodProcess(pod types.UID, program string) (pid int, err error) {
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return 0, fmt.Errorf("list processes: %w", err)
	}
	for _, path := range commands {
		command, err := os.ReadFile(path) //nolint:gosec // a file of the kernel
		groups, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cgroup"))
		if err == nil && strings.HasPrefix(string(command), program+"\x00") && strings.Contains(string(groups), string(pod)) {
			return strconv.Atoi(filepath.Base(filepath.Dir(path)))
		}
	}
	return 0, fmt.Errorf("pod %s has no process %s", pod, program)
}

// nodeGroup is the control group that those of the node's pods are below.
func nodeGroup(runDir string) string { return "/threeport-" + filepath.Base(runDir) }

// nodeInitReady is nil once the node's namespaces are set up.
func (c *Cluster) nodeInitReady() error {
	log, err := os.ReadFile(c.dir.file(string(nodeInit) + ".log"))
	if err != nil {
		return fmt.Errorf("read log: %w", err)
	}
	if !strings.Contains(string(log), "ready\n") {
		return errors.New("nodeinit has not logged that it is ready")
	}
	return nil
}

// containerdReady is nil once containerd listens.
func (c *Cluster) containerdReady(ctx context.Context) error {
	socket, err := c.NodeFile(containerdSocket)
	if err != nil {
		return err
	}
	conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
	if err != nil {
		return fmt.Errorf("connect to containerd: %w", err)
	}
	return conn.Close()
}

// realNodeReady is nil once the kubelet has registered its node, and pods may run there.
func (c *Cluster) realNodeReady(ctx context.Context) error {
	node, err := c.client.CoreV1().Nodes().Get(ctx, RealNodeName, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get node: %w", err)
	}
	if !nodeReady(node) {
		return fmt.Errorf("node %s is not ready: %s", node.Name, readyMessage(node))
	}
	return nil
}

func readyMessage(node *corev1.Node) string {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status != corev1.ConditionTrue {
			return condition.Message
		}
	}
	return fmt.Sprintf("the node has the taints %v", node.Spec.Taints)
}

// kubeletArgs is the command line of the kubelet.
func (c *Cluster) kubeletArgs() []string {
	return []string{
		"--config=" + c.dir.file("kubelet.yaml"),
		"--kubeconfig=" + c.dir.file(string(Kubelet)+".kubeconfig"),
		"--hostname-override=" + RealNodeName,
		"--node-ip=" + realNodeIP,
		"--node-labels=type=real",
		"--root-dir=/var/lib/kubelet",
		"--v=2",
	}
}

// writeNodeFiles puts all that the node's components read into the run directory.
func (c *Cluster) writeNodeFiles() error {
	serving, err := c.authority.Serving(RealNodeName, realNodeIP)
	if err != nil {
		return err
	}
	client, err := c.authority.Client("kube-apiserver-kubelet-client", "system:masters")
	if err != nil {
		return err
	}
	for name, pair := range map[string]certs.KeyPair{"kubelet": serving, "kubelet-client": client} {
		if err := pair.Write(c.dir.path, name); err != nil {
			return err
		}
	}
	if err := os.Mkdir(c.dir.file("cni"), 0o700); err != nil {
		return fmt.Errorf("create folder: %w", err)
	}
	for name, content := range map[string]string{
		"kubelet.yaml":    c.kubeletConfig(),
		"containerd.toml": c.containerdConfig(),
		filepath.Join("cni", "10-bridge.conflist"): cniConfig,
		"egress.yaml": c.egressConfig(),
	} {
		if err := os.WriteFile(c.dir.file(name), []byte(content), 0o600); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}

// kubeletConfig is the kubelet's configuration.
func (c *Cluster) kubeletConfig() string {
	return strings.NewReplacer("${dir}", c.dir.path, "${group}", nodeGroup(c.dir.path),
		"${address}", realNodeIP, "${socket}", containerdSocket).Replace(kubeletConfig)
}

// Control groups of version 1 will do, and all of pods and containers are below the node's own. Evictions and
// collection of images are off: how full the machine's disks are is not the node's business.
const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: ${address}
port: 10250
healthzBindAddress: 127.0.0.1
containerRuntimeEndpoint: unix://${socket}
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: false}
  x509: {clientCAFile: "${dir}/ca.crt"}
authorization: {mode: Webhook}
tlsCertFile: ${dir}/kubelet.crt
tlsPrivateKeyFile: ${dir}/kubelet.key
cgroupDriver: cgroupfs
cgroupRoot: ${group}
failCgroupV1: false
failSwapOn: false
localStorageCapacityIsolation: false
clusterDNS: [10.96.0.10]
clusterDomain: cluster.local
resolvConf: ""
makeIPTablesUtilChains: false
oomScoreAdj: 0
volumePluginDir: /var/lib/kubelet/volume-plugins
nodeLeaseDurationSeconds: 8
evictionHard: {imagefs.available: "0%", nodefs.available: "0%", nodefs.inodesFree: "0%", memory.available: "0%"}
imageGCHighThresholdPercent: 100
`

// containerdConfig is containerd's configuration (version 2: containerd 1.3 to 2.x).
//
// restrict_oom_score_adj: without the capability SYS_RESOURCE no process may lower its score, and the sandboxes' is below
// ours. disable_apparmor: a profile would stay loaded in the kernel. The registry's folder is empty, so that the only
// registries are those that images name.
func (c *Cluster) containerdConfig() string {
	return fmt.Sprintf(`version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
oom_score = 0
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.aufs"]

[grpc]
address = %q

[plugins."io.containerd.internal.v1.opt"]
path = "/var/lib/containerd/opt"

[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = %q
restrict_oom_score_adj = true
disable_apparmor = true
disable_tcp_service = true
stream_server_address = "127.0.0.1"

[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = %q
conf_dir = %q

[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "overlayfs"
default_runtime_name = "runc"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
BinaryName = %q
SystemdCgroup = false
`, containerdSocket, pauseImage, c.machine.cniDir, c.dir.file("cni"), c.machine.runc)
}

// cniConfig gives pods addresses on a bridge. There is no way out of it: pods reach each other, the node, and the
// services on it.
const cniConfig = `{
  "cniVersion": "0.4.0",
  "name": "bridge",
  "plugins": [{
    "type": "bridge",
    "bridge": "cni0",
    "isGateway": true,
    "isDefaultGateway": true,
    "hairpinMode": true,
    "ipam": {"type": "host-local", "ranges": [[{"subnet": "` + realPodCIDR + `"}]], "dataDir": "/var/lib/cni/networks"}
  }]
}
`
