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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/e2e/oracle"
	"github.com/threeport/threeport-agent/internal/e2e/process"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
	"github.com/threeport/threeport-agent/internal/threeport"
)

func TestWorkload_UnchangedSpec_SendsNothing(t *testing.T) {
	w := newWorld(t)
	d := w.deploy("web", configMap("conf"), deployment("web", 2))
	w.expectStatus(d, "Healthy")
	w.awaitStatusRow(d, "Healthy")
	w.eventually(waitTimeout, "the last Event of each pod to have a row", func() error {
		started := 0
		for _, row := range w.clusterRows() {
			if *row.Reason == "Started" {
				started++
			}
		}
		if started != 2 {
			return fmt.Errorf("%d pods have Started", started)
		}
		return nil
	})
	w.awaitAgreement(tracked(d)...)
	w.expectCondition(d.Name, v1alpha1.ConditionDelivered, metav1.ConditionTrue)
	w.awaitSilence()
	watches, sent := w.watches(), len(w.proxy.sent())
	for i := range 50 {
		w.patch(w.cr(d), fmt.Sprintf(`{"metadata":{"labels":{"touched":"%d"}}}`, i))
		w.patch(w.cr(d), fmt.Sprintf(`{"spec":{"workloadInstanceId":%d}}`, d.InstanceID))
	}
	// The agent handles this change after all earlier ones, in each of its queues.
	more := w.deploy("more", configMap("more"))
	w.expectStatus(more, "Healthy")
	w.awaitAgreement(tracked(d, more)...)
	for _, r := range w.proxy.sent()[sent:] {
		if r.isHeartbeat() {
			continue
		}
		ofMore := strings.HasPrefix(r.path, rowPath(more, 0)) || strings.Contains(r.path+string(r.body), strconv.FormatInt(more.InstanceID, 10))
		if !ofMore || strings.Contains(string(r.body), strconv.FormatInt(d.InstanceID, 10)) {
			t.Errorf("after an unchanged spec was written, the agent sent %s %s %.300s", r.method, r.path, r.body)
		}
	}
	if now := w.watches(); now != watches {
		t.Errorf("the agent had %d watches before the writes and has %d after them", watches, now)
	}
}

// awaitSilence waits until the agent has sent nothing for three times the delay of a status or a tree.
func (w *world) awaitSilence() {
	w.Helper()
	const held = 5 * time.Second // StatusInterval of the reporter's default configuration
	told, since := -1, time.Now()
	w.eventually(waitTimeout, "the agent to send nothing more", func() error {
		reports := slices.DeleteFunc(slices.Clone(w.proxy.sent()), request.isHeartbeat)
		if len(reports) != told {
			told, since = len(reports), time.Now()
		}
		if silent := time.Since(since); silent < 3*held {
			return fmt.Errorf("it has been silent for %s only", silent)
		}
		return nil
	})
}

func TestWorkload_ChangedSpec_ChangesReports(t *testing.T) {
	w := newWorld(t)
	d := w.deploy("list", configMap("kept"), configMap("dropped"))
	w.awaitAgreement(tracked(d)...)
	added := w.place(object(configMap("added")))
	_, err := w.upstream.Create(w.ctx, added)
	w.must(err)
	extra, err := w.upstream.RegisterResource(w.ctx, d, added)
	w.must(err)

	changed := d
	changed.Resources = []v1alpha1.WorkloadResourceInstance{d.Resources[0], extra}
	w.must(w.upstream.Declare(w.ctx, changed))
	w.awaitAgreement(tracked(changed)...)
	before := len(w.proxy.writes(rowPath(d, 1)))
	w.patch(d.Objects[1], `{"data":{"key":"after it was dropped"}}`)
	w.patch(added, `{"data":{"key":"after it was added"}}`)
	w.awaitAgreement(tracked(changed)...)
	if now := len(w.proxy.writes(rowPath(d, 1))); now != before {
		t.Errorf("the removed resource was reported %d more times", now-before)
	}
}

