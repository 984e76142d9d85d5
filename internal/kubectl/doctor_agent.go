package kubectl

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"

	"github.com/threeport/threeport-agent/api/v1alpha1"
)

// checkDeployments checks that one Deployment of the agent has all its replicas.
func checkDeployments(in *installation) []finding {
	var out []finding
	var names []string
	for i := range in.deployments.items {
		d := &in.deployments.items[i]
		names = append(names, d.Namespace+"/"+d.Name)
		out = append(out, checkDeployment(d))
	}
	if len(names) > 1 {
		out = append(out, finding{
			Severity: severityError, Message: fmt.Sprintf("%d Deployments of the agent report the same ThreeportWorkloads: %s.", len(names), firstOf(names)),
			Action: "Keep one and delete the others: they overwrite each other's statuses.",
		})
	}
	switch {
	case in.deployments.skipped != "":
		out = append(out, notChecked("The Deployments of the agent: "+in.deployments.skipped+"."))
	case len(names) == 0 && in.agentReports():
		out = append(out, finding{
			Severity: severityWarning,
			Message:  "An agent reports, but no Deployment with the label " + agentLabel + " exists in " + cmp.Or(in.namespace, "any namespace") + ".",
			Action:   "Add the label to the Deployment, so that its Pods and flags are checked.", Link: connectingAgents,
		})
	case len(names) == 0:
		out = append(out, finding{
			Severity: severityError, Message: "No Deployment with the label " + agentLabel + " exists in " + cmp.Or(in.namespace, "any namespace") + ".",
			Action: "Install the agent, or give its namespace with -n.", Link: connectingAgents,
		})
	}
	return out
}

func checkDeployment(d *appsv1.Deployment) finding {
	name, want := d.Namespace+"/"+d.Name, int32(1)
	if d.Spec.Replicas != nil {
		want = *d.Spec.Replicas
	}
	status := &d.Status
	switch {
	case want == 0:
		return finding{
			Severity: severityError, Message: "The Deployment " + name + " is scaled to 0 replicas.",
			Action: fmt.Sprintf("Start the agent: `kubectl -n %s scale deployment %s --replicas=1`.", d.Namespace, d.Name), Link: runbook + "offline-agent",
		}
	case status.AvailableReplicas < want:
		return finding{
			Severity: severityError, Link: runbook + "agent-restarts",
			Message: fmt.Sprintf("The Deployment %s has %d of %s available%s.", name, status.AvailableReplicas, many(int(want), "replica"), replicaFailure(d)),
			Action:  fmt.Sprintf("Read its Events: `kubectl -n %s describe deployment,pod -l %s`.", d.Namespace, agentLabel),
		}
	case status.UpdatedReplicas < want || status.ObservedGeneration < d.Generation:
		return finding{
			Severity: severityWarning, Message: fmt.Sprintf("The rollout of the Deployment %s is in progress: %d of %s updated.", name, status.UpdatedReplicas, many(int(want), "replica")),
			Action: fmt.Sprintf("Follow it: `kubectl -n %s rollout status deployment %s`.", d.Namespace, d.Name),
		}
	}
	return okay("The Deployment %s has %d of %s available, with the image %s.",
		name, status.AvailableReplicas, many(int(want), "replica"), agentContainer(&d.Spec.Template.Spec).Image)
}

// replicaFailure returns why the Pods of a Deployment cannot be created, such as a quota; empty if they can.
func replicaFailure(d *appsv1.Deployment) string {
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			return ": " + c.Message
		}
	}
	return ""
}

// checkPods checks that the Pods of the agent are ready and do not restart.
func checkPods(in *installation) []finding {
	var out []finding
	for i := range in.pods.items {
		pod := &in.pods.items[i]
		if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue // a Pod of an earlier rollout, or an evicted one that the Deployment has replaced
		}
		out = append(out, in.checkPod(pod))
	}
	if in.pods.skipped != "" {
		out = append(out, notChecked("The Pods of the agent: "+in.pods.skipped+"."))
	}
	return out
}

