package kubectl

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/health"
	"github.com/threeport/threeport-agent/internal/kubectl/wrap"
)

// fieldIndent is the width of the column of field names in the details of a workload.
const fieldIndent = len("CONFIRMED") + 2

// writeDetails writes one workload with the cause of its status. The cause is wrapped if a width is given.
func (s *workloadStatus) writeDetails(out io.Writer, p palette, now time.Time, o output, width int) error {
	head := &table{}
	field := func(name string, cells ...cell) { head.add(append([]cell{{name, bold}}, cells...)...) }
	field("NAME", cell{text: s.Name})
	field("STATUS", cell{s.statusText(now), styleOf(s.Status)})
	if s.Reason != "" {
		field("REASON", cell{text: s.reasonText(now)})
	}
	name := "CAUSE"
	for _, line := range wrap.Lines(s.Message, width-fieldIndent) {
		field(name, cell{text: line})
		name = ""
	}
	name = "NEXT"
	for _, command := range s.nextCommands() {
		field(name, cell{text: command})
		name = ""
	}
	if s.Ready != nil {
		field("READY", fraction(s.Ready), cell{text: plural(int(s.Ready.Total), "resource")})
	}
	field("PODS", fraction(s.Pods))
	field("INSTANCE", cell{text: fmt.Sprintf("%s %d", s.Type, s.ID)})
	if s.ConfirmedAt != nil {
		field("CONFIRMED", cell{text: ago(s.ConfirmedAt.Time, now)})
	}
	field("AGE", cell{text: ago(s.Created.Time, now)})
	for i := range head.rows { // the values of fields are not aligned
		head.rows[i].cells = joined(head.rows[i].cells)
	}
	if err := head.write(out, p, "", 0); err != nil {
		return err
	}
	for _, part := range []struct {
		title string
		table *table
	}{
		{"CONDITIONS", s.conditions(now)},
		{resourcesTitle(s, o), s.resources(o, now)},
		{"DELIVERY", s.deliveries(now)},
	} {
		if len(part.table.rows) == 0 {
			continue
		}
		if _, err := fmt.Fprintln(out, "\n"+p.paint(bold, part.title+s.lastKnown())); err != nil {
			return err
		}
		if err := part.table.write(out, p, "  ", width); err != nil {
			return err
		}
	}
	return nil
}

// lastKnown is after the title of a part that the agent reported: since when it is the past, if the agent no longer reports.
func (s *workloadStatus) lastKnown() string {
	if s.LastStatus == "" {
		return ""
	}
	return ", last known at " + s.since().UTC().Format(time.RFC3339)
}

// nextCommands returns at most two commands that show more about a workload that is not Healthy.
func (s *workloadStatus) nextCommands() []string {
	switch {
	case s.LastStatus != "":
		return []string{freshCommand + " " + s.Name}
	case s.Status == health.Healthy:
		return nil
	}
	commands := []string{"kubectl threeport tree " + s.Name}
	for i := range s.Resources {
		if command := logsCommand(&s.Resources[i]); command != "" {
			return append(commands, command)
		}
	}
	return commands
}