func TestWorkload_Deleted_ReportsAndReleases(t *testing.T) {
	w := newWorld(t)
	d := w.deploy("web", configMap("conf"), deployment("web", 2))
	w.expectStatus(d, "Healthy")
	w.awaitAgreement(tracked(d)...)
	if finalizers := w.getObject(w.cr(d)).GetFinalizers(); !slices.Contains(finalizers, v1alpha1.Finalizer) {
		t.Errorf("the finalizers are %v, expected %s", finalizers, v1alpha1.Finalizer)
	}
	w.must(w.upstream.Delete(w.ctx, d))
	w.expectGone(d)
	w.expectOperation(d, 0, threeport.OperationDeleted)
	w.expectOperation(d, 1, threeport.OperationDeleted)
	// Without workloads the agent watches only ThreeportWorkloads.
	w.eventually(waitTimeout, "no informers", func() error {
		if n := w.watches(); n != 0 {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	})
}

func TestWorkload_Released_SendsNothing(t *testing.T) {
	w := newWorld(t)
	d, other := w.deploy("gone", configMap("conf")), w.deploy("other", configMap("other"))
	w.awaitAgreement(tracked(d, other)...)
	w.must(w.upstream.DeleteObject(w.ctx, w.cr(d)))
	w.expectGone(d)
	_, err := w.agent.WaitFor(w.ctx, "Released workload") // The log line follows just after.
	w.must(err)
	sent := len(w.proxy.writes(rowPath(d, 0)))
	w.patch(d.Objects[0], `{"data":{"key":"changed"}}`)
	w.patch(other.Objects[0], `{"data":{"key":"changed"}}`)
	w.awaitAgreement(oracle.Expected{Deployed: other}, oracle.Expected{Deployed: d, Released: true})
	if now := len(w.proxy.writes(rowPath(d, 0))); now != sent {
		t.Errorf("an object of a released workload was reported %d times", now-sent)
	}
}

func TestDelivery_Outage_LosesAndRepeatsNothing(t *testing.T) {
	w := newWorld(t)
	before := w.deploy("before", deployment("before", 2))
	w.expectStatus(before, "Healthy")
	w.proxy.failWith(func(request) (int, http.Header) { return http.StatusServiceUnavailable, nil })
	during := w.deploy("during", deployment("during", 2), failingDeployment("broken", 1, "image-pull"))
	w.must(w.upstream.DeleteObject(w.ctx, before.Objects[0]))
	w.expectCondition(during.Name, v1alpha1.ConditionDelivered, metav1.ConditionFalse)
	w.proxy.failWith(nil)
	w.expectStatus(during, "Down")
	w.awaitAgreement(tracked(before, during)...)
	w.expectCondition(during.Name, v1alpha1.ConditionDelivered, metav1.ConditionTrue)
	for _, words := range []string{"Delivery fails", "Delivery recovered"} {
		if n := strings.Count(w.agent.Output(), words); n != 1 {
			t.Errorf("the log says %q %d times for one outage, expected once", words, n)
		}
	}
}

func TestDelivery_RejectedReport_ShownInStatus(t *testing.T) {
	w := newWorld(t)
	d, err := w.upstream.Register(w.ctx, w.workload("refused", v1alpha1.WorkloadTypeInstance, configMap("good"), configMap("bad")))
	w.must(err)
	w.proxy.failWith(func(r request) (int, http.Header) {
		if r.writesTo(rowPath(d, 1)) {
			return http.StatusBadRequest, nil
		}
		return 0, nil
	})
	for _, obj := range d.Objects {
		_, err := w.upstream.Create(w.ctx, obj)
		w.must(err)
	}
	w.must(w.upstream.Declare(w.ctx, d))
	w.expectOperation(d, 0, threeport.OperationAdded)
	w.eventually(waitTimeout, "the refused report in the workload's status", func() error {
		cr, err := w.status(d.Name)
		if err != nil {
			return err
		}
		del := cr.Status.Delivery
		if del.Rejected != 1 || len(del.Rejections) != 1 || !strings.Contains(del.Rejections[0].Reason, "injected by the test") {
			return fmt.Errorf("delivery is %+v", del)
		}
		return nil
	})
	if n := w.proxy.rejections(rowPath(d, 1)); n != 1 {
		t.Errorf("the rejected report was sent %d times by itself, want 1", n)
	}
	if metrics := w.get(w.metrics + "/metrics"); !strings.Contains(metrics, `threeport_agent_reports_total{kind="operation",result="rejected"} 1`) {
		t.Error("the metrics do not count the rejected report")
	}
	// Each change of the annotation causes another attempt.
	retry := func(value string) {
		t.Helper()
		w.patch(w.cr(d), fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.AnnotationRetryRejected, value))
	}
	retry("once")
	w.eventually(waitTimeout, "the refused report to be sent again", func() error {
		if n := w.proxy.rejections(rowPath(d, 1)); n != 2 {
			return fmt.Errorf("it was sent %d times", n)
		}
		return nil
	})
	w.proxy.failWith(nil)
	retry("twice")
	w.awaitAgreement(tracked(d)...)
	w.expectCondition(d.Name, v1alpha1.ConditionDelivered, metav1.ConditionTrue)
}

