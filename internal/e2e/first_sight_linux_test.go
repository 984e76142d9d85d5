package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/e2e/cluster"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
	"github.com/threeport/threeport-agent/internal/e2e/world"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// TestFirstSight walks through the questions of a new user, in order, against one live stack: API server, agent, control-plane API
// and kubectl plugin. Other tests have the details of each. The web UI shows what the API returns here.
func TestFirstSight(t *testing.T) {
	t.Parallel()
	w := newWorldWithoutAgent(t, "--strict-v0=false", "--agent-timeout=20s") // the agent sends a heartbeat each 15 s
	w.kubeconfig = w.Cluster.Kubeconfig()                                    // it may write the Lease
	flags := []string{"--leader-election-namespace=" + w.Namespace, "--state-dir=" + t.TempDir()}
	w.startAgent(flags...)
	web := w.Deploy("web", deployment("web", 3))
	conf := w.Deploy("conf", world.ConfigMap("conf"))
	w.ExpectStatus(web, "Healthy")
	w.ExpectStatus(conf, "Healthy")

	w.point("dead agent", func(w *agentWorld) { w.seeDeadAgent(conf) })
	w.startAgent(flags...)
	w.point("unknown instance", (*agentWorld).seeUnknownInstance)
	w.point("removed instance", (*agentWorld).seeRemovedInstance)
	w.point("unknown resource", (*agentWorld).seeUnknownResource)
	w.point("shared object", func(w *agentWorld) { w.seeSharedObject(web) })
	w.point("change of image", func(w *agentWorld) { w.seeChangeOfImage(web) })
	w.point("root cause at 80 columns", (*agentWorld).seeRootCause)
	w.point("scaled to 0", (*agentWorld).seeScaledToZero)
	w.point("every change in the timeline", func(w *agentWorld) { w.seeTimeline(conf) })
	w.point("offline agent", func(w *agentWorld) { w.seeOfflineAgent(conf) })
	restarted := time.Now()
	w.startAgent(flags...)
	w.point("one begin of a fault", func(w *agentWorld) { w.seeOneBegin(web, restarted) })
	w.point("failed rollout", func(w *agentWorld) { w.seeFailedRollout(web) })
	w.point("Kubernetes Events", func(w *agentWorld) { w.seeKubernetesEvents(web) })
	w.point("command line", func(w *agentWorld) { w.seeCommandLine(web) })
}

// point runs a step as a subtest, which has the world with a T of its own.
func (w *agentWorld) point(name string, step func(*agentWorld)) {
	w.Run(name, func(t *testing.T) {
		point, inner := *w, *w.World
		inner.T, point.World = t, &inner
		step(&point)
	})
}

func (w *agentWorld) seeDeadAgent(d upstream.Deployed) {
	w.Must(w.agent.Stop(world.Timeout)) // it releases the Lease; TestHeartbeat waits until the Lease of a hanging agent expires
	w.expectPlugin(4, "agent not reporting since 20", "status", d.Name)
	w.expectPlugin(4, "; last status: Healthy", "status", d.Name)
	w.expectPlugin(0, "Healthy", "status", d.Name, "--fresh")
	w.expectPlugin(0, "The agent does not report: it was last seen at 20", "status", d.Name, "--fresh")
}

func (w *agentWorld) seeUnknownInstance() {
	d, err := w.Upstream.Register(w.Ctx, w.Workload("late", v1alpha1.WorkloadTypeInstance, world.ConfigMap("late")))
	w.Must(err)
	w.CreateObject(d.Objects[0])
	wrong := d
	wrong.InstanceID++
	w.Must(w.Upstream.Declare(w.Ctx, wrong))
	w.ExpectCondition(d, v1alpha1.ConditionDelivered, metav1.ConditionFalse, fmt.Sprintf("has no WorkloadInstance %d", wrong.InstanceID))
	w.expectPlugin(0, "UnknownInstance", "status", d.Name)
	w.Must(w.Upstream.Declare(w.Ctx, d)) // clients cannot choose the ID of a row, so the ID of the declaration becomes right
	w.ExpectCondition(d, v1alpha1.ConditionDelivered, metav1.ConditionTrue, "")
	w.ExpectOperation(d, 0, threeport.OperationAdded)
}