// recentRestart is how long a restart is a warning.
const recentRestart = 24 * time.Hour

func (in *installation) checkPod(pod *corev1.Pod) finding {
	name := pod.Namespace + "/" + pod.Name
	restarts, last := restartsOf(pod)
	f := finding{
		Link: runbook + "agent-restarts", Action: terminationAction(pod, last),
	}
	why := ""
	if last != nil {
		why = fmt.Sprintf("; it restarted %s, last at %s: %s (exit code %d)",
			many(int(restarts), "time"), last.FinishedAt.UTC().Format(time.RFC3339), cmp.Or(last.Reason, "Error"), last.ExitCode)
	}
	switch {
	case !isReady(pod):
		f.Severity, f.Message = severityError, "The Pod "+name+" is not ready"+in.notReadyCause(pod)+why+"."
	case last != nil && in.now.Sub(last.FinishedAt.Time) < recentRestart:
		f.Severity, f.Message = severityWarning, "The Pod "+name+" is ready"+why+"."
	default:
		return okay("The Pod %s has been ready for %s, with %s.", name, ago(readySince(pod), in.now), many(int(restarts), "restart"))
	}
	return f
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func readySince(pod *corev1.Pod) time.Time {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// restartsOf returns the number of restarts of a Pod's containers, and the last termination of one.
func restartsOf(pod *corev1.Pod) (restarts int32, last *corev1.ContainerStateTerminated) {
	for i := range pod.Status.ContainerStatuses {
		s := &pod.Status.ContainerStatuses[i]
		restarts += s.RestartCount
		for _, ended := range []*corev1.ContainerStateTerminated{s.LastTerminationState.Terminated, s.State.Terminated} {
			if ended != nil && (last == nil || ended.FinishedAt.After(last.FinishedAt.Time)) {
				last = ended
			}
		}
	}
	return restarts, last
}

// notReadyCause returns why a Pod is not ready: the state of a container, the scheduler's message, and the latest Warning about it.
func (in *installation) notReadyCause(pod *corev1.Pod) string {
	var out strings.Builder
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			fmt.Fprintf(&out, ": %s: %s", c.Reason, c.Message)
		}
	}
	for i := range pod.Status.ContainerStatuses {
		if waiting := pod.Status.ContainerStatuses[i].State.Waiting; waiting != nil {
			out.WriteString(strings.TrimSuffix(fmt.Sprintf(": container %s %s: %s", pod.Status.ContainerStatuses[i].Name, waiting.Reason, waiting.Message), ": "))
		}
	}
	var newest *corev1.Event
	for i := range in.events.items {
		e := &in.events.items[i]
		if e.Type == corev1.EventTypeWarning && e.InvolvedObject.UID == pod.UID && (newest == nil || eventTime(e).After(eventTime(newest))) {
			newest = e
		}
	}
	if newest != nil {
		fmt.Fprintf(&out, "; %s: %s", newest.Reason, newest.Message)
	}
	return out.String()
}

func eventTime(e *corev1.Event) time.Time {
	if e.LastTimestamp.IsZero() {
		return e.EventTime.Time
	}
	return e.LastTimestamp.Time
}

// terminationAction says what to do about a Pod by its last termination.
func terminationAction(pod *corev1.Pod, last *corev1.ContainerStateTerminated) string {
	log := fmt.Sprintf("`kubectl -n %s logs %s", pod.Namespace, pod.Name)
	switch {
	case last == nil:
		return fmt.Sprintf("Read its Events: `kubectl -n %s describe pod %s`.", pod.Namespace, pod.Name)
	case last.Reason == "OOMKilled":
		return "Raise the memory limit, with GOMEMLIMIT 10 % below it and --state-max-bytes at half of it."
	case last.ExitCode == 2:
		return "A flag is invalid. The last line of the log names it: " + log + " --previous`."
	}
	return "Read the end of the log before the restart: " + log + " --previous`."
}

