package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/threeport/threeport-agent/internal/e2e/cluster"
	"github.com/threeport/threeport-agent/internal/e2e/image"
	"github.com/threeport/threeport-agent/internal/e2e/world"
)

// helperEnv makes the test binary start a cluster with a real node, print a helperReport, and wait to be killed. Its value is
// the archive with the image of the test workloads.
const helperEnv = "THREEPORT_NODE_TEST_HELPER"

// helperReport is printed by the helper process when a pod runs on its node.
type helperReport struct {
	Dir      string // of the cluster
	NodeInit int    // process ID of the node's first process
}

func helper() error {
	ctx, cancel := context.WithTimeout(context.Background(), world.TestLimit)
	defer cancel()
	c, err := startWithPod(ctx, os.Getenv(helperEnv))
	if err != nil {
		return err
	}
	report := helperReport{Dir: c.Dir(), NodeInit: c.PID("nodeinit")}
	if err := json.NewEncoder(os.Stdout).Encode(report); err != nil {
		return err
	}
	<-ctx.Done() // the test kills this process long before
	return c.Stop()
}

// startWithPod starts a cluster with a real node and a running pod with a Secret and two containers.
func startWithPod(ctx context.Context, archive string) (*cluster.Cluster, error) {
	c, err := cluster.Start(ctx, cluster.Options{RealNode: true, Nodes: -1, Log: os.Stderr})
	if err != nil {
		return nil, err
	}
	if err := runPod(ctx, c, archive); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

func runPod(ctx context.Context, c *cluster.Cluster, archive string) error {
	if err := c.LoadImage(ctx, archive); err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		return err
	}
	container := corev1.Container{Name: "a", Image: image.Behave, ImagePullPolicy: corev1.PullNever, Args: []string{"--listen=:8080"}}
	other := container
	other.Name, other.Args = "b", []string{"--listen=:8081", "--ignore-sigterm"}
	pods := client.CoreV1().Pods("default")
	_, err = pods.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "pod"}, Spec: corev1.PodSpec{Containers: []corev1.Container{container, other}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return awaitPod(ctx, pods, "pod")
}

func awaitPod(ctx context.Context, pods typedcorev1.PodInterface, name string) error {
	ctx, cancel := context.WithTimeout(ctx, world.Timeout)
	defer cancel()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		pod, err := pods.Get(ctx, name, metav1.GetOptions{})
		switch {
		case err == nil && podReady(pod):
			return nil
		case err == nil:
			err = fmt.Errorf("the pod's phase is %q, with %v", pod.Status.Phase, pod.Status.ContainerStatuses)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the pod to be ready: %w; last: %w", ctx.Err(), err)
		case <-ticker.C:
		}
	}
}

// state is the state of the machine that a cluster may change.
type state map[string]bool

// observed has a function for each part of a state, which returns a line for each item.
var observed = map[string]func() ([]string, error){
	"mount":     mounts,
	"interface": func() ([]string, error) { return names("/sys/class/net") },
	"route":     func() ([]string, error) { return lines("/proc/net/route") },
	"namespace": func() ([]string, error) { return names("/run/netns", "/var/run/netns") },
	"file": func() ([]string, error) {
		return names("/run", "/var/lib", "/var/log", "/etc/cni", "/etc", "/opt")
	},
	"firewall": firewall,
	"sysctl":   sysctls,
}

func lines(path string) ([]string, error) {
	raw, err := os.ReadFile(path)
	return strings.Split(strings.TrimSpace(string(raw)), "\n"), err
}

// mounts omits mounts in temporary folders, which tests of other packages create and remove at the same time. A cluster has
// none there.
func mounts() ([]string, error) {
	all, err := lines("/proc/self/mounts")
	return slices.DeleteFunc(all, func(line string) bool {
		fields := strings.Fields(line)
		return len(fields) > 1 && strings.HasPrefix(fields[1], os.TempDir()+"/")
	}), err
}