func TestDelivery_RejectedReportObjectChanges_SendsAgain(t *testing.T) {
	w := newWorld(t)
	d := w.deploy("refused", configMap("conf"))
	w.awaitAgreement(tracked(d)...)
	w.proxy.failWith(func(r request) (int, http.Header) {
		if r.writesTo(rowPath(d, 0)) {
			return http.StatusBadRequest, nil
		}
		return 0, nil
	})
	w.patch(d.Objects[0], `{"data":{"key":"bad"}}`)
	w.eventually(waitTimeout, "the report to be refused", func() error {
		cr, err := w.status(d.Name)
		if err == nil && cr.Status.Delivery.Rejected != 1 {
			err = fmt.Errorf("delivery is %+v", cr.Status.Delivery)
		}
		return err
	})
	w.proxy.failWith(nil)
	w.patch(d.Objects[0], `{"data":{"key":"better"}}`)
	w.awaitAgreement(tracked(d)...)
}

func TestDelivery_RetryAfter_Waits(t *testing.T) {
	w := newWorld(t)
	var refused []time.Time
	w.proxy.failWith(func(r request) (int, http.Header) {
		if len(r.writes) == 0 || len(refused) > 0 {
			return 0, nil
		}
		refused = append(refused, time.Now())
		return http.StatusTooManyRequests, http.Header{"Retry-After": {"2"}}
	})
	d := w.deploy("conf", configMap("conf"))
	w.awaitAgreement(tracked(d)...)
	if waited := time.Since(refused[0]); waited < 2*time.Second {
		t.Errorf("the report was accepted %s after a Retry-After of 2 s", waited)
	}
}

func TestAgent_SIGTERM_FlushesPendingReports(t *testing.T) {
	w := newWorld(t)
	first := w.deploy("first", configMap("first"))
	w.awaitAgreement(tracked(first)...)
	w.proxy.failWith(func(request) (int, http.Header) { return http.StatusServiceUnavailable, nil })
	d := w.deploy("conf", configMap("conf"), deployment("web", 2))
	w.awaitReplicas(d.Objects[1], 2)
	w.expectCondition(d.Name, v1alpha1.ConditionDelivered, metav1.ConditionFalse)
	stopped := make(chan error)
	go func() { stopped <- w.agent.Stop(waitTimeout) }()
	_, err := w.agent.WaitFor(w.ctx, "Stopping and waiting for leader election runnables")
	w.must(err)
	w.proxy.failWith(nil)
	if err := <-stopped; err != nil {
		t.Errorf("the agent did not flush: %v", err)
	}
	w.awaitAgreement(tracked(first, d)...)
}

