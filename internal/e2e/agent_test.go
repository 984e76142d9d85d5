package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/e2e/proxy"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
	"github.com/threeport/threeport-agent/internal/e2e/world"
)

func TestAgent_SIGTERM_FlushesPendingReports(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.Deploy("first", world.ConfigMap("first"))
	w.AwaitAgreement(world.Expected(first)...)
	w.proxy.SetScript(unavailable)
	d := w.Deploy("conf", world.ConfigMap("conf"), deployment("web", 2))
	w.awaitReplicas(d.Objects[1], 2)
	w.ExpectCondition(d, v1alpha1.ConditionDelivered, metav1.ConditionFalse, "")
	w.ExpectCondition(d, v1alpha1.ConditionHealthy, metav1.ConditionTrue, "")
	w.awaitReconcile(d)
	stopped := make(chan error)
	go func() { stopped <- w.agent.Stop(world.Timeout) }()
	_, err := w.agent.WaitFor(w.Ctx, "Stopping and waiting for leader election runnables")
	w.Must(err)
	w.proxy.SetScript(nil)
	if err := <-stopped; err != nil {
		t.Errorf("the agent did not send its pending reports before its end: %v", err)
	}
	w.AwaitAgreement(world.Expected(first, d)...)
}

// awaitReconcile waits until the agent has reconciled a ThreeportWorkload as it is now. Then it has recorded the transition that its status
// has. An agent that ends between the write of a status and the next reconcile leaves the transition to the next process.
func (w *agentWorld) awaitReconcile(d upstream.Deployed) {
	w.Helper()
	const value = "reconcile"
	w.patch(world.CustomResource(d), fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.AnnotationRetryRejected, value))
	w.Eventually("the agent to reconcile "+d.Name, func() error {
		workload, err := w.ThreeportWorkload(d)
		if err == nil && workload.Status.Delivery.Retried != value {
			err = fmt.Errorf("the status has the annotation %q, want %q", workload.Status.Delivery.Retried, value)
		}
		return err
	})
}

func TestAgent_Restart_UpdatesRows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.Deploy("conf", world.ConfigMap("conf"))
	event := w.create(fmt.Sprintf(`
apiVersion: v1
kind: Event
metadata: {name: probe}
involvedObject: {apiVersion: v1, kind: ConfigMap, name: conf, namespace: %s, uid: %s}
type: Warning
reason: Probed
message: once
count: 1
lastTimestamp: "2026-01-02T03:04:05Z"
`, w.Namespace, w.Get(d.Objects[0]).GetUID()))
	w.AwaitAgreement(world.Expected(d)...)
	w.Must(w.agent.Stop(world.Timeout))
	w.patch(event, `{"message":"twice, while the agent was down","count":2,"lastTimestamp":"2026-01-02T03:05:06Z"}`)
	w.patch(d.Objects[0], `{"data":{"key":"changed while the agent was down"}}`)
	w.startAgent()
	w.AwaitAgreement(world.Expected(d)...)
}

func TestAgent_Stdout_PrintsReports(t *testing.T) {
	t.Parallel()
	w := newWorldWithoutAgent(t)
	w.startAgent("--sink=stdout")
	d := w.Deploy("web", deployment("web", 1))
	for _, line := range []string{
		"Deployment created: web\n", "Pod created: web-", "ReplicaSet created: web-", "Event Normal ScalingReplicaSet of Deployment ",
		fmt.Sprintf("WorkloadInstance %d: Healthy\n", d.InstanceID),
	} {
		if _, err := w.agent.WaitFor(w.Ctx, strings.TrimSuffix(line, "\n")); err != nil {
			t.Error(err)
		}
	}
	w.Remove(d.Objects[0])
	_, err := w.agent.WaitFor(w.Ctx, "Deployment deleted: web")
	w.Must(err)
	if sent := w.proxy.Sent(proxy.Any); len(sent) > 0 {
		t.Errorf("%d requests were sent with --sink=stdout", len(sent))
	}
}

func TestAgent_ProbesAndMetrics(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.Deploy("web", deployment("web", 1))
	w.ExpectStatus(d, "Healthy")
	for _, path := range []string{"/healthz", "/readyz"} {
		if body, status, err := world.Fetch(w.Ctx, w.agent.ProbesURL+path); err != nil || status != http.StatusOK || body != "ok" {
			t.Errorf("GET %s answers %d %q (%v), want 200 ok", path, status, body, err)
		}
	}
	for _, name := range []string{
		`threeport_agent_watches{resource="deployments.apps"} 1`, "threeport_agent_reports_pending 0",
		`threeport_agent_reports_total{kind="status",result="accepted"}`,
	} {
		w.Eventually("metrics with "+name, func() error { // Events may be pending
			if !strings.Contains(w.metrics(), name) {
				return errors.New("the agent does not export it")
			}
			return nil
		})
	}
}

func TestAgent_InvalidFlags_ExplainTheFix(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reason, want string
		args         []string
	}{
		{reason: "no control plane", want: "--threeport-api-server is missing"},
		{reason: "an unknown sink", want: `--sink is "kafka": give api or stdout`, args: []string{"--sink=kafka"}},
		{
			reason: "a name that no namespace has",
			want:   `--watch-namespaces: "A_B"`,
			args:   []string{"--sink=stdout", "--watch-namespaces=A_B"},
		},
		{reason: "no concurrency", want: "give a number from 1 to 256", args: []string{"--sink=stdout", "--send-concurrency=0"}},
		{reason: "an argument", want: `unexpected argument "now"`, args: []string{"--sink=stdout", "now"}},
		{
			reason: "a server that is no host",
			want:   "--threeport-api-server",
			args:   []string{"--threeport-api-server=ftp://example"},
		},
	} {
		t.Run(c.reason, func(t *testing.T) {
			out, err := exec.CommandContext(t.Context(), shared.agent, c.args...).CombinedOutput()
			var exit *exec.ExitError
			if err == nil {
				t.Fatalf("the agent ended with exit code 0, want 2: %s", out)
			}
			if exit, _ = err.(*exec.ExitError); exit == nil || exit.ExitCode() != 2 { //nolint:errorlint // never wrapped here
				t.Errorf("the agent ended with %v, want exit code 2", err)
			}
			if !strings.Contains(string(out), c.want) {
				t.Errorf("the agent prints %q, want %q", out, c.want)
			}
		})
	}
}

func TestAgent_TwoReplicas_ElectLeader(t *testing.T) {
	t.Parallel()
	w := newWorldWithoutAgent(t)
	flags := []string{"--leader-elect", "--leader-election-namespace=" + w.Namespace}
	w.kubeconfig = w.Cluster.Kubeconfig()
	w.startAgent(flags...)
	leader := w.agent
	second := w.LaunchAgent(w.command, append([]string{
		"--kubeconfig=" + w.kubeconfig, "--threeport-api-server=" + w.server,
	}, flags...)...)
	d := w.Deploy("conf", world.ConfigMap("conf"))
	w.AwaitAgreement(world.Expected(d)...)
	if strings.Contains(second.Output(), "Starting workers") {
		t.Error("the second replica sends reports although the first one leads")
	}
	w.Must(leader.Stop(world.Timeout))
	w.patch(d.Objects[0], `{"data":{"key":"after the leader stopped"}}`)
	w.AwaitAgreement(world.Expected(d)...)
}
