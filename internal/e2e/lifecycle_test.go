package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/e2e/oracle"
	"github.com/threeport/threeport-agent/internal/e2e/proxy"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
	"github.com/threeport/threeport-agent/internal/e2e/world"
	"github.com/threeport/threeport-agent/internal/threeport"
)

func TestWorkload_UnchangedSpec_SendsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.Deploy("web", world.ConfigMap("conf"), deployment("web", 2))
	w.ExpectStatus(d, "Healthy")
	w.awaitStatusRow(d, "Healthy")
	w.Eventually("the last Event of each pod to have a row", func() error {
		started := 0
		for _, row := range w.clusterRows() {
			if *row.Reason == "Started" {
				started++
			}
		}
		if started != 2 {
			return fmt.Errorf("%d pods have a row of Started, want 2", started)
		}
		return nil
	})
	w.AwaitAgreement(world.Expected(d)...)
	w.ExpectCondition(d, v1alpha1.ConditionDelivered, metav1.ConditionTrue, "")
	w.awaitSilence()
	watches, sent := w.watches(), len(w.proxy.Sent(proxy.Any))
	for i := range 50 {
		w.patch(world.CustomResource(d), fmt.Sprintf(`{"metadata":{"labels":{"touched":"%d"}}}`, i))
		w.patch(world.CustomResource(d), fmt.Sprintf(`{"spec":{"workloadInstanceId":%d}}`, d.InstanceID))
	}
	// The agent handles this change after all earlier ones, in each of its queues.
	more := w.Deploy("more", world.ConfigMap("more"))
	w.ExpectStatus(more, "Healthy")
	w.AwaitAgreement(world.Expected(d, more)...)
	for _, r := range w.proxy.Sent(proxy.Any)[sent:] {
		if r.IsHeartbeat() {
			continue
		}
		ofMore := strings.HasPrefix(r.Path, world.RowPath(more, 0)) || strings.Contains(r.Path+string(r.Body), strconv.FormatInt(more.InstanceID, 10))
		if !ofMore || strings.Contains(string(r.Body), strconv.FormatInt(d.InstanceID, 10)) {
			t.Errorf("after an unchanged spec was written, the agent sent %s %s %.300s", r.Method, r.Path, r.Body)
		}
	}
	if now := w.watches(); now != watches {
		t.Errorf("the agent had %d watches before the writes and has %d after them", watches, now)
	}
}

// awaitSilence waits until the agent has sent nothing for three times the delay of a status or a tree.
func (w *agentWorld) awaitSilence() {
	w.Helper()
	const held = 5 * time.Second // StatusInterval of the reporter's default configuration
	sent, since := -1, time.Now()
	w.Eventually("the agent to send nothing more", func() error {
		reports := slices.DeleteFunc(slices.Clone(w.proxy.Sent(proxy.Any)), proxy.Request.IsHeartbeat)
		if len(reports) != sent {
			sent, since = len(reports), time.Now()
		}
		if silent := time.Since(since); silent < 3*held {
			return fmt.Errorf("the agent sent its last report %s ago, want %s", silent, 3*held)
		}
		return nil
	})
}

func TestWorkload_ChangedSpec_ChangesReports(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.Deploy("list", world.ConfigMap("kept"), world.ConfigMap("dropped"))
	w.AwaitAgreement(world.Expected(d)...)
	added := w.Object(world.ConfigMap("added"))
	_, err := w.Upstream.Create(w.Ctx, added)
	w.Must(err)
	extra, err := w.Upstream.RegisterResource(w.Ctx, d, added)
	w.Must(err)

	changed := d
	changed.Resources = []v1alpha1.WorkloadResourceInstance{d.Resources[0], extra}
	w.Must(w.Upstream.Declare(w.Ctx, changed))
	w.AwaitAgreement(world.Expected(changed)...)
	before := len(w.proxy.Requested(world.RowPath(d, 1)))
	w.patch(d.Objects[1], `{"data":{"key":"after it was dropped"}}`)
	w.patch(added, `{"data":{"key":"after it was added"}}`)
	w.AwaitAgreement(world.Expected(changed)...)
	if now := len(w.proxy.Requested(world.RowPath(d, 1))); now != before {
		t.Errorf("the removed resource was reported %d more times", now-before)
	}
}

