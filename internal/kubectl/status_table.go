package kubectl

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/health"
)

// workloadStatus is the status of a ThreeportWorkload, as -o json and -o yaml print it.
type workloadStatus struct {
	Name string `json:"name"`
	// Namespaces are the namespaces of the listed objects, sorted.
	Namespaces []string `json:"namespaces"`

	Status  health.Status `json:"status"`
	Reason  string        `json:"reason"`
	Message string        `json:"message"`
	Since   *metav1.Time  `json:"since,omitempty"`
	// CauseSince is when the reason became what it is, if that is known.
	CauseSince *metav1.Time `json:"causeSince,omitempty"`
	// NotHealthySince is when the workload was last Healthy, if that is known and it is not.
	NotHealthySince *metav1.Time `json:"notHealthySince,omitempty"`
	// LastStatus is the last reported status if the agent does not report; Status is Unknown then.
	LastStatus health.Status `json:"lastStatus,omitempty"`
	// DeletionRequested is when the workload was deleted, while the agent's finalizer keeps it.
	DeletionRequested *metav1.Time `json:"deletionRequested,omitempty"`

	ConfirmedAt *metav1.Time          `json:"confirmedAt,omitempty"`
	Ready       *v1alpha1.Count       `json:"ready,omitempty"` // listed resources
	Pods        *v1alpha1.Count       `json:"pods,omitempty"`
	Type        v1alpha1.WorkloadType `json:"workloadType"`
	ID          int64                 `json:"workloadInstanceId"`
	// IDText is the same ID. JavaScript and jq 1.6 round a number beyond 2^53.
	IDText  string      `json:"workloadInstanceIdString"`
	Created metav1.Time `json:"created,omitzero"`

	Conditions []metav1.Condition        `json:"conditions,omitempty"`
	Delivery   v1alpha1.DeliveryStatus   `json:"delivery,omitzero"`
	Resources  []v1alpha1.ResourceStatus `json:"resources,omitempty"`
	Omitted    int64                     `json:"resourcesOmitted,omitempty"`

	lastWords   string       // the last status with its cause, if the agent does not report
	lastSince   *metav1.Time // the start of the last status, if the agent does not report
	agentSilent bool         // the agent reports on no workload
}

// statusOf returns the status of a ThreeportWorkload. A missing status is Unknown, and one about an earlier spec is not
// Healthy.
func statusOf(wl *v1alpha1.ThreeportWorkload) workloadStatus {
	st := &wl.Status
	s := workloadStatus{
		Name: wl.Name, Namespaces: namespacesOf(wl), Status: health.Status(st.Health), Reason: st.Reason, Message: st.Message,
		Since: st.HealthSince, CauseSince: st.CauseSince, NotHealthySince: st.NotHealthySince,
		Ready: st.ResourceCount, Pods: st.PodCount, Type: wl.Spec.WorkloadType, ID: wl.Spec.WorkloadInstanceID,
		IDText:  strconv.FormatInt(wl.Spec.WorkloadInstanceID, 10),
		Created: wl.CreationTimestamp, Conditions: st.Conditions, Delivery: st.Delivery, Resources: st.Resources,
		Omitted: st.ResourcesOmitted, ConfirmedAt: st.ConfirmedAt,
	}
	if slices.Contains(wl.Finalizers, v1alpha1.Finalizer) {
		s.DeletionRequested = wl.DeletionTimestamp
	}
	if s.Ready == nil && len(st.Resources) > 0 { // written by an agent of an earlier version
		s.Ready = count(st.Resources)
	}
	if s.Message == "" { // an earlier version of the agent wrote both into one field
		s.Reason, s.Message, _ = strings.Cut(s.Reason, ": ")
	}
	s.overrideFor(wl)
	return s
}

// overrideFor replaces a verdict that is missing, or that is not about the current workload.
func (s *workloadStatus) overrideFor(wl *v1alpha1.ThreeportWorkload) {
	st := &wl.Status
	judged := meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionHealthy)
	switch {
	case isUnseen(wl):
		s.override(health.Unknown, "NotSeen", "the agent has not reported on it yet: is the agent running?")
	case st.Health == "":
		s.override(health.Unknown, "NotJudged", "the agent has not assessed it yet")
	case !slices.Contains(statuses, s.Status):
		s.override(health.Unknown, "NotUnderstood", fmt.Sprintf("the agent says %q, which this version of the plugin does not know", s.Status))
	case s.Status == health.Healthy && !wl.DeletionTimestamp.IsZero():
		s.override(health.Reconciling, "Terminating", "the ThreeportWorkload is being deleted")
	case s.Status == health.Healthy && st.ObservedGeneration < wl.Generation:
		s.override(health.Reconciling, "SpecNotObserved", "the agent has not seen the latest spec yet")
	case s.Status == health.Healthy && judged != nil && judged.Status != metav1.ConditionTrue:
		s.override(health.Unknown, cmp.Or(judged.Reason, "NotJudged"), cmp.Or(judged.Message, "the agent has not assessed it yet"))
	}
}

// namespacesOf returns the namespaces of the listed objects, sorted. The status has those that the spec omits.
func namespacesOf(wl *v1alpha1.ThreeportWorkload) []string {
	out := []string{}
	for _, r := range wl.Spec.WorkloadResourceInstances {
		out = append(out, r.Namespace)
	}
	for i := range wl.Status.Resources {
		out = append(out, wl.Status.Resources[i].Namespace)
	}
	return namespaceSet(out)
}

// namespaceSet sorts namespaces, and removes duplicates and the empty namespace of cluster-scoped objects.
func namespaceSet(all []string) []string {
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(namespace string) bool { return namespace == "" })
}