// logsCommand returns the command for the logs of a resource whose containers restart. It is empty if the resource has Healthy Pods,
// because kubectl would choose one of them.
func logsCommand(r *v1alpha1.ResourceStatus) string {
	kinds := []string{"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "Pod"}
	if r.State != v1alpha1.ResourcePresent || !health.IsSameCause(r.Reason, "CrashLoopBackOff") || !slices.Contains(kinds, r.Kind) {
		return ""
	}
	if r.Pods == nil || r.Pods.Healthy > 0 {
		return ""
	}
	return fmt.Sprintf("kubectl -n %s logs %s/%s --previous", r.Namespace, strings.ToLower(r.Kind), r.Name)
}

// joined joins all cells but the first.
func joined(cells []cell) []cell {
	all := cell{style: cells[1].style}
	for i, c := range cells[1:] {
		if i > 0 {
			all.text += " "
		}
		all.text += c.text
	}
	return []cell{cells[0], all}
}

// statusText is the status with its start, and when the workload was last Healthy if that is earlier.
func (s *workloadStatus) statusText(now time.Time) string {
	since := s.since()
	if since.IsZero() {
		return string(s.Status)
	}
	text := string(s.Status) + startText(since, now)
	if began := s.NotHealthySince; began != nil && began.Before(s.Since) {
		text += fmt.Sprintf("; not Healthy since %s", began.UTC().Format(time.RFC3339))
	}
	return text
}

// reasonText is the reason, with its start if that is not the start of the status.
func (s *workloadStatus) reasonText(now time.Time) string {
	if c := s.CauseSince; c != nil && !c.Equal(s.Since) {
		return s.Reason + startText(c.Time, now)
	}
	return s.Reason
}

func startText(since, now time.Time) string {
	return fmt.Sprintf(" for %s, since %s", ago(since, now), since.UTC().Format(time.RFC3339))
}

func (s *workloadStatus) conditions(now time.Time) *table {
	t := &table{wrapped: 4, whole: true}
	for i := range s.Conditions {
		c := &s.Conditions[i]
		t.add(cell{text: c.Type}, s.condition(c.Type), cell{c.Reason, plain}, cell{ago(c.LastTransitionTime.Time, now), dim}, cell{c.Message, plain})
	}
	return t
}

func resourcesTitle(s *workloadStatus, o output) string {
	if o.value == outputWide {
		return "RESOURCES"
	}
	unhealthy := 0
	for i := range s.Resources {
		if !isHealthy(&s.Resources[i]) {
			unhealthy++
		}
	}
	return fmt.Sprintf("NOT HEALTHY: %d of %s", unhealthy, many(len(s.Resources)+int(s.Omitted), "resource"))
}

func isHealthy(r *v1alpha1.ResourceStatus) bool {
	return r.Health == string(health.Healthy) && r.State == v1alpha1.ResourcePresent
}

// maxNotHealthy limits the resources in the details of a workload, unless they are wide.
const maxNotHealthy = 20

// resources returns the table of the listed resources, the worst first. Only the wide table has Healthy ones.
func (s *workloadStatus) resources(o output, now time.Time) *table {
	t := &table{wrapped: 5, whole: true}
	all := slices.Clone(s.Resources)
	slices.SortStableFunc(all, func(a, b v1alpha1.ResourceStatus) int {
		return cmp.Compare(rank(health.Status(a.Health)), rank(health.Status(b.Health)))
	})
	if o.value != outputWide {
		all = slices.DeleteFunc(all, func(r v1alpha1.ResourceStatus) bool { return isHealthy(&r) })
	}
	if o.value == outputWide {
		t.header("STATUS", "SINCE", "OBJECT", "PODS", "OPERATION", "VERSION", "REASON", "CAUSE")
	}
	shown := len(all)
	if shown > maxNotHealthy && o.value != outputWide {
		shown = maxNotHealthy
	}
	for i := range all[:shown] {
		r := &all[i]
		status := cmp.Or(health.Status(r.Health), health.Unknown)
		cause := r.Message
		if r.State != v1alpha1.ResourcePresent && string(r.State) != r.Reason {
			cause = strings.Trim(string(r.State)+": "+cause, ": ")
		}
		since := none
		if r.HealthSince != nil {
			since = ago(r.HealthSince.Time, now)
		}
		row := []cell{
			{s.tense() + string(status), styleOf(status)},
			{since, dim},
			{subject(r.Kind, r.Namespace, r.Name), plain},
			fraction(r.Pods),
		}
		if o.value == outputWide {
			row = append(row, cell{cmp.Or(r.LastOperation, none), dim}, cell{cmp.Or(r.ReportedResourceVersion, none), dim})
		}
		t.add(append(row, cell{r.Reason, plain}, cell{cause, plain})...)
	}
	if more := len(all) - shown; more > 0 {
		t.add(cell{"…", dim}, cell{}, cell{"and " + many(more, "other resource") + " (-o wide)", dim})
	}
	if s.Omitted > 0 && o.value == outputWide {
		t.add(cell{"…", dim}, cell{}, cell{"and " + many(int(s.Omitted), "Healthy resource") + " omitted from the status", dim})
	}
	return t
}

// subject returns the name of an object: "Deployment app-0/web".
func subject(kind, namespace, name string) string {
	if namespace != "" {
		name = namespace + "/" + name
	}
	return strings.TrimSpace(kind + " " + name)
}

// deliveries returns the table of undelivered reports; empty if all are delivered.
func (s *workloadStatus) deliveries(now time.Time) *table {
	t := &table{wrapped: 2, whole: true}
	d := s.Delivery
	if d.Pending > 0 {
		text := many(int(d.Pending), "report")
		if d.PendingSince != nil {
			text += ", the oldest for " + ago(d.PendingSince.Time, now)
		}
		t.add(cell{"pending", yellow}, cell{text: text}, cell{text: d.LastError})
	}
	if d.Rejected > 0 {
		t.add(cell{"rejected", yellow}, cell{text: many(int(d.Rejected), "report")},
			cell{text: "sent again when the object changes, or the annotation " + v1alpha1.AnnotationRetryRejected + " gets another value"})
	}
	for _, r := range d.Rejections {
		t.add(cell{}, cell{text: r.Report}, cell{text: r.Reason})
	}
	if d.Dropped > 0 {
		t.add(cell{"dropped", yellow}, cell{text: many(int(d.Dropped), "Event")}, cell{text: "pending Events exceeded --state-max-bytes"})
	}
	return t
}
