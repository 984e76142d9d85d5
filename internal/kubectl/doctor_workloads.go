package kubectl

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/threeport/threeport-agent/api/v1alpha1"
)

// checkStatuses checks that the agent confirms the statuses of all ThreeportWorkloads.
func checkStatuses(in *installation) []finding {
	switch {
	case in.workloads.skipped != "" && len(in.workloads.items) == 0:
		return []finding{notChecked("The ThreeportWorkloads: " + in.workloads.skipped + ".")}
	case in.workloads.notServed:
		return nil
	case len(in.workloads.items) == 0:
		return []finding{okay("There are no ThreeportWorkloads, so the agent has nothing to report.")}
	}
	byStatus, outdated := map[string]int{}, map[string][]string{} // the latter by reason
	for _, s := range statusesOf(in.workloads.items, in.leaseStates(), in.now) {
		byStatus[string(s.Status)]++
		switch s.Reason {
		case agentNotReporting, agentStarting, "NotSeen", "SpecNotObserved":
			outdated[s.Reason] = append(outdated[s.Reason], s.Name)
		}
	}
	var counts []string
	for _, status := range statuses {
		if n := byStatus[string(status)]; n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, status))
		}
	}
	var out []finding
	for _, reason := range slices.Sorted(maps.Keys(outdated)) {
		out = append(out, in.outdatedFinding(reason, outdated[reason]))
	}
	if len(out) == 0 {
		out = append(out, okay("%s, all confirmed by the agent: %s.", many(len(in.workloads.items), "ThreeportWorkload"), strings.Join(counts, ", ")))
	}
	return out
}

// outdatedFinding is about workloads whose statuses the agent does not confirm.
func (in *installation) outdatedFinding(reason string, names []string) finding {
	f := finding{
		Severity: severityError,
		Message:  fmt.Sprintf("The statuses of %s are outdated (%s): %s.", in.share(len(names)), reason, firstOf(names)),
		Action:   "Repair the agent. `" + freshCommand + "` shows the health of the workloads meanwhile.", Link: runbook + "offline-agent",
	}
	switch reason {
	case "NotSeen":
		f.Message = fmt.Sprintf("The agent has not reported on %s yet: %s.", in.share(len(names)), firstOf(names))
	case agentStarting, "SpecNotObserved":
		f.Severity, f.Action = severityWarning, "Wait for 10 seconds, and repeat the command."
	}
	return f
}

// share counts workloads: "2 of 5 ThreeportWorkloads".
func (in *installation) share(n int) string {
	return fmt.Sprintf("%d of %s", n, many(len(in.workloads.items), "ThreeportWorkload"))
}

// leaseStates returns the states of the heartbeats.
func (in *installation) leaseStates() leases {
	out := leases{}
	for _, lease := range in.leasesNamed(heartbeatLease) {
		out[v1alpha1.LeaseReference{Namespace: lease.Namespace, Name: lease.Name}] = stateOf(lease.Spec)
	}
	return out
}

// conditionGroup is the workloads with the same reason of a condition.
type conditionGroup struct {
	reason  string
	message string    // of the first workload
	since   time.Time // the earliest transition
	members []*v1alpha1.ThreeportWorkload
}

// groupByReason returns the workloads whose condition has a status, by its reason.
func (in *installation) groupByReason(condition string, status metav1.ConditionStatus) []*conditionGroup {
	groups := map[string]*conditionGroup{}
	for i := range in.workloads.items {
		wl := &in.workloads.items[i]
		c := meta.FindStatusCondition(wl.Status.Conditions, condition)
		if c == nil || c.Status != status {
			continue
		}
		g := groups[c.Reason]
		if g == nil {
			g = &conditionGroup{reason: c.Reason, message: c.Message, since: c.LastTransitionTime.Time}
			groups[c.Reason] = g
		}
		if c.LastTransitionTime.Time.Before(g.since) {
			g.since = c.LastTransitionTime.Time
		}
		g.members = append(g.members, wl)
	}
	return slices.SortedFunc(maps.Values(groups), func(a, b *conditionGroup) int { return cmp.Compare(a.reason, b.reason) })
}

// quote returns the message of the first workload.
func (g *conditionGroup) quote() string {
	message := strings.TrimSuffix(g.message, ".") + "."
	if len(g.members) > 1 {
		return "In " + g.members[0].Name + ": " + message
	}
	return message
}

// lateness says for how long the oldest pending report of a group waits; empty if none is pending.
func (in *installation) lateness(g *conditionGroup) string {
	oldest := in.now
	for _, wl := range g.members {
		if since := wl.Status.Delivery.PendingSince; since != nil && since.Time.Before(oldest) {
			oldest = since.Time
		}
	}
	if oldest.Equal(in.now) {
		return ""
	}
	return fmt.Sprintf(" The oldest report waits for %s.", ago(oldest, in.now))
}