// namespace summarizes the namespaces: "shop +2".
func (s *workloadStatus) namespace() cell {
	switch n := len(s.Namespaces); n {
	case 0:
		return cell{none, dim}
	case 1:
		return cell{s.Namespaces[0], plain}
	default:
		return cell{fmt.Sprintf("%s +%d", s.Namespaces[0], n-1), plain}
	}
}

// override replaces a verdict, and its start.
func (s *workloadStatus) override(status health.Status, reason, message string) {
	s.Status, s.Reason, s.Message, s.Since, s.CauseSince, s.NotHealthySince = status, reason, message, nil, nil, nil
}

func count(resources []v1alpha1.ResourceStatus) *v1alpha1.Count {
	c := &v1alpha1.Count{}
	for i := range resources {
		c.Total++
		if resources[i].Health == string(health.Healthy) {
			c.Healthy++
		}
	}
	return c
}

// cause returns in one line why a workload is not Healthy.
func (s *workloadStatus) cause() string {
	switch {
	case s.Message == "":
		return s.Reason
	case s.Reason == "" || strings.Contains(s.Message, s.Reason):
		return s.Message
	}
	return s.Reason + ": " + s.Message
}

// delivered summarizes the delivery of reports in a word or two.
func (s *workloadStatus) delivered() cell {
	c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionDelivered)
	switch {
	case c == nil, s.LastStatus != "":
		return cell{none, dim}
	case s.Delivery.Pending > 0 && c.Reason != "Pending": // the control plane refuses them
		return cell{fmt.Sprintf("%s: %d pending", c.Reason, s.Delivery.Pending), yellow}
	case s.Delivery.Pending > 0:
		return cell{fmt.Sprintf("%d pending", s.Delivery.Pending), yellow}
	case s.Delivery.Rejected > 0:
		return cell{fmt.Sprintf("%d rejected", s.Delivery.Rejected), yellow}
	case s.Delivery.Dropped > 0:
		return cell{fmt.Sprintf("%d dropped", s.Delivery.Dropped), yellow}
	case c.Status == metav1.ConditionFalse: // the control plane removed the row
		return cell{c.Reason, yellow}
	case c.Status != metav1.ConditionTrue:
		return cell{string(c.Status), yellow}
	}
	return cell{"True", plain}
}

// condition returns the status of a condition in a word, in the past if the agent does not report.
func (s *workloadStatus) condition(name string) cell {
	c := meta.FindStatusCondition(s.Conditions, name)
	switch {
	case c == nil:
		return cell{none, dim}
	case s.LastStatus != "":
		return cell{s.tense() + string(c.Status), dim}
	case c.Status != metav1.ConditionTrue:
		return cell{string(c.Status), yellow}
	}
	return cell{string(c.Status), plain}
}

// tense is before a status that the agent reported: "was " if it no longer reports.
func (s *workloadStatus) tense() string {
	if s.LastStatus != "" {
		return "was "
	}
	return ""
}

// fraction shows a count: "3/4".
func fraction(c *v1alpha1.Count) cell {
	switch {
	case c == nil:
		return cell{none, dim}
	case c.Healthy < c.Total:
		return cell{fmt.Sprintf("%d/%d", c.Healthy, c.Total), yellow}
	}
	return cell{fmt.Sprintf("%d/%d", c.Healthy, c.Total), plain}
}

// since returns the start of the status; zero if unknown.
func (s *workloadStatus) since() time.Time {
	if s.Since == nil {
		return time.Time{}
	}
	return s.Since.Time
}

// worstFirst sorts workloads by status, the worst first, then by the last status if the agent does not report. Those with an equal
// status are sorted by its start, the newest first, unless they are or were Healthy.
func worstFirst(all []workloadStatus) {
	slices.SortStableFunc(all, func(a, b workloadStatus) int {
		lastA, sinceA := a.last()
		lastB, sinceB := b.last()
		byTime := 0
		if lastA != health.Healthy {
			byTime = sinceB.Compare(sinceA)
		}
		return cmp.Or(
			cmp.Compare(rank(a.Status), rank(b.Status)),
			cmp.Compare(rank(lastA), rank(lastB)),
			byTime,
			cmp.Compare(a.Name, b.Name))
	})
}

// last returns the last reported status and its start; the present ones if the agent reports.
func (s *workloadStatus) last() (status health.Status, since time.Time) {
	switch {
	case s.LastStatus == "":
		return s.Status, s.since()
	case s.lastSince == nil:
		return s.LastStatus, time.Time{}
	}
	return s.LastStatus, s.lastSince.Time
}

// statusTable returns the table of all workloads. A cause that does not fit is below its workload.
func statusTable(all []workloadStatus, now time.Time, wide bool) *table {
	t := &table{}
	titles := []string{"NAME", "NAMESPACE", "STATUS", "SINCE", "READY", "PODS", "DELIVERED"}
	if wide {
		titles = append(titles, "AGE", "WATCHING", "DURABLE", "TYPE", "INSTANCE")
	}
	t.wrapped = len(titles)
	t.header(append(titles, "CAUSE")...)
	for i := range all {
		s := &all[i]
		row := []cell{
			{s.Name, plain},
			s.namespace(),
			{string(s.Status), styleOf(s.Status)},
			{ago(s.since(), now), plain},
			fraction(s.Ready),
			fraction(s.Pods),
			s.delivered(),
		}
		if wide {
			row = append(row, cell{ago(s.Created.Time, now), plain}, s.condition(v1alpha1.ConditionWatching), s.condition(v1alpha1.ConditionDurable),
				cell{string(s.Type), plain}, cell{fmt.Sprint(s.ID), plain})
		}
		t.add(append(row, cell{s.cause(), plain})...)
	}
	return t
}
