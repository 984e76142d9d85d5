package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/threeport/threeport-agent/internal/e2e/cluster"
	"github.com/threeport/threeport-agent/internal/e2e/operator"
	"github.com/threeport/threeport-agent/internal/e2e/world"
)

// web is a Deployment with an HTTP server, and its ConfigMap.
const web = `
apiVersion: v1
kind: ConfigMap
metadata: {name: conf}
data: {key: value}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: web
        image: localhost/behave:1
        imagePullPolicy: Never
        args: [--listen=:8080]
        readinessProbe: {httpGet: {path: /readyz, port: 8080}, periodSeconds: 1}
`

// The tests of this file change the shared operator, so they run one by one, before the parallel tests.

func TestOperator_ReportsWorkloads(t *testing.T) {
	w := newWorld(t)
	d := w.deploy("web", web)
	w.ExpectStatus(d, "Healthy")
	w.awaitAgreement(d)
	noMissingPermission(w)
}

// TestOperator_IsConfined inspects the agent's process from the machine.
func TestOperator_IsConfined(t *testing.T) {
	w := newWorld(t)
	pods := w.agents(1)
	pid := w.agentPID(pods[0])
	status := w.procStatus(pid)
	for field, want := range map[string]string{
		"Uid": "65532 65532 65532 65532", "Gid": "65532 65532 65532 65532",
		"CapEff": "0000000000000000", "CapBnd": "0000000000000000",
		"NoNewPrivs": "1", "Seccomp": "2", // 2: filtered
	} {
		if got := strings.Join(strings.Fields(status[field]), " "); got != want {
			t.Errorf("the agent's %s is %q, want %q", field, got, want)
		}
	}
	mounts, err := os.ReadFile(fmt.Sprintf("/proc/%d/mounts", pid))
	w.Must(err)
	mode := map[string]string{}
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 3 {
			mode[fields[1]], _, _ = strings.Cut(fields[3], ",")
		}
	}
	for path, want := range map[string]string{
		"/": "ro", "/var/lib/threeport-agent": "rw", "/etc/threeport/cert": "ro", "/etc/threeport/ca": "ro",
		"/var/run/secrets/kubernetes.io/serviceaccount": "ro",
	} {
		if got := mode[path]; got != want {
			t.Errorf("%s is mounted %q, want %q", path, got, want)
		}
	}
	inside := fmt.Sprintf("/proc/%d/root", pid)
	if _, err := os.Stat(filepath.Join(inside, "var/lib/threeport-agent/lock")); err != nil {
		t.Errorf("the agent does not hold its state directory: %v", err)
	}
	if limit := pods[0].Spec.Containers[0].Resources.Limits.Memory(); limit.IsZero() {
		t.Error("the agent has no memory limit")
	}
}

func TestOperator_RolloutRestart_LosesNothing(t *testing.T) {
	w := newWorld(t)
	d := w.deploy("web", web)
	w.ExpectStatus(d, "Healthy")
	before := w.agents(1)[0].Name
	stop := w.churn()
	w.kubectl("rollout", "restart", "deployment/"+operator.Name, "-n", operator.Namespace)
	w.Must(shared.operator.AwaitRollout(w.Ctx))
	w.Eventually("the end of the old pod", func() error {
		pods, err := shared.operator.Pods(w.Ctx)
		if err == nil && (len(pods) != 1 || pods[0].Name == before) {
			err = fmt.Errorf("the operator has %d pods", len(pods))
		}
		return err
	})
	stop()
	w.ExpectStatus(d, "Healthy")
	w.awaitAgreement(d)
	noMissingPermission(w)
}

func TestOperator_PodDeleted_LosesNothing(t *testing.T) {
	for name, flags := range map[string][]string{"gracefully": nil, "by force": {"--grace-period=0", "--force"}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			d := w.deploy("web", web)
			w.ExpectStatus(d, "Healthy")
			stop := w.churn()
			pod := w.agents(1)[0].Name
			w.kubectl(append([]string{"delete", "pod", pod, "-n", operator.Namespace}, flags...)...)
			w.Eventually("another pod to be ready", func() error { return w.agentReadyBut(pod) })
			stop()
			w.ExpectStatus(d, "Healthy")
			w.awaitAgreement(d)
			noMissingPermission(w)
		})
	}
}