// describe names the workloads of a group: "Not delivered for 5m (Pending): 2 of 5 ThreeportWorkloads: api, web."
func (in *installation) describe(g *conditionGroup, what string) string {
	var names []string
	for _, wl := range g.members {
		names = append(names, wl.Name)
	}
	return fmt.Sprintf("%s for %s (%s): %s: %s.", what, ago(g.since, in.now), g.reason, in.share(len(g.members)), firstOf(names))
}

// conditionAdvice is the severity of a finding about a reason, and what to do.
type conditionAdvice struct {
	severity     severity
	action, link string
}

// checkCondition returns a finding for each reason of a condition that is not True. Conditions of an agent that is silent prove nothing.
func (in *installation) checkCondition(condition, what, fine string, advice map[string]conditionAdvice) []finding {
	if len(in.workloads.items) == 0 {
		return nil
	}
	var out []finding
	for _, g := range in.groupByReason(condition, metav1.ConditionFalse) {
		a, ok := advice[g.reason]
		if !ok {
			a = conditionAdvice{severityWarning, "Read the conditions: `kubectl threeport status " + g.members[0].Name + " -o wide`.", "docs/status.md#conditions"}
		}
		out = append(out, finding{
			Severity: a.severity, Action: a.action, Link: a.link,
			Message: in.describe(g, what) + " " + g.quote() + in.lateness(g),
		})
	}
	switch {
	case len(out) > 0:
		return out
	case in.isSilent():
		return []finding{notChecked("The agent does not report, so its last conditions prove nothing.")}
	}
	return []finding{okay("%s", fine)}
}

// isSilent reports whether the agent confirms no status at all.
func (in *installation) isSilent() bool {
	last, states := lastConfirmation(in.workloads.items), in.leaseStates()
	return !slices.ContainsFunc(in.workloads.items, func(wl v1alpha1.ThreeportWorkload) bool {
		return !isUnseen(&wl) && states.outdated(&wl, last, in.now).since.IsZero()
	})
}

// deliveryAdvice has the reasons of the condition Delivered besides Pending.
var deliveryAdvice = map[string]conditionAdvice{
	"NotAssigned":     {severityError, "Assign the instances to this cluster: `controlplane workload assign`.", runbook + "not-assigned"},
	"UnknownInstance": {severityError, "Correct the ID in the spec, or create the row in the control plane.", runbook + "unknown-instance"},
	"UnknownResource": {severityError, "Correct the ID in the spec, or create the row in the control plane.", runbook + "unknown-instance"},
	"QuotaExceeded":   {severityError, "Raise --max-cluster-bytes of the control plane, or delete workloads.", runbook + "quota-reached"},
	"Rejected":        {severityError, "Read `delivery.rejections` of the status, and correct the objects.", runbook + "dead-letters"},
	"InstanceRemoved": {severityWarning, "Delete the ThreeportWorkloads, or correct their IDs.", "docs/troubleshooting.md#the-control-plane-is-behind-the-cluster"},
	"ResourceRemoved": {severityWarning, "Remove the resources from the list, or correct their IDs.", "docs/troubleshooting.md#the-control-plane-is-behind-the-cluster"},
}

// outage is a kind of errors of the control plane, with its advice.
type outage struct {
	pattern      *regexp.Regexp
	action, link string
}

// outages are the known kinds. The first one that matches counts, and the last one matches every error.
var outages = []outage{
	{regexp.MustCompile(`x509`), "Compare the authority of the API's certificate with --ca-file of the agent.", runbook + "credentials-refused"},
	{regexp.MustCompile(`\b40[13]\b`), "Issue a new token or certificate with the role agent, and replace the Secret.", runbook + "credentials-refused"},
	{regexp.MustCompile(`\b429\b`), "Find the sender that exceeds a rate limit in the audit log of the control plane.", runbook + "api-errors"},
	{regexp.MustCompile(`\b503\b`), "Look at the database and the memory of the control plane.", runbook + "database-away"},
	{regexp.MustCompile(`\b404\b`), "Correct the route of the proxy or load balancer.", runbook + "not-delivering"},
	{
		regexp.MustCompile(`awaiting headers|deadline exceeded|did not answer in time`),
		"The control plane accepts connections and does not answer: look at its Pods and its database.", runbook + "database-away",
	},
	{
		regexp.MustCompile(``),
		"Look whether the control plane runs. Compare --threeport-api-server with its Service, and look at NetworkPolicies.", runbook + "not-delivering",
	},
}

// checkDelivery checks that the control plane has accepted all reports, and says how late it is.
func checkDelivery(in *installation) []finding {
	advice := maps.Clone(deliveryAdvice)
	advice["Pending"] = conditionAdvice{severityWarning, "Wait for a minute, and repeat the command: the agent may have just started.", runbook + "not-delivering"}
	const notReady = "not ready: " // the agent waits for the API server of its cluster, not for the control plane
	lastError := ""
	for i := range in.workloads.items {
		if d := &in.workloads.items[i].Status.Delivery; d.Pending > 0 && !strings.HasPrefix(d.LastError, notReady) {
			lastError = cmp.Or(lastError, d.LastError)
		}
	}
	if lastError != "" {
		at := slices.IndexFunc(outages, func(o outage) bool { return o.pattern.MatchString(lastError) })
		advice["Pending"] = conditionAdvice{severityError, outages[at].action, outages[at].link}
	}
	return in.checkCondition(v1alpha1.ConditionDelivered, "Not delivered", "The control plane has accepted all reports.", advice)
}