// checkFlags looks for flags that prevent or endanger the delivery.
func checkFlags(in *installation) []finding {
	var out []finding
	for i := range in.deployments.items {
		d := &in.deployments.items[i]
		c := agentContainer(&d.Spec.Template.Spec)
		before := len(out)
		for _, rule := range flagRules {
			if message := rule.applies(d, c); message != "" {
				out = append(out, finding{Severity: rule.severity, Message: message, Action: rule.action, Link: "docs/agent-flags.md"})
			}
		}
		if len(out) == before {
			out = append(out, okay("The flags of the Deployment %s/%s: %s.", d.Namespace, d.Name, shownFlags(c)))
		}
	}
	return out
}

// flagRules are the combinations of flags that need attention. A rule that does not apply returns an empty message.
var flagRules = []struct {
	severity severity
	applies  func(d *appsv1.Deployment, c *corev1.Container) string
	action   string
}{
	{severityError, printsReports, "Remove the flag --sink."},
	{severityError, lacksElection, "Set --leader-elect, or scale the Deployment to one replica."},
	{severityWarning, limitsNamespaces, "Nothing, if the ThreeportWorkloads list objects of these namespaces only."},
	{severityWarning, lacksResync, "Remove the flag --resync-interval."},
	{severityWarning, memoryProblem, "Set GOMEMLIMIT 10 % below the memory limit of the container."},
}

func printsReports(_ *appsv1.Deployment, c *corev1.Container) string {
	if sink, ok := flagOf(c, "sink"); ok && sink != "api" {
		return "The agent prints its reports instead of sending them: --sink=" + sink + "."
	}
	return ""
}

func lacksElection(d *appsv1.Deployment, _ *corev1.Container) string {
	if d.Spec.Replicas != nil && *d.Spec.Replicas > 1 && !elects(d) {
		return fmt.Sprintf("%d replicas report at the same time: --leader-elect is not set.", *d.Spec.Replicas)
	}
	return ""
}

func limitsNamespaces(_ *appsv1.Deployment, c *corev1.Container) string {
	if namespaces, _ := flagOf(c, "watch-namespaces"); namespaces != "" {
		return "The agent watches only some namespaces: --watch-namespaces=" + namespaces + "."
	}
	return ""
}

func lacksResync(_ *appsv1.Deployment, c *corev1.Container) string {
	if interval, _ := flagOf(c, "resync-interval"); interval != "" && strings.Trim(interval, "0smh") == "" {
		return "The agent never compares the control plane with the cluster: --resync-interval=" + interval + "."
	}
	return ""
}

// memoryProblem compares GOMEMLIMIT with the memory limit. Without it, Go collects garbage too late, and the agent is killed.
func memoryProblem(_ *appsv1.Deployment, c *corev1.Container) string {
	limit, ok := c.Resources.Limits[corev1.ResourceMemory]
	if !ok {
		return ""
	}
	for _, e := range c.Env {
		if e.Name != "GOMEMLIMIT" {
			continue
		}
		soft, err := apiresource.ParseQuantity(strings.TrimSuffix(e.Value, "B")) // Go writes 230MiB, and Kubernetes 230Mi
		if err != nil || soft.Cmp(limit) < 0 {
			return ""
		}
		return fmt.Sprintf("GOMEMLIMIT is %s, and the memory limit %s.", e.Value, limit.String())
	}
	return "The memory limit is " + limit.String() + ", and GOMEMLIMIT is not set."
}

// shownFlags returns the flags of a container that decide where and how it reports.
func shownFlags(c *corev1.Container) string {
	var out []string
	for _, name := range []string{"threeport-api-server", "auth-enabled", "report-sets", "state-dir", "leader-elect"} {
		if value, ok := flagOf(c, name); ok {
			out = append(out, "--"+name+"="+value)
		}
	}
	return cmp.Or(strings.Join(out, " "), "the defaults")
}