func TestWorkload_Deleted_ReportsAndReleases(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.Deploy("web", world.ConfigMap("conf"), deployment("web", 2))
	w.ExpectStatus(d, "Healthy")
	w.AwaitAgreement(world.Expected(d)...)
	if finalizers := w.Get(world.CustomResource(d)).GetFinalizers(); !slices.Contains(finalizers, v1alpha1.Finalizer) {
		t.Errorf("the finalizers are %v, want %s", finalizers, v1alpha1.Finalizer)
	}
	w.Must(w.Upstream.Delete(w.Ctx, d))
	w.expectGone(d)
	w.ExpectOperation(d, 0, threeport.OperationDeleted)
	w.ExpectOperation(d, 1, threeport.OperationDeleted)
	// Without workloads the agent watches only ThreeportWorkloads.
	w.Eventually("the agent to stop all informers", func() error {
		if n := w.watches(); n != 0 {
			return fmt.Errorf("the agent has %d informers", n)
		}
		return nil
	})
}

func TestWorkload_Released_SendsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d, other := w.Deploy("gone", world.ConfigMap("conf")), w.Deploy("other", world.ConfigMap("other"))
	w.AwaitAgreement(world.Expected(d, other)...)
	w.Remove(world.CustomResource(d))
	w.expectGone(d)
	_, err := w.agent.WaitFor(w.Ctx, "Released workload") // The log line follows just after.
	w.Must(err)
	sent := len(w.proxy.Requested(world.RowPath(d, 0)))
	w.patch(d.Objects[0], `{"data":{"key":"changed"}}`)
	w.patch(other.Objects[0], `{"data":{"key":"changed"}}`)
	w.AwaitAgreement(oracle.Expected{Deployed: other}, oracle.Expected{Deployed: d, Released: true})
	if now := len(w.proxy.Requested(world.RowPath(d, 0))); now != sent {
		t.Errorf("an object of a released workload was reported %d times", now-sent)
	}
}

func TestDelivery_Outage_LosesAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before := w.Deploy("before", deployment("before", 2))
	w.ExpectStatus(before, "Healthy")
	w.proxy.SetScript(unavailable)
	during := w.Deploy("during", deployment("during", 2), failingDeployment("broken", 1, "image-pull"))
	w.Remove(before.Objects[0])
	w.ExpectCondition(during, v1alpha1.ConditionDelivered, metav1.ConditionFalse, "")
	w.proxy.SetScript(nil)
	w.ExpectStatus(during, "Down")
	w.AwaitAgreement(world.Expected(before, during)...)
	w.ExpectCondition(during, v1alpha1.ConditionDelivered, metav1.ConditionTrue, "")
	for _, words := range []string{"Delivery fails", "Delivery recovered"} {
		if n := strings.Count(w.agent.Output(), words); n != 1 {
			t.Errorf("the log contains %q %d times for one outage, want once", words, n)
		}
	}
}

func TestDelivery_RejectedReport_ShownInStatus(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d, err := w.Upstream.Register(w.Ctx, w.Workload("refused", v1alpha1.WorkloadTypeInstance, world.ConfigMap("good"), world.ConfigMap("bad")))
	w.Must(err)
	w.proxy.SetScript(func(r proxy.Request) proxy.Fault {
		if r.WritesTo(world.RowPath(d, 1)) {
			return proxy.Fault{Status: http.StatusBadRequest}
		}
		return proxy.Fault{}
	})
	for _, obj := range d.Objects {
		_, err := w.Upstream.Create(w.Ctx, obj)
		w.Must(err)
	}
	w.Must(w.Upstream.Declare(w.Ctx, d))
	w.ExpectOperation(d, 0, threeport.OperationAdded)
	w.Eventually("the rejected report in the workload's status", func() error {
		cr, err := w.ThreeportWorkload(d)
		if err != nil {
			return err
		}
		del := cr.Status.Delivery
		if del.Rejected != 1 || len(del.Rejections) != 1 || !strings.Contains(del.Rejections[0].Reason, "injected by the test") {
			return fmt.Errorf("the delivery in the status is %+v", del)
		}
		return nil
	})
	if n := w.rejections(world.RowPath(d, 1)); n != 1 {
		t.Errorf("the rejected report was sent %d times by itself, want 1", n)
	}
	if !strings.Contains(w.metrics(), `threeport_agent_reports_total{kind="operation",result="rejected"} 1`) {
		t.Error("the metrics do not count the rejected report")
	}
	// Each change of the annotation causes another attempt.
	retry := func(value string) {
		t.Helper()
		w.patch(world.CustomResource(d), fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.AnnotationRetryRejected, value))
	}
	retry("once")
	w.Eventually("the agent to send the rejected report again", func() error {
		if n := w.rejections(world.RowPath(d, 1)); n != 2 {
			return fmt.Errorf("the agent sent it %d times, want 2", n)
		}
		return nil
	})
	w.proxy.SetScript(nil)
	retry("twice")
	w.AwaitAgreement(world.Expected(d)...)
	w.ExpectCondition(d, v1alpha1.ConditionDelivered, metav1.ConditionTrue, "")
}