func names(dirs ...string) (all []string, err error) {
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, entry := range entries {
			all = append(all, filepath.Join(dir, entry.Name()))
		}
	}
	return all, nil
}

// controlGroups returns the control groups of a cluster, given by its run directory, in all hierarchies: version 1 has one for
// each controller, version 2 a single one.
func controlGroups(runDir string) (groups []string) {
	for _, hierarchy := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/*"} {
		found, _ := filepath.Glob(filepath.Join(hierarchy, "threeport-"+filepath.Base(runDir))) // the pattern is right
		groups = append(groups, found...)
	}
	return groups
}

func firewall() (all []string, err error) {
	for _, command := range []string{"iptables-nft-save", "iptables-legacy-save"} {
		out, err := exec.Command(command).CombinedOutput() //nolint:noctx // it ends at once
		if err != nil {
			return nil, fmt.Errorf("%s: %w\n%s", command, err, out)
		}
		for line := range strings.Lines(string(out)) {
			rule, _, _ := strings.Cut(line, " [") // without the counters of a chain
			if !strings.HasPrefix(line, "#") {
				all = append(all, command+": "+strings.TrimSpace(rule))
			}
		}
	}
	return all, nil
}

func sysctls() ([]string, error) {
	var all []string
	for _, name := range []string{
		"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys",
		"kernel/keys/root_maxbytes", "kernel/hostname", "net/ipv4/ip_forward",
	} {
		value, err := os.ReadFile(filepath.Join("/proc/sys", name))
		if err != nil {
			return nil, err
		}
		all = append(all, name+" = "+string(value))
	}
	return all, nil
}

func observe(t *testing.T) state {
	t.Helper()
	s := state{}
	for kind, list := range observed {
		found, err := list()
		if err != nil {
			t.Fatalf("list every %s: %v", kind, err)
		}
		for _, line := range found {
			s[kind+": "+line] = true
		}
	}
	return s
}

// difference returns the items that are in only one of two states.
func (s state) difference(after state) error {
	var errs []error
	for _, line := range slices.Sorted(maps.Keys(s)) {
		if !after[line] {
			errs = append(errs, fmt.Errorf("the cluster removed %s", line))
		}
	}
	for _, line := range slices.Sorted(maps.Keys(after)) {
		if !s[line] {
			errs = append(errs, fmt.Errorf("the cluster left behind %s", line))
		}
	}
	return errors.Join(errs...)
}

// nodeID identifies the processes of a node.
type nodeID struct {
	namespace string // of processes: the node's own, not those of its pods
	runDir    string // of its cluster: its name is in that of every container's control group
}

// left returns the remaining processes and control groups of a node.
func (n nodeID) left() error {
	var errs []error
	if processes := n.processes(); len(processes) > 0 {
		errs = append(errs, fmt.Errorf("the node has the processes %q", processes))
	}
	if groups := controlGroups(n.runDir); len(groups) > 0 {
		errs = append(errs, fmt.Errorf("the node has the control groups %v", groups))
	}
	return errors.Join(errs...)
}

// identify keeps the node's PID namespace open until the test ends. Otherwise the kernel could reuse its number for another
// one, such as that of another test's pod.
func identify(t *testing.T, clusterDir string, nodeInit int) nodeID {
	t.Helper()
	path := fmt.Sprintf("/proc/%d/ns/pid", nodeInit)
	held, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = held.Close() }) // only opened
	namespace, err := os.Readlink(path)
	if err != nil {
		t.Fatal(err)
	}
	return nodeID{namespace: namespace, runDir: clusterDir}
}

// processes returns the commands that run in the node and its pods.
func (n nodeID) processes() (commands []string) {
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range all {
		namespace, _ := os.Readlink(filepath.Join(dir, "ns", "pid"))
		groups, _ := os.ReadFile(filepath.Join(dir, "cgroup"))
		if namespace == n.namespace || strings.Contains(string(groups), filepath.Base(n.runDir)) {
			command, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
			commands = append(commands, strings.ReplaceAll(string(command), "\x00", " "))
		}
	}
	return commands
}

func archiveOfBehave(t *testing.T) string {
	t.Helper()
	archive, err := behaveArchive(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return archive
}

// Each test of this file has its own clusters.

func TestStop_LeavesNothing(t *testing.T) {
	t.Parallel()
	w := &world.World{T: t, Ctx: t.Context()}
	archive := archiveOfBehave(t)
	before := observe(t)
	for name, end := range map[string]func(*cluster.Cluster) error{
		"without a crash":              func(*cluster.Cluster) error { return nil },
		"after containerd has crashed": func(c *cluster.Cluster) error { return crash(c, cluster.Containerd) },
		"after the kubelet has crashed": func(c *cluster.Cluster) error {
			return crash(c, cluster.Kubelet)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := startWithPod(t.Context(), archive)
			w.Must(err)
			node := identify(t, c.Dir(), c.PID("nodeinit"))
			w := &world.World{T: t, Ctx: t.Context()}
			for _, want := range []string{"containerd-shim", "kubelet", "nodeinit", "/pause", "/behave --listen=:8081"} {
				w.Eventually(want+" to run in the node", func() error { // The runtime reports it a little early.
					if running := strings.Join(node.processes(), "\n"); !strings.Contains(running, want) {
						return fmt.Errorf("the node runs only\n%s", running)
					}
					return nil
				})
			}
			if during := node.left(); during == nil || !strings.Contains(during.Error(), "control groups") {
				t.Errorf("the test does not find the control groups of the running node: %v", during)
			}
			if err := errors.Join(end(c), c.Stop()); err != nil {
				t.Error(err)
			}
			if err := errors.Join(node.left(), before.difference(observe(t))); err != nil {
				t.Error(err)
			}
		})
	}
}

// crash kills a component, and waits until the cluster notices.
func crash(c *cluster.Cluster, component cluster.Component) error {
	if err := syscall.Kill(c.PID(component), syscall.SIGKILL); err != nil {
		return err
	}
	select {
	case <-c.Done():
	case <-time.After(world.Timeout):
		return fmt.Errorf("%s was killed %s ago, and the cluster still runs", component, world.Timeout)
	}
	if err := c.Err(); err == nil || !strings.Contains(err.Error(), string(component)+" died") {
		return fmt.Errorf("the error of the cluster does not name %s: %w", component, err)
	}
	return nil
}

func TestKilledProcess_LeavesNothing(t *testing.T) {
	t.Parallel()
	archive := archiveOfBehave(t)
	for name, withInit := range map[string]bool{"it alone": false, "with the node's first process": true} {
		t.Run(name, func(t *testing.T) {
			w := &world.World{T: t, Ctx: t.Context()}
			before := observe(t)
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), helperEnv+"="+archive)
			cmd.Stderr = t.Output()
			out, err := cmd.StdoutPipe()
			w.Must(err)
			w.Must(cmd.Start())
			var report helperReport
			if err := json.NewDecoder(out).Decode(&report); err != nil {
				t.Fatalf("helper: %v (%v)", err, cmd.Wait())
			}
			node := identify(t, report.Dir, report.NodeInit)
			if len(node.processes()) == 0 {
				t.Fatal("no process runs in the node")
			}
			w.Must(cmd.Process.Kill())
			if withInit {
				w.Must(syscall.Kill(report.NodeInit, syscall.SIGKILL))
			}
			_ = cmd.Wait() // the error says only that the test killed it
			w.Eventually("the end of every process of the node", func() error {
				if left := node.processes(); len(left) > 0 {
					return fmt.Errorf("the node has the processes %q", left)
				}
				return nil
			})
			if withInit { // the next cluster removes the control groups
				next, err := cluster.Start(t.Context(), cluster.Options{Components: cluster.APIOnly()})
				w.Must(err)
				w.Must(next.Stop())
			}
			w.Eventually("the cleanup of the node", func() error {
				return errors.Join(node.left(), before.difference(observe(t)))
			})
		})
	}
}