// agentVersion returns the version that the heartbeat names; empty if it is not known.
func (in *installation) agentVersion() string {
	for i := range in.leases.items {
		if version := in.leases.items[i].Annotations[v1alpha1.AnnotationAgentVersion]; version != "" && in.isCurrent(&in.leases.items[i]) {
			return version
		}
	}
	for i := range in.leases.items { // the last agent that reported
		if version := in.leases.items[i].Annotations[v1alpha1.AnnotationAgentVersion]; version != "" {
			return version
		}
	}
	return ""
}

// isCurrent reports whether a Lease is held.
func (in *installation) isCurrent(lease *coordinationv1.Lease) bool {
	s := stateOf(lease.Spec)
	return !s.renewed.IsZero() && in.now.Before(s.expires)
}

// leasesNamed returns the Leases with a name.
func (in *installation) leasesNamed(name string) (out []*coordinationv1.Lease) {
	for i := range in.leases.items {
		if in.leases.items[i].Name == name {
			out = append(out, &in.leases.items[i])
		}
	}
	return out
}

// agentReports reports whether an agent renews its heartbeat.
func (in *installation) agentReports() bool {
	return slices.ContainsFunc(in.leasesNamed(heartbeatLease), in.isCurrent)
}

// checkHeartbeat checks that one agent renews the Lease of its heartbeat.
func checkHeartbeat(in *installation) []finding {
	var current, outdated []finding
	for _, lease := range in.leasesNamed(heartbeatLease) {
		s, name := stateOf(lease.Spec), lease.Namespace+"/"+lease.Name
		if in.isCurrent(lease) {
			current = append(current, okay("%s renewed the Lease %s %s ago. It reports since %s.",
				*lease.Spec.HolderIdentity, name, ago(s.renewed, in.now), s.started.UTC().Format(time.RFC3339)))
			continue
		}
		how := "expired"
		if s.expires.IsZero() {
			how = "was released"
		}
		outdated = append(outdated, finding{
			Severity: severityError, Message: fmt.Sprintf("No agent reports: the Lease %s %s, and was last renewed %s ago.", name, how, ago(s.renewed, in.now)),
			Action: "Start the agent, or repair its Pod. `" + freshCommand + "` shows the health of the workloads meanwhile.", Link: runbook + "offline-agent",
		})
	}
	switch {
	case len(current) > 1:
		return append(current, finding{
			Severity: severityError, Message: fmt.Sprintf("%d agents report the same ThreeportWorkloads.", len(current)),
			Action: "Keep one and delete the others: they overwrite each other's statuses.",
		})
	case len(current) > 0:
		return current // the Lease of an agent that was removed remains
	case len(outdated) > 0:
		return outdated
	case in.leases.skipped != "":
		return []finding{notChecked("The heartbeat of the agent: " + in.leases.skipped + ".")}
	case in.workloads.notServed:
		return nil
	}
	return []finding{{
		Severity: severityError, Message: "No agent reports: there is no Lease " + heartbeatLease + " in " + firstOf(in.agentNamespaces()) + ".",
		Action: "Start the agent. If it runs, it lacks the Role for its Leases: apply config/default again.", Link: runbook + "offline-agent",
	}}
}

// checkLeader checks that one of the replicas leads, if they elect a leader.
func checkLeader(in *installation) []finding {
	var out []finding
	for _, lease := range in.leasesNamed(leaderLease) {
		name, s := lease.Namespace+"/"+lease.Name, stateOf(lease.Spec)
		if in.isCurrent(lease) {
			holder, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_")
			out = append(out, okay("%s leads: it renewed the Lease %s %s ago.", holder, name, ago(s.renewed, in.now)))
			continue
		}
		out = append(out, finding{
			Severity: severityError, Message: fmt.Sprintf("No replica leads: the Lease %s was last renewed %s ago.", name, ago(s.renewed, in.now)),
			Action: "Start the agent, or repair its Pod.", Link: runbook + "offline-agent",
		})
	}
	return out
}