func TestOperator_LeaderDeleted_OtherReplicaTakesOver(t *testing.T) {
	for name, end := range map[string]func(*operatorWorld, corev1.Pod){
		// The kubelet sends SIGTERM anyway, and the leader releases its lease.
		"when the pod is deleted by force": func(w *operatorWorld, leader corev1.Pod) {
			w.kubectl("delete", "pod", leader.Name, "-n", operator.Namespace, "--grace-period=0", "--force")
		},
		// The lease must expire.
		"when the agent is killed": func(w *operatorWorld, leader corev1.Pod) {
			w.Must(syscall.Kill(w.agentPID(leader), syscall.SIGKILL))
		},
	} {
		t.Run(name, func(t *testing.T) { otherReplicaTakesOver(t, end) })
	}
}

func otherReplicaTakesOver(t *testing.T, end func(*operatorWorld, corev1.Pod)) {
	t.Helper()
	w := newWorld(t)
	d := w.deploy("web", web)
	w.kubectl("scale", "deployment/"+operator.Name, "-n", operator.Namespace, "--replicas=2")
	w.Cleanup(func() {
		_, err := shared.operator.Kubectl(context.WithoutCancel(w.Ctx), "scale", "deployment/"+operator.Name, "-n", operator.Namespace, "--replicas=1")
		w.Must(errors.Join(err, shared.operator.AwaitRollout(context.WithoutCancel(w.Ctx))))
		w.agents(1)
	})
	w.Must(shared.operator.AwaitRollout(w.Ctx))
	w.agents(2)
	w.ExpectStatus(d, "Healthy")
	leader, pod := w.leadingPod(w.agents(2))
	stop := w.churn()
	end(w, pod)
	w.Eventually("another process to become the leader", func() error {
		if now := w.leader(); now == leader || now == "" {
			return fmt.Errorf("the leader is %q", now)
		}
		return nil
	})
	stop()
	w.ExpectStatus(d, "Healthy")
	w.awaitAgreement(d)
	noMissingPermission(w)
}

// TestOperator_PermissionMissing_IsLogged proves that noMissingPermission can fail.
func TestOperator_PermissionMissing_IsLogged(t *testing.T) {
	w := newWorld(t)
	binding, err := shared.client.RbacV1().ClusterRoleBindings().Get(w.Ctx, operator.Name, metav1.GetOptions{})
	w.Must(err)
	w.Must(shared.client.RbacV1().ClusterRoleBindings().Delete(w.Ctx, operator.Name, metav1.DeleteOptions{}))
	restored := false
	restore := func() {
		if restored {
			return
		}
		restored = true
		binding.ResourceVersion, binding.UID = "", ""
		ctx := context.WithoutCancel(w.Ctx)
		_, err := shared.client.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{})
		w.Must(err)
		// The other tests must not find this log.
		w.kubectl("rollout", "restart", "deployment/"+operator.Name, "-n", operator.Namespace)
		w.Must(shared.operator.AwaitRollout(ctx))
		w.Eventually("exactly one agent", func() error { return w.agentCount(1) })
	}
	t.Cleanup(restore)
	pod := w.agents(1)[0].Name
	w.kubectl("delete", "pod", pod, "-n", operator.Namespace)
	w.Eventually("the missing permission to be in the log", func() error {
		lines, err := missingPermissions(w.Ctx)
		if err == nil && len(lines) == 0 {
			err = errors.New("the log does not mention a missing permission")
		}
		return err
	})
	restore()
	w.Eventually("a log without missing permissions", func() error {
		lines, err := missingPermissions(w.Ctx)
		if len(lines) > 0 {
			err = fmt.Errorf("the log has %d lines about missing permissions, such as %s", len(lines), lines[0])
		}
		return err
	})
}

// missingPermission matches the messages of the API server and client-go.
var missingPermission = regexp.MustCompile(`(?i)forbidden|unauthorized|permission|cannot (get|list|watch|create|patch|update|delete) resource`)