func (w *agentWorld) seeRemovedInstance() {
	d := w.Deploy("removed", deployment("removed", 1))
	w.ExpectStatus(d, "Healthy")
	w.requestByOther(http.MethodDelete, fmt.Sprintf("/v0/workload-instances/%d", d.InstanceID), "")
	w.Patch(d.Objects[0], `{"metadata":{"annotations":{"changed":"yes"}}}`)
	w.ExpectCondition(d, v1alpha1.ConditionDelivered, metav1.ConditionFalse, fmt.Sprintf("removed WorkloadInstance %d", d.InstanceID))
	w.expectPlugin(0, "InstanceRemoved", "status", d.Name)
}

func (w *agentWorld) seeUnknownResource() {
	d, err := w.Upstream.Register(w.Ctx, w.Workload("mistyped", v1alpha1.WorkloadTypeInstance, deployment("mistyped", 1)))
	w.Must(err)
	w.CreateObject(d.Objects[0])
	wrong := d
	wrong.Resources = slices.Clone(d.Resources)
	wrong.Resources[0].ThreeportID++
	w.Must(w.Upstream.Declare(w.Ctx, wrong))
	w.ExpectCondition(d, v1alpha1.ConditionDelivered, metav1.ConditionFalse, fmt.Sprintf("has no WorkloadResourceInstance %d", wrong.Resources[0].ThreeportID))
	w.expectPlugin(0, "UnknownResource", "status", d.Name)
	w.Must(w.Upstream.Declare(w.Ctx, d))
	w.ExpectCondition(d, v1alpha1.ConditionDelivered, metav1.ConditionTrue, "")
	w.ExpectOperation(d, 0, threeport.OperationAdded)
	w.Eventually("the Events of the Pod", func() error {
		if events := w.eventsOf(d); !strings.Contains(strings.Join(events, "\n"), "Scheduled") {
			return fmt.Errorf("the Events are %q", events)
		}
		return nil
	})
	if strings.Contains(w.agent.Output(), fmt.Sprintf("removed WorkloadResourceInstance %d", wrong.Resources[0].ThreeportID)) {
		w.Errorf("the agent discarded reports:\n%s", w.agent.Output())
	}
}

func (w *agentWorld) seeSharedObject(first upstream.Deployed) {
	second, err := w.Upstream.Register(w.Ctx, w.Workload("second", v1alpha1.WorkloadTypeInstance, deployment("web", 3)))
	w.Must(err)
	w.Must(w.Upstream.Declare(w.Ctx, second))
	w.ExpectCondition(first, v1alpha1.ConditionResourcesShared, metav1.ConditionTrue, second.Name)
	w.ExpectCondition(second, v1alpha1.ConditionResourcesShared, metav1.ConditionTrue, first.Name)
	w.Patch(first.Objects[0], `{"spec":{"replicas":4}}`)
	for _, d := range []upstream.Deployed{first, second} {
		w.Eventually("the Event about the fourth replica of "+d.Name, func() error {
			if events := w.eventsOf(d); !strings.Contains(strings.Join(events, "\n"), " from 3 to 4") {
				return fmt.Errorf("the Events are %q", events)
			}
			return nil
		})
	}
	w.Patch(first.Objects[0], `{"spec":{"replicas":3}}`)
	w.Remove(world.CustomResource(second))
}

func (w *agentWorld) seeChangeOfImage(d upstream.Deployed) {
	const changed = "example/app:2"
	w.Patch(d.Objects[0], `{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"`+changed+`"}]}}}}`)
	// The rollout has changed the status several times after the spec.
	w.expectPreviousImage(w.awaitRolledOut(string(w.Get(d.Objects[0]).GetUID()), changed, 3), "example/app:1")
}

func (w *agentWorld) seeRootCause() {
	d := w.Deploy("broken", failingDeployment("broken", 2, "image-pull"))
	w.ExpectStatus(d, "Down")
	w.Eventually("the cause on a terminal", func() error {
		out, err := runOnTerminal(w.plugin("status", "--accept=Down,Reconciling,Unhealthy,Unknown"), 80)
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		_, rest, _ := strings.Cut(strings.ReplaceAll(out, "\r\n", "\n"), "\n"+d.Name+" ")
		rows := strings.Split(rest, "\n")
		cause := ""
		for _, row := range rows[1:] {
			if !strings.HasPrefix(row, "  ") {
				break
			}
			cause += " " + strings.TrimSpace(row)
		}
		workload, err := w.ThreeportWorkload(d)
		if err != nil {
			return err
		}
		if cause = strings.TrimSpace(cause); cause != workload.Status.Message || !strings.HasPrefix(cause, "2 pods ") {
			return fmt.Errorf("the cause is %q, want %q, in\n%s", cause, workload.Status.Message, out)
		}
		for row := range strings.Lines(out) {
			if n := len([]rune(strings.TrimRight(row, "\r\n"))); n > 80 {
				return fmt.Errorf("a line has %d columns: %s", n, row)
			}
		}
		return nil
	})
}