func TestDelivery_RejectedReportObjectChanges_SendsAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.Deploy("refused", world.ConfigMap("conf"))
	w.AwaitAgreement(world.Expected(d)...)
	w.proxy.SetScript(func(r proxy.Request) proxy.Fault {
		if r.WritesTo(world.RowPath(d, 0)) {
			return proxy.Fault{Status: http.StatusBadRequest}
		}
		return proxy.Fault{}
	})
	w.patch(d.Objects[0], `{"data":{"key":"bad"}}`)
	w.Eventually("the control plane to reject the report", func() error {
		cr, err := w.ThreeportWorkload(d)
		if err == nil && cr.Status.Delivery.Rejected != 1 {
			err = fmt.Errorf("the delivery in the status is %+v", cr.Status.Delivery)
		}
		return err
	})
	w.proxy.SetScript(nil)
	w.patch(d.Objects[0], `{"data":{"key":"better"}}`)
	w.AwaitAgreement(world.Expected(d)...)
}

func TestDelivery_RetryAfter_Waits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var refused []time.Time
	w.proxy.SetScript(func(r proxy.Request) proxy.Fault {
		if len(r.Writes) == 0 || len(refused) > 0 {
			return proxy.Fault{}
		}
		refused = append(refused, time.Now())
		return proxy.Fault{Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"2"}}}
	})
	d := w.Deploy("conf", world.ConfigMap("conf"))
	w.AwaitAgreement(world.Expected(d)...)
	if waited := time.Since(refused[0]); waited < 2*time.Second {
		t.Errorf("the report was accepted %s after a Retry-After of 2 s", waited)
	}
}

func TestAgent_SIGTERM_FlushesPendingReports(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.Deploy("first", world.ConfigMap("first"))
	w.AwaitAgreement(world.Expected(first)...)
	w.proxy.SetScript(unavailable)
	d := w.Deploy("conf", world.ConfigMap("conf"), deployment("web", 2))
	w.awaitReplicas(d.Objects[1], 2)
	w.ExpectCondition(d, v1alpha1.ConditionDelivered, metav1.ConditionFalse, "")
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
	w.patch(event, `{"message":"twice, while nobody watched","count":2,"lastTimestamp":"2026-01-02T03:05:06Z"}`)
	w.patch(d.Objects[0], `{"data":{"key":"changed while nobody watched"}}`)
	w.startAgent()
	w.AwaitAgreement(world.Expected(d)...)
}

func TestEvents_ObjectMoves_RowKeepsInstance(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.Deploy("web", deployment("web", 1))
	w.ExpectStatus(d, "Healthy")
	w.AwaitAgreement(world.Expected(d)...)
	before := w.allEvents()
	w.Remove(world.CustomResource(d))
	w.expectGone(d)
	// The same objects in another instance.
	again, err := w.Upstream.Register(w.Ctx, upstream.Workload{Name: d.Name, Type: v1alpha1.WorkloadTypeHelmInstance, Objects: d.Objects})
	w.Must(err)
	w.Must(w.Upstream.Declare(w.Ctx, again))
	w.ExpectHelmStatus(again, "Healthy")
	w.patch(d.Objects[0], `{"spec":{"replicas":2}}`)
	w.Eventually("new Events under the new instance", func() error {
		rows := w.allEvents()
		fresh := 0
		for _, row := range rows {
			if row.HelmWorkloadInstanceID != nil && *row.HelmWorkloadInstanceID == again.InstanceID {
				fresh++
			}
			if row.HelmWorkloadInstanceID != nil && row.WorkloadInstanceID != nil {
				return fmt.Errorf("the row of Event %s has two instances", *row.Reason)
			}
		}
		if fresh < 3 || len(rows)-fresh != len(before) {
			return fmt.Errorf("%d of %d rows are in the new instance, want at least 3 and all but %d", fresh, len(rows), len(before))
		}
		return nil
	})
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

// expectGone expects that a deleted ThreeportWorkload is released before the agent's grace period of 30 s ends. After the
// grace period the agent would release it even without its last reports.
func (w *agentWorld) expectGone(d upstream.Deployed) {
	w.Helper()
	const within = 20 * time.Second
	resource, err := w.Upstream.Resource(world.CustomResource(d))
	w.Must(err)
	w.EventuallyWithin(within, "ThreeportWorkload "+d.Name+" to disappear", func() error {
		if _, err := resource.Get(w.Ctx, d.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the API server still has it: %w", err)
		}
		return nil
	})
}

// watches returns the number of the agent's informers from its metrics.
func (w *agentWorld) watches() int {
	w.Helper()
	return w.sum("threeport_agent_watches")
}