func missingPermissions(ctx context.Context) ([]string, error) {
	logs, err := shared.operator.Logs(ctx)
	if err != nil {
		return nil, err
	}
	var found []string
	for line := range strings.Lines(logs) {
		if missingPermission.MatchString(line) {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found, nil
}

// noMissingPermission fails the test if the log of an agent reports a missing permission.
func noMissingPermission(w *operatorWorld) {
	w.Helper()
	var lines []string
	w.Eventually("the agents' logs to be readable", func() (err error) { // The log of a starting container is not readable.
		lines, err = missingPermissions(w.Ctx)
		return err
	})
	for _, line := range lines {
		w.Errorf("the agent lacks a permission: %s", line)
	}
}

// agents waits until exactly n agents exist and are ready, and returns their pods.
func (w *operatorWorld) agents(n int) (pods []corev1.Pod) {
	w.Helper()
	w.Eventually(fmt.Sprintf("%d agents to be ready", n), func() error {
		if err := w.agentCount(n); err != nil {
			return err
		}
		var err error
		pods, err = shared.operator.Pods(context.WithoutCancel(w.Ctx))
		return err
	})
	return pods
}

func (w *operatorWorld) agentCount(n int) error {
	pods, err := shared.operator.Pods(context.WithoutCancel(w.Ctx))
	if err != nil {
		return err
	}
	ready := 0
	for i := range pods {
		if podReady(&pods[i]) {
			ready++
		}
	}
	if ready != n || len(pods) != n {
		return fmt.Errorf("%d of %d agents are ready", ready, len(pods))
	}
	return nil
}

// agentReadyBut returns nil if exactly one agent exists, ready and in another pod.
func (w *operatorWorld) agentReadyBut(gone string) error {
	pods, err := shared.operator.Pods(w.Ctx)
	if err != nil {
		return err
	}
	for i := range pods {
		if pods[i].Name != gone && podReady(&pods[i]) {
			return nil
		}
	}
	return fmt.Errorf("the operator has %d pods", len(pods))
}

func podReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// leader returns the holder of the lease, as POD_PROCESS; empty for none.
func (w *operatorWorld) leader() string {
	w.Helper()
	lease, err := shared.client.CoordinationV1().Leases(operator.Namespace).Get(w.Ctx, "threeport-agent.control-plane.threeport.io", metav1.GetOptions{})
	w.Must(err)
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// leadingPod waits until the leader is in one of the pods. The lease may still name an ended process.
func (w *operatorWorld) leadingPod(pods []corev1.Pod) (leader string, in corev1.Pod) {
	w.Helper()
	w.Eventually("one of these agents to become the leader", func() error {
		leader = w.leader()
		name, _, _ := strings.Cut(leader, "_")
		for _, pod := range pods {
			if pod.Name == name {
				in = pod
				return nil
			}
		}
		return fmt.Errorf("the leader is %q", leader)
	})
	return leader, in
}

// churn restarts the test's Deployment repeatedly, which creates Events all the time. The returned function ends it, and waits
// for the last rollout.
func (w *operatorWorld) churn() (stop func()) {
	w.Helper()
	done, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			_, err := shared.operator.Kubectl(w.Ctx, "rollout", "restart", "deployment/web", "-n", w.Namespace)
			if err == nil {
				_, err = shared.operator.Kubectl(w.Ctx, "rollout", "status", "deployment/web", "-n", w.Namespace, "--timeout="+world.Timeout.String())
			}
			if err != nil {
				ended <- err
				return
			}
			select {
			case <-done:
				ended <- nil
				return
			default:
			}
		}
	}()
	return func() {
		w.Helper()
		close(done)
		w.Must(<-ended)
	}
}

// agentPID returns the PID of a pod's agent.
func (w *operatorWorld) agentPID(pod corev1.Pod) int {
	w.Helper()
	pid, err := cluster.PodProcess(pod.UID, "/agent")
	w.Must(err)
	return pid
}

// procStatus returns the fields of /proc/PID/status.
func (w *operatorWorld) procStatus(pid int) map[string]string {
	w.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	w.Must(err)
	fields := map[string]string{}
	for line := range strings.Lines(string(raw)) {
		name, value, _ := strings.Cut(line, ":")
		fields[name] = strings.TrimSpace(value)
	}
	return fields
}