func (w *agentWorld) seeScaledToZero() {
	d := w.Deploy("idle", deployment("idle", 0))
	w.expectPlugin(0, "Deployment idle is scaled to 0", "status", d.Name)
	w.Eventually("the control plane to say it", func() error {
		got, err := w.detail(d)
		if err == nil && (got.Workload.Status != "Healthy" || got.Workload.Cause != "Deployment idle is scaled to 0") {
			err = fmt.Errorf("the workload is %+v", got.Workload)
		}
		return err
	})
}

// transition is the begin of the message of an Event about a change of the status.
var transition = regexp.MustCompile(`^Workload \S+ is (\w+)(?:, it was (\w+))?`)

func (w *agentWorld) seeTimeline(d upstream.Deployed) {
	deleted := w.Get(d.Objects[0]).GetUID()
	w.Remove(d.Objects[0])
	w.ExpectStatus(d, "Down")
	created := w.Create(world.ConfigMap("conf")).GetUID()
	w.ExpectStatus(d, "Healthy")
	w.Eventually("the marks of the deletion and the creation", func() error {
		got, err := w.detail(d)
		isGone, isCreated := false, false
		for _, o := range got.Objects {
			isGone = isGone || o.Object.UID == string(deleted) && o.Gone != nil
			isCreated = isCreated || o.Object.UID == string(created) && o.Gone == nil && o.Created != nil
		}
		if err == nil && (!isGone || !isCreated) {
			err = fmt.Errorf("the objects are %+v", got.Objects)
		}
		return err
	})
	w.Eventually("each change of the status in the timeline", func() error {
		changes, err := w.changes(d)
		var words, broken []string
		for i, change := range changes {
			match := transition.FindStringSubmatch(change.Message)
			if i > 0 && match[2] != words[i-1] {
				broken = append(broken, change.Message)
			}
			words = append(words, match[1])
		}
		if err == nil && (len(broken) > 0 || len(words) < 3 || !slices.Equal(words[len(words)-3:], []string{"Healthy", "Down", "Healthy"})) {
			err = fmt.Errorf("the statuses are %v, and %q do not follow from the one before", words, broken)
		}
		return err
	})
}

func (w *agentWorld) seeOfflineAgent(d upstream.Deployed) {
	w.KillAgent(w.agent)
	w.Eventually("the control plane to find the agent offline", func() error {
		got, err := w.detail(d)
		if one := got.Workload; err == nil && (!one.Silent || one.Status != "Unknown" || one.Said != "Healthy" || one.HeardAt == nil) {
			err = fmt.Errorf("the workload is %+v", one)
		}
		for _, o := range got.Objects { // the web UI shows their health in the past tense
			if o.Gone == nil && o.Health != "Healthy" {
				err = errors.Join(err, fmt.Errorf("%s %s is %s", o.Object.Kind, o.Object.Name, o.Health))
			}
		}
		return err
	})
}

func (w *agentWorld) seeOneBegin(d upstream.Deployed, restarted time.Time) {
	w.Eventually("the status from the new process", func() error {
		got, err := w.detail(d)
		if one := got.Workload; err == nil && (one.Status != "Healthy" || one.SaidAt == nil || one.SaidAt.Before(restarted)) {
			err = fmt.Errorf("the workload is %+v", got.Workload)
		}
		return err
	})
	w.Patch(d.Objects[0], `{"spec":{"template":{"metadata":{"annotations":{"kwok.threeport.io/behaviour":"image-pull"}}}}}`)
	w.Eventually("equal times of the ThreeportWorkload, the plugin and the control plane", func() error {
		workload, err := w.ThreeportWorkload(d)
		if err != nil || workload.Status.Health != "Unhealthy" || workload.Status.NotHealthySince == nil {
			return errors.Join(err, fmt.Errorf("the status is %+v", workload.Status))
		}
		row, err := w.statusJSON(d)
		if err != nil {
			return err
		}
		got, err := w.detail(d)
		if err != nil {
			return err
		}
		changes, err := w.changes(d)
		if err != nil || len(changes) == 0 || got.Workload.Since == nil {
			return errors.Join(err, fmt.Errorf("the control plane has %d changes, and the workload %+v", len(changes), got.Workload))
		}
		began := slices.IndexFunc(changes, func(ev threeport.TimelineEvent) bool { return ev.Time.Equal(workload.Status.NotHealthySince.Time) })
		since := workload.Status.HealthSince.Time
		if !row.Since.Equal(since) || !got.Workload.Since.Equal(since) || !changes[len(changes)-1].Time.Equal(since) ||
			!row.NotHealthySince.Equal(workload.Status.NotHealthySince.Time) || began < 0 || !strings.Contains(changes[began].Message, ", it was Healthy") {
			return fmt.Errorf("the ThreeportWorkload has %+v, the plugin %+v, the control plane %+v with %+v", workload.Status, row, got.Workload, changes)
		}
		return nil
	})
}

