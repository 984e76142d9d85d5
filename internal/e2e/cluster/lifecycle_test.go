package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// gone returns nil if none of the processes runs, none of the ports has a listener and dir does not exist.
func gone(pids map[Component]int, ports []int, dir string) error {
	for component, pid := range pids {
		if running(pid) {
			return fmt.Errorf("%s still runs as process %d", component, pid)
		}
	}
	for _, port := range ports {
		conn, err := net.Dial("tcp", address(port)) //nolint:noctx // a closed port on loopback answers at once
		if err == nil {
			_ = conn.Close()
			return fmt.Errorf("somebody still listens on %s", address(port))
		}
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("run directory %s is still there (%w)", dir, err)
	}
	return nil
}

// running reports whether a process is alive. One that waits for its parent to reap it is not.
func running(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return !errors.Is(err, os.ErrNotExist)
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(state, "Z")
}

func describe(c *Cluster) (pids map[Component]int, ports []int) {
	pids = map[Component]int{}
	for _, component := range c.Components() {
		pids[component] = c.PID(component)
	}
	return pids, []int{c.ports.etcd, c.ports.etcdPeer, c.ports.api}
}

func TestStop_LeavesNothing(t *testing.T) {
	c := startCluster(t, Options{})
	pids, ports := describe(c)
	if err := c.Stop(); err != nil {
		t.Fatalf("stop: %v", err)
	}
	if err := gone(pids, ports, c.Dir()); err != nil {
		t.Error(err)
	}
	select {
	case <-c.Done():
	default:
		t.Error("Done is still open after Stop")
	}
	if err := c.Err(); err != nil {
		t.Errorf("Stop is no error, got %v", err)
	}
	if err := c.Restart(t.Context(), APIServer); !errors.Is(err, errStopped) {
		t.Errorf("restart after Stop: got %v, want %v", err, errStopped)
	}
}

func TestKilledParent_LeavesNothing(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), helperEnv+"=1")
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var report helperReport
	if err := json.NewDecoder(out).Decode(&report); err != nil {
		t.Fatalf("helper: %v (%v)", err, cmd.Wait())
	}
	for component, pid := range report.PIDs {
		if !running(pid) {
			t.Errorf("%s does not run before the kill", component)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed, that is no news
	eventually(t, waitLimit, func(context.Context) error {
		return gone(report.PIDs, report.Ports, filepath.Join(report.Dir, "of-no-interest-yet"))
	})

	// The directory is left over; the next start removes it.
	next, err := newRunDir(t.Context(), filepath.Dir(report.Dir))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(gone(nil, nil, report.Dir), next.remove()); err != nil {
		t.Error(err)
	}
}

func TestStart_ComponentDies_ReturnsReason(t *testing.T) {
	_, err := Start(t.Context(), Options{Components: APIOnly(), APIServerArgs: []string{"--no-such-flag"}})
	if err == nil {
		t.Fatal("an unknown flag was accepted")
	}
	for _, want := range []string{"kube-apiserver died", "unknown flag: --no-such-flag"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q: %v", want, err)
		}
	}
}

func TestCluster_ComponentDies_ClosesDone(t *testing.T) {
	c := startCluster(t, Options{Components: APIOnly()})
	if err := syscall.Kill(c.PID(Etcd), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case <-c.Done():
	case <-time.After(waitLimit):
		t.Fatal("Done is still open")
	}
	death, ok := errors.AsType[*deathError](c.Err())
	if !ok || death.component != Etcd {
		t.Errorf("got %v, want the death of etcd", c.Err())
	}
}

func TestRestart_KeepsPortAndData(t *testing.T) {
	c := startCluster(t, Options{Components: APIOnly()})
	client := kubernetes.NewForConfigOrDie(c.Config())
	conf := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "conf"}, Data: map[string]string{"key": "value"}}
	created, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), conf, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, crash := range []bool{false, true} {
		before := c.PID(APIServer)
		if crash {
			if err := c.Kill(APIServer); err != nil {
				t.Fatal(err)
			}
			if pid := c.PID(APIServer); pid != 0 {
				t.Errorf("killed, but its PID is %d", pid)
			}
		}
		if err := c.Restart(t.Context(), APIServer); err != nil {
			t.Fatalf("restart (crash: %v): %v", crash, err)
		}
		if after := c.PID(APIServer); after == before || after == 0 {
			t.Errorf("PID %d after the restart, %d before", after, before)
		}
		got, err := client.CoreV1().ConfigMaps("default").Get(t.Context(), "conf", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got.UID != created.UID || got.Data["key"] != "value" {
			t.Errorf("restart (crash: %v) changed the object: %v", crash, got)
		}
	}
	if err := c.Err(); err != nil {
		t.Errorf("a wanted death counts as a failure: %v", err)
	}
	if err := c.Kill(Kwok); err == nil {
		t.Error("killed a component that does not run")
	}
}

func TestUser_HasNoPermissions(t *testing.T) {
	c := startCluster(t, Options{Components: APIOnly()})
	path, config, err := c.User("system:serviceaccount:agents/odd name", "readers")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kubernetes.NewForConfigOrDie(config).CoreV1().Pods("").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("list pods without a role: got %v, want Forbidden", err)
	}
	fromFile, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	version, err := kubernetes.NewForConfigOrDie(fromFile).Discovery().ServerVersion()
	if err != nil {
		t.Fatalf("the kubeconfig does not work: %v", err)
	}
	if want, err := KubernetesVersion(t.Context()); err != nil || want != "" && version.GitVersion != want {
		t.Errorf("the server reports version %s, want %s (%v)", version.GitVersion, want, err)
	}
	_, admin, err := c.User("boss", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kubernetes.NewForConfigOrDie(admin).CoreV1().Pods("").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("list pods as an administrator: %v", err)
	}
}