func TestAgent_Restart_UpdatesRows(t *testing.T) {
	w := newWorld(t)
	d := w.deploy("conf", configMap("conf"))
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
`, w.namespace, w.getObject(d.Objects[0]).GetUID()))
	w.awaitAgreement(tracked(d)...)
	w.must(w.agent.Stop(waitTimeout))
	w.patch(event, `{"message":"twice, while nobody watched","count":2,"lastTimestamp":"2026-01-02T03:05:06Z"}`)
	w.patch(d.Objects[0], `{"data":{"key":"changed while nobody watched"}}`)
	w.startAgent()
	w.awaitAgreement(tracked(d)...)
}

func TestEvents_ObjectMoves_RowKeepsInstance(t *testing.T) {
	w := newWorld(t)
	d := w.deploy("web", deployment("web", 1))
	w.expectStatus(d, "Healthy")
	w.awaitAgreement(tracked(d)...)
	before := w.allEvents()
	w.must(w.upstream.DeleteObject(w.ctx, w.cr(d)))
	w.expectGone(d)
	// The same objects in another instance.
	again, err := w.upstream.Register(w.ctx, upstream.Workload{Name: d.Name, Type: v1alpha1.WorkloadTypeHelmInstance, Objects: d.Objects})
	w.must(err)
	w.must(w.upstream.Declare(w.ctx, again))
	w.eventually(waitTimeout, "the status of the new instance", func() error {
		status, err := w.api.Status(w.ctx, upstream.HelmWorkloadInstances, again.InstanceID)
		if err == nil && status != "Healthy" {
			err = fmt.Errorf("it is %q", status)
		}
		return err
	})
	w.patch(d.Objects[0], `{"spec":{"replicas":2}}`)
	w.eventually(waitTimeout, "new Events under the new instance", func() error {
		rows := w.allEvents()
		fresh := 0
		for _, row := range rows {
			if row.HelmWorkloadInstanceID != nil && *row.HelmWorkloadInstanceID == again.InstanceID {
				fresh++
			}
			if row.HelmWorkloadInstanceID != nil && row.WorkloadInstanceID != nil {
				return fmt.Errorf("event %s is in two instances", *row.Reason)
			}
		}
		if fresh < 3 || len(rows)-fresh != len(before) {
			return fmt.Errorf("%d are new of %d, and %d were there before", fresh, len(rows), len(before))
		}
		return nil
	})
}

func TestAgent_Stdout_PrintsReports(t *testing.T) {
	w := newWorldWithoutAgent(t)
	w.startAgent("--sink=stdout")
	d := w.deploy("web", deployment("web", 1))
	for _, line := range []string{
		"Deployment created: web\n", "Pod created: web-", "ReplicaSet created: web-", "Event Normal ScalingReplicaSet of Deployment ",
		fmt.Sprintf("WorkloadInstance %d: Healthy\n", d.InstanceID),
	} {
		if _, err := w.agent.WaitFor(w.ctx, strings.TrimSuffix(line, "\n")); err != nil {
			t.Error(err)
		}
	}
	w.must(w.upstream.DeleteObject(w.ctx, d.Objects[0]))
	_, err := w.agent.WaitFor(w.ctx, "Deployment deleted: web")
	w.must(err)
	if sent := w.proxy.sent(); len(sent) > 0 {
		t.Errorf("%d requests were sent with --sink=stdout", len(sent))
	}
}

func TestAgent_ProbesAndMetrics(t *testing.T) {
	w := newWorld(t)
	d := w.deploy("web", deployment("web", 1))
	w.expectStatus(d, "Healthy")
	for _, path := range []string{"/healthz", "/readyz"} {
		if body := w.get(w.probes + path); body != "ok" {
			t.Errorf("GET %s answers %q, expected ok", path, body)
		}
	}
	for _, name := range []string{
		`threeport_agent_watches{resource="deployments.apps"} 1`, "threeport_agent_reports_pending 0",
		`threeport_agent_reports_total{kind="status",result="accepted"}`,
	} {
		w.eventually(waitTimeout, "metrics with "+name, func() error { // Events may be pending
			if !strings.Contains(w.get(w.metrics+"/metrics"), name) {
				return errors.New("there is none")
			}
			return nil
		})
	}
}

func TestAgent_InvalidFlags_ExplainTheFix(t *testing.T) {
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
				t.Fatalf("the agent ended with exit code 0, expected 2: %s", out)
			}
			if exit, _ = err.(*exec.ExitError); exit == nil || exit.ExitCode() != 2 { //nolint:errorlint // never wrapped here
				t.Errorf("the agent ended with %v, expected exit code 2", err)
			}
			if !strings.Contains(string(out), c.want) {
				t.Errorf("the agent says %q, expected %q", out, c.want)
			}
		})
	}
}

func TestAgent_TwoReplicas_ElectLeader(t *testing.T) {
	w := newWorldWithoutAgent(t)
	flags := []string{"--leader-elect", "--leader-election-namespace=" + w.namespace}
	w.user = shared.cluster.Kubeconfig()
	w.startAgent(flags...)
	leader := w.agent
	second, err := process.Start(shared.agent, nil, append([]string{
		"--kubeconfig=" + w.user, "--threeport-api-server=" + w.proxy.url, "--auth-enabled=false",
		"--metrics-bind-address=0", "--health-probe-bind-address=" + freeAddress(t),
	}, flags...))
	w.must(err)
	t.Cleanup(second.Kill)
	d := w.deploy("conf", configMap("conf"))
	w.awaitAgreement(tracked(d)...)
	if strings.Contains(second.Output(), "Starting workers") {
		t.Error("the second replica sends reports although the first one leads")
	}
	w.must(leader.Stop(waitTimeout))
	w.patch(d.Objects[0], `{"data":{"key":"after the leader stopped"}}`)
	w.awaitAgreement(tracked(d)...)
}

// cr returns an object with the name of a workload's ThreeportWorkload.
func (w *world) cr(d upstream.Deployed) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("ThreeportWorkload"))
	obj.SetName(d.Name)
	return obj
}

// expectGone expects that a deleted ThreeportWorkload is released before the agent's grace period of 30 s ends. After the
// grace period the agent would release it even without its last reports.
func (w *world) expectGone(d upstream.Deployed) {
	w.Helper()
	const within = 20 * time.Second
	resource, err := w.upstream.Resource(w.cr(d))
	w.must(err)
	w.eventually(within, "ThreeportWorkload "+d.Name+" to be gone", func() error {
		if _, err := resource.Get(w.ctx, d.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is still there: %w", err)
		}
		return nil
	})
}

// watches returns the number of the agent's informers from its metrics.
func (w *world) watches() int {
	w.Helper()
	return w.sum("threeport_agent_watches{")
}

// sum returns the sum of the agent's metrics whose lines have a prefix.
func (w *world) sum(begin string) int {
	w.Helper()
	n := 0
	for line := range strings.Lines(w.get(w.metrics + "/metrics")) {
		if value, ok := strings.CutPrefix(line, begin); ok {
			_, value, _ = strings.Cut(value, "} ")
			count, err := strconv.Atoi(strings.TrimSpace(value))
			w.must(err)
			n += count
		}
	}
	return n
}