func (w *agentWorld) seeFailedRollout(d upstream.Deployed) {
	const serving = "3 of 3 old pods serve, 0 of 1 new ready"
	w.expectPlugin(1, serving, "status", d.Name, "-o", "json")
	w.Eventually("the control plane to say which pods serve", func() error {
		got, err := w.detail(d)
		if err == nil && !strings.Contains(got.Workload.Cause, serving) {
			err = fmt.Errorf("the cause is %s", got.Workload.Cause)
		}
		return err
	})
}

func (w *agentWorld) seeKubernetesEvents(d upstream.Deployed) {
	w.expectKubernetesEvent(d.Name, "Warning", "The workload is Unhealthy, it was ")
	binaries, err := cluster.FindBinaries(w.Ctx, w.Output(), cluster.Kubectl)
	w.Must(err)
	cmd := exec.CommandContext(w.Ctx, binaries[cluster.Kubectl], "--kubeconfig", w.Cluster.Kubeconfig(), "--cache-dir", w.cache, "describe", "tpw", d.Name)
	if code, out, err := exitOf(cmd); err != nil || code != 0 || !strings.Contains(out, "The workload is Unhealthy, it was ") {
		w.Errorf("kubectl describe tpw exits with %d (%v) and prints %s", code, err, out)
	}
}

func (w *agentWorld) seeCommandLine(d upstream.Deployed) {
	row, err := w.statusJSON(d)
	w.Must(err)
	if row.WorkloadInstanceID.String() != row.WorkloadInstanceIDString || row.WorkloadInstanceIDString != fmt.Sprint(d.InstanceID) {
		w.Errorf("the ID is %s as a number and %q as a string, want %d", row.WorkloadInstanceID, row.WorkloadInstanceIDString, d.InstanceID)
	}
	w.expectPlugin(1, d.Name, "status", "-n", w.Namespace)
	w.expectPlugin(0, "No ThreeportWorkload lists an object in the namespace kube-public", "status", "-n", "kube-public")
	w.expectPlugin(2, `there is no namespace "elsewhere"`, "status", "-n", "elsewhere")
	w.expectPlugin(2, "did you mean status?", "stauts")
	lost := w.plugin("status")
	lost.Env = append(lost.Env, "KUBECONFIG=/nonexistent")
	taken := strings.TrimPrefix(w.Upstream.API.URL, "http://")
	for _, fails := range []struct {
		cmd  *exec.Cmd
		code int
		want string
	}{
		{lost, 3, "$KUBECONFIG is /nonexistent, and there is no such file"},
		{exec.CommandContext(w.Ctx, shared.controlAPI, "--auth-enabled=false", "--database=sqlite::memory:", "--bind-address="+taken), 1, "--bind-address"},
		{exec.CommandContext(w.Ctx, shared.plainAgent, "--kubeconfig="+w.kubeconfig, "--auth-enabled=false", "--threeport-api-server="+w.server,
			"--health-probe-bind-address=0", "--metrics-bind-address="+taken), 1, "--metrics-bind-address"},
	} {
		if code, out, err := exitOf(fails.cmd); err != nil || code != fails.code || !strings.Contains(out, fails.want) {
			w.Errorf("%v exits with %d (%v), want %d with %q:\n%s", fails.cmd.Args, code, err, fails.code, fails.want, out)
		}
	}
}

// changes returns the changes of the status in the timeline of a workload, the earliest first.
func (w *agentWorld) changes(d upstream.Deployed) ([]threeport.TimelineEvent, error) {
	w.Helper()
	var page threeport.List[threeport.TimelineEvent]
	err := w.read(fmt.Sprintf("/v0/workloads/%s/%d/events?kind=ThreeportWorkload&size=1000", d.Type, d.InstanceID), &page)
	changes := slices.DeleteFunc(page.Items, func(ev threeport.TimelineEvent) bool { return !transition.MatchString(ev.Message) })
	slices.SortFunc(changes, func(a, b threeport.TimelineEvent) int { return a.Time.Compare(b.Time) })
	return changes, err
}