// checkDropped looks for Events that were dropped at the memory limit.
func checkDropped(in *installation) []finding {
	var names []string
	var dropped int64
	for i := range in.workloads.items {
		if n := in.workloads.items[i].Status.Delivery.Dropped; n > 0 {
			names, dropped = append(names, in.workloads.items[i].Name), dropped+n
		}
	}
	if dropped == 0 {
		return nil
	}
	return []finding{{
		Severity: severityWarning, Message: fmt.Sprintf("The agent dropped %s of %s at its memory limit: %s.", many(int(dropped), "Event"), in.share(len(names)), firstOf(names)),
		Action: "Restore the delivery, or stop the source of the Events.", Link: runbook + "dropped-events",
	}}
}

// checkWatching checks that the agent watches all listed resources.
func checkWatching(in *installation) []finding {
	notWatched := conditionAdvice{severityError, "Read `kubectl threeport rbac" + in.permissions.agent.flags() + "` for a missing permission, or install the missing CRD.", runbook + "kind-not-watched"}
	if !in.listsUnwatched() { // without the component secrets, Secrets are not watched, and no verdict depends on them
		notWatched = conditionAdvice{severityWarning, "Add the component secrets if the control plane has to know these Secrets.", "docs/permissions.md#without-a-permission"}
	}
	return in.checkCondition(v1alpha1.ConditionWatching, "Not fully watched", "The agent watches all listed resources.", map[string]conditionAdvice{
		"NotAllWatched":    notWatched,
		"TooManyResources": {severityError, "Raise the memory limit of the agent and GOMEMLIMIT.", "docs/status.md#too-many-resources"},
	})
}

// listsUnwatched reports whether a resource other than a Secret without permission is not watched. If the status has no such resource,
// the base kinds are the cause.
func (in *installation) listsUnwatched() bool {
	secretsOnly := false
	for _, g := range in.groupByReason(v1alpha1.ConditionWatching, metav1.ConditionFalse) {
		for _, wl := range g.members {
			for i := range wl.Status.Resources {
				r := &wl.Status.Resources[i]
				switch {
				case r.State == v1alpha1.ResourcePresent || r.State == v1alpha1.ResourceAbsent:
				case r.State == v1alpha1.ResourceForbidden && r.Group == "" && r.Kind == "Secret":
					secretsOnly = true
				default:
					return true
				}
			}
		}
	}
	return !secretsOnly
}

// checkDurable checks that undelivered reports survive a restart of the agent.
func checkDurable(in *installation) []finding {
	return in.checkCondition(v1alpha1.ConditionDurable, "Undelivered reports not durable", "Undelivered reports survive a restart.", map[string]conditionAdvice{
		"StateFailing": {severityError, "Give the volume of --state-dir space. Do not delete the Pod before.", runbook + "state-failing"},
		"NoStateDir":   {severityWarning, "Set --state-dir to a folder on a volume.", runbook + "state-failing"},
	})
}

// checkShared looks for instances of several ThreeportWorkloads, and for objects of several instances.
func checkShared(in *installation) []finding {
	var out []finding
	for condition, what := range map[string]string{
		v1alpha1.ConditionInstanceShared: "Instance of several ThreeportWorkloads", v1alpha1.ConditionResourcesShared: "Resources of several instances",
	} {
		for _, g := range in.groupByReason(condition, metav1.ConditionTrue) {
			out = append(out, finding{
				Severity: severityWarning, Message: in.describe(g, what), Link: "docs/status.md#conditions",
				Action: "Nothing, if it is intended. Otherwise correct the specs: it can be an attempt to add objects to the workload of somebody else.",
			})
		}
	}
	slices.SortFunc(out, func(a, b finding) int { return cmp.Compare(a.Message, b.Message) })
	return out
}

// deletionTime is how long the agent may delay a deletion, with the tolerance of clocks.
const deletionTime = 30*time.Second + clockTolerance

// checkDeletions looks for ThreeportWorkloads whose deletion waits for the agent.
func checkDeletions(in *installation) []finding {
	var names []string
	for i := range in.workloads.items {
		wl := &in.workloads.items[i]
		if wl.DeletionTimestamp != nil && slices.Contains(wl.Finalizers, v1alpha1.Finalizer) && in.now.Sub(wl.DeletionTimestamp.Time) > deletionTime {
			names = append(names, wl.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []finding{{
		Severity: severityWarning, Message: fmt.Sprintf("The deletion of %s waits for the agent: %s.", in.share(len(names)), firstOf(names)),
		Action: "Start the agent. It removes its finalizer.", Link: runbook + "deletion-waits",
	}}
}
