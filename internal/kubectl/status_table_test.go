package kubectl

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/health"
)

// goldenWorkloads returns the workloads of testdata/input/workloads.yaml.
func goldenWorkloads(t *testing.T) []v1alpha1.ThreeportWorkload {
	t.Helper()
	data, err := os.ReadFile("testdata/input/workloads.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all []v1alpha1.ThreeportWorkload
	if err := yaml.UnmarshalStrict(data, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestStatusTable(t *testing.T) {
	all := statusesOf(goldenWorkloads(t), nil, goldenTime)
	for name, wide := range map[string]bool{"list.txt": false, "list-wide.txt": true} {
		var out bytes.Buffer
		if err := statusTable(all, goldenTime, wide).write(&out, false, "", 0); err != nil {
			t.Fatal(err)
		}
		golden(t, name, out.String())
	}
}

func TestWorstFirst_EqualStatus_LatestFaultFirst(t *testing.T) {
	at := func(minutes int) *metav1.Time {
		return &metav1.Time{Time: goldenTime.Add(-time.Duration(minutes) * time.Minute)}
	}
	all := []workloadStatus{
		{Name: "old", Status: health.Down, Since: at(60)},
		{Name: "b", Status: health.Healthy, Since: at(1)},
		{Name: "new", Status: health.Down, Since: at(1)},
		{Name: "a", Status: health.Healthy, Since: at(60)},
	}
	worstFirst(all)
	var names []string
	for _, s := range all {
		names = append(names, s.Name)
	}
	if want := []string{"new", "old", "a", "b"}; !slices.Equal(names, want) {
		t.Errorf("the order is %v, want %v", names, want)
	}
}

func TestWorstFirst_AgentNotReporting_ByLastStatus(t *testing.T) {
	stopped := &metav1.Time{Time: goldenTime.Add(-time.Hour)}
	before := func(hours int) *metav1.Time {
		return &metav1.Time{Time: stopped.Add(-time.Duration(hours) * time.Hour)}
	}
	all := []workloadStatus{
		{Name: "was-healthy", Status: health.Unknown, LastStatus: health.Healthy, Since: stopped},
		{Name: "never-seen", Status: health.Unknown},
		{Name: "was-starting", Status: health.Unknown, LastStatus: health.Reconciling, Since: stopped},
		{Name: "a-was-down-long", Status: health.Unknown, LastStatus: health.Down, Since: stopped, lastSince: before(2)},
		{Name: "was-down", Status: health.Unknown, LastStatus: health.Down, Since: stopped, lastSince: before(1)},
		{Name: "a-was-healthy-long", Status: health.Unknown, LastStatus: health.Healthy, Since: stopped, lastSince: before(9)},
		{Name: "down", Status: health.Down},
	}
	worstFirst(all)
	var names []string
	for _, s := range all {
		names = append(names, s.Name)
	}
	if want := []string{"down", "was-down", "a-was-down-long", "was-starting", "never-seen", "a-was-healthy-long", "was-healthy"}; !slices.Equal(names, want) {
		t.Errorf("the order is %v, want %v", names, want)
	}
}

// silentAgent returns workloads whose agent has no Lease and confirmed the last one 20 minutes ago.
func silentAgent() []v1alpha1.ThreeportWorkload {
	confirmed := func(name string, minutes int) v1alpha1.ThreeportWorkload {
		wl := v1alpha1.ThreeportWorkload{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(goldenTime.Add(-time.Hour))}}
		wl.Status.Health, wl.Status.ConfirmedAt = "Healthy", &metav1.Time{Time: goldenTime.Add(-time.Duration(minutes) * time.Minute)}
		return wl
	}
	all := []v1alpha1.ThreeportWorkload{confirmed("api", 24), confirmed("web", 20), confirmed("going", 22)}
	all = append(all, confirmed("db", 21))
	all[3].Status.Health, all[3].Status.Reason, all[3].Status.HealthSince = "Down", "Absent", &metav1.Time{Time: goldenTime.Add(-time.Hour)}
	all[1].Status.HealthSince = &metav1.Time{Time: goldenTime.Add(-30 * time.Minute)}
	all[1].Status.Health, all[1].Status.Reason, all[1].Status.Message = "Down", "Absent", "ConfigMap a/b does not exist"
	all[2].DeletionTimestamp, all[2].Finalizers = &metav1.Time{Time: goldenTime.Add(-15 * time.Minute)}, []string{v1alpha1.Finalizer}
	return all
}

func TestStatus_SilentAgentWithoutLease_IsOneMessage(t *testing.T) {
	var out bytes.Buffer
	o := &statusOptions{plugin: &plugin{now: func() time.Time { return goldenTime }}}
	if err := o.show(&out, statusesOf(silentAgent(), nil, goldenTime)); err != nil {
		t.Fatal(err)
	}
	golden(t, "list-silent.txt", out.String())
	if n := strings.Count(out.String(), "2026-01-31T11:40:00Z"); n != 1 {
		t.Errorf("the last confirmation is printed %d times, want 1:\n%s", n, out.String())
	}
}

// A workload without a status does not say whether the agent reports. Those of others do.
func TestStatus_NewWorkloadOfSilentAgent_IsOutdated(t *testing.T) {
	added := v1alpha1.ThreeportWorkload{ObjectMeta: metav1.ObjectMeta{Name: "new", CreationTimestamp: metav1.NewTime(goldenTime)}}
	o := &statusOptions{}
	for _, s := range statusesOf(append(silentAgent(), added), nil, goldenTime) {
		if s.Name == "new" && (o.code([]workloadStatus{s}) != exitOutdated || !strings.HasPrefix(s.Message, "agent not reporting since 2026-01-31T11:40:00Z")) {
			t.Errorf("the exit code is %d, and the message %q", o.code([]workloadStatus{s}), s.Message)
		}
	}
	if s := statusesOf([]v1alpha1.ThreeportWorkload{added}, nil, goldenTime)[0]; s.Reason != "NotSeen" {
		t.Errorf("alone it has the reason %s, want NotSeen", s.Reason)
	}
}

func TestStatus_StatusNotConfirmed_IsNotASilentAgent(t *testing.T) {
	list := silentAgent()
	list[1].Status.ConfirmedAt = &metav1.Time{Time: goldenTime.Add(-time.Minute)}
	all := statusesOf(list, nil, goldenTime)
	if sentence, _ := silence(all, goldenTime); sentence != "" {
		t.Errorf("printed %q, but the agent confirmed a status a minute ago", sentence)
	}
	for _, s := range all {
		if s.Name == "api" && !strings.HasPrefix(s.Message, "agent not reporting since 2026-01-31T11:36:00Z; last status: Healthy") {
			t.Errorf("the status of api has the message %q, want its own confirmation", s.Message)
		}
	}
}

func TestNamespacesOf(t *testing.T) {
	wl := &v1alpha1.ThreeportWorkload{}
	wl.Spec.WorkloadResourceInstances = []v1alpha1.WorkloadResourceInstance{{Namespace: "shop"}, {}, {Namespace: "shop"}, {Namespace: "db"}}
	wl.Status.Resources = []v1alpha1.ResourceStatus{{Namespace: "shop"}, {Namespace: "default"}, {}}
	for _, tt := range []struct {
		reason   string
		workload *v1alpha1.ThreeportWorkload
		want     []string
		text     string
	}{
		{"the status has the namespaces that the spec omits", wl, []string{"db", "default", "shop"}, "db +2"},
		{"only cluster-scoped objects", &v1alpha1.ThreeportWorkload{}, []string{}, "-"},
	} {
		s := statusOf(tt.workload)
		if !slices.Equal(s.Namespaces, tt.want) || s.Namespaces == nil {
			t.Errorf("%s: the namespaces are %#v, want %q", tt.reason, s.Namespaces, tt.want)
		}
		if got := s.namespace().text; got != tt.text {
			t.Errorf("%s: the column has %q, want %q", tt.reason, got, tt.text)
		}
	}
}

// longCause is the cause of a chain that does not fit into a line of 160 characters.
const longCause = "5 pods ImagePullBackOff: image registry.example.com/shop/app:9 cannot be pulled: it does not exist, since 2026-01-31T11:42Z " +
	"→ ReplicaSet web-bc7476686 → Deployment web has 0 of 5 replicas ready; 2 other resources are not Healthy"

func TestStatusTable_LongCause_IsBelowItsWorkload(t *testing.T) {
	count := &v1alpha1.Count{Total: 5}
	all := []workloadStatus{
		{Name: "web", Namespaces: []string{"shop"}, Status: health.Down, Reason: "ImagePullBackOff", Message: longCause, Ready: count, Pods: count},
		{Name: "api", Namespaces: []string{"a", "b", "c"}, Status: health.Down, Reason: "Absent", Message: "gone"},
		{Name: "endless", Status: health.Down, Message: longCause + "; " + longCause + "; " + longCause},
		{Name: "image", Status: health.Down, Message: "5 pods ErrImagePull: " + strings.Repeat("a1b2c3d4", 25)},
	}
	for width, name := range map[int]string{80: "list-80.txt", 160: "list-160.txt", 0: "list-0.txt"} {
		var out bytes.Buffer
		if err := statusTable(all, goldenTime, false).write(&out, false, "", width); err != nil {
			t.Fatal(err)
		}
		golden(t, name, out.String())
		text := strings.Join(strings.Fields(out.String()), " ")
		if !strings.Contains(text, longCause) {
			t.Errorf("width %d: the cause is cut:\n%s", width, out.String())
		}
		for line := range strings.Lines(out.String()) {
			if n := len([]rune(strings.TrimSuffix(line, "\n"))); width > 0 && n > width {
				t.Errorf("a line has %d characters on a terminal of %d: %s", n, width, line)
			}
		}
	}
}

func TestStatusTable_FitsTheTerminal(t *testing.T) {
	for _, width := range []int{20, 60, 100} {
		var out bytes.Buffer
		if err := statusTable(statusesOf(goldenWorkloads(t), nil, goldenTime), goldenTime, false).write(&out, false, "", width); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > width {
				t.Errorf("a line has %d characters on a terminal of %d: %s", n, width, line)
			}
		}
	}
}

func TestStatusTable_Colours(t *testing.T) {
	var with, without bytes.Buffer
	for out, p := range map[*bytes.Buffer]palette{&with: true, &without: false} {
		if err := statusTable(statusesOf(goldenWorkloads(t), nil, goldenTime), goldenTime, false).write(out, p, "", 0); err != nil {
			t.Fatal(err)
		}
	}
	text := with.String()
	for _, want := range []string{"\x1b[1;31mDown\x1b[0m", "\x1b[32mHealthy\x1b[0m", "\x1b[35mUnknown\x1b[0m"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %q", want, text)
		}
	}
	for _, s := range []style{bold, dim, red, yellow, green, cyan, purple} {
		text = strings.ReplaceAll(text, "\x1b["+string(s)+"m", "")
	}
	if text = strings.ReplaceAll(text, "\x1b[0m", ""); text != without.String() {
		t.Errorf("without its colours the table is\\n%q, want\\n%q", text, without.String())
	}
}

func TestWriteDetails(t *testing.T) {
	for _, s := range statusesOf(goldenWorkloads(t), nil, goldenTime) {
		switch s.Name {
		case "web", "api", "old-agent":
		default:
			continue
		}
		for _, format := range []string{outputText, outputWide} {
			var out bytes.Buffer
			if err := s.writeDetails(&out, false, goldenTime, output{value: format}, 0); err != nil {
				t.Fatal(err)
			}
			golden(t, strings.TrimSuffix("detail-"+s.Name+"-"+format, "-")+".txt", out.String())
		}
	}
}

func TestWriteDetails_LongCauseOfAResource_IsNotCut(t *testing.T) {
	cause, _, _ := strings.Cut(longCause, ";")
	s := workloadStatus{Name: "web", Status: health.Down, Resources: []v1alpha1.ResourceStatus{
		{Kind: "Deployment", Namespace: "shop", Name: "web", Health: "Down", State: v1alpha1.ResourcePresent, Reason: "ImagePullBackOff", Message: cause},
	}}
	for _, width := range []int{80, 160} {
		var out bytes.Buffer
		if err := s.writeDetails(&out, false, goldenTime, output{}, width); err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(strings.Fields(out.String()), " "); !strings.Contains(text, cause) || !strings.Contains(text, "1 of 1 resource ") {
			t.Errorf("width %d: the cause is cut, or the resource is not counted:\n%s", width, out.String())
		}
	}
}

// At any width, the details and the list name the reason of undelivered reports, and the details the instance.
func TestStatus_UndeliveredReports_ReasonIsNotCut(t *testing.T) {
	const refused = "the control plane has no row of the WorkloadInstance 877588458330128385: create it, or delete the ThreeportWorkload " +
		"after its controller has removed the objects, and read the runbook"
	s := workloadStatus{
		Name: "web", Status: health.Healthy,
		Conditions: []metav1.Condition{{
			Type: v1alpha1.ConditionDelivered, Status: metav1.ConditionFalse, Reason: "UnknownInstance", Message: "9 reports are not delivered yet: " + refused,
		}},
		Delivery: v1alpha1.DeliveryStatus{Pending: 9, PendingSince: &metav1.Time{Time: goldenTime.Add(-time.Hour)}, LastError: refused},
	}
	for _, width := range []int{40, 80, 160} {
		var out bytes.Buffer
		if err := s.writeDetails(&out, false, goldenTime, output{}, width); err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(strings.Fields(out.String()), " "); strings.Count(text, refused) != 2 {
			t.Errorf("width %d: the reason is cut in the condition or under DELIVERY:\n%s", width, out.String())
		}
	}
	if got := s.delivered().text; got != "UnknownInstance: 9 pending" {
		t.Errorf("the list has %q under DELIVERED", got)
	}
	s.Conditions[0].Reason = "Pending"
	if got := s.delivered().text; got != "9 pending" {
		t.Errorf("without a refusal, the list has %q under DELIVERED", got)
	}
}

// The details of a silent agent are in the past.
func TestWriteDetails_SilentAgent_ConditionsAreThePast(t *testing.T) {
	list := silentAgent()
	for i, typ := range []string{v1alpha1.ConditionHealthy, v1alpha1.ConditionDelivered} {
		list[1].Status.Conditions = append(list[1].Status.Conditions, metav1.Condition{
			Type: typ, Status: []metav1.ConditionStatus{"False", "True"}[i], Reason: "A", LastTransitionTime: metav1.NewTime(goldenTime.Add(-time.Hour)),
		})
	}
	list[1].Status.Resources = []v1alpha1.ResourceStatus{{Kind: "ConfigMap", Namespace: "a", Name: "b", Health: "Down", State: v1alpha1.ResourceAbsent, Reason: "Absent"}}
	var out bytes.Buffer
	all := statusesOf(list, nil, goldenTime)
	if err := all[0].writeDetails(&out, false, goldenTime, output{}, 0); err != nil {
		t.Fatal(err)
	}
	golden(t, "detail-silent.txt", out.String())
}

func TestWriteDetails_ManyResources_AreBounded(t *testing.T) {
	s := workloadStatus{Name: "web", Status: health.Down}
	for i := range maxNotHealthy + 2 {
		since := &metav1.Time{Time: goldenTime.Add(-time.Duration(i) * time.Hour)}
		s.Resources = append(s.Resources, v1alpha1.ResourceStatus{
			Kind: "ConfigMap", Name: fmt.Sprintf("c%02d", i), Health: "Down", HealthSince: since, State: v1alpha1.ResourceAbsent, Reason: "Absent",
		})
	}
	for _, tt := range []struct {
		format   string
		has, not string
	}{
		{outputText, "…           and 2 other resources (-o wide)", "c20"},
		{outputWide, "21h    ConfigMap c21  -     -          -        Absent", "other resource"},
	} {
		var out bytes.Buffer
		if err := s.writeDetails(&out, false, goldenTime, output{value: tt.format}, 0); err != nil {
			t.Fatal(err)
		}
		if text := out.String(); !strings.Contains(text, tt.has) || strings.Contains(text, tt.not) || !strings.Contains(text, "ConfigMap c02") {
			t.Errorf("printed\n%s\nwant %q, and not %q", text, tt.has, tt.not)
		}
	}
}

func TestNextCommands(t *testing.T) {
	resource := func(reason string, pods *v1alpha1.Count) v1alpha1.ResourceStatus {
		return v1alpha1.ResourceStatus{
			Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web", State: v1alpha1.ResourcePresent, Health: "Down", Reason: reason, Pods: pods,
		}
	}
	none, some := &v1alpha1.Count{Total: 2}, &v1alpha1.Count{Total: 2, Healthy: 1}
	tree := "kubectl threeport tree web"
	for _, tt := range []struct {
		reason string
		status workloadStatus
		want   []string
	}{
		{"Healthy", workloadStatus{Status: health.Healthy}, nil},
		{"nothing more is known", workloadStatus{Status: health.Down}, []string{tree}},
		{"the agent is silent", workloadStatus{Status: health.Unknown, LastStatus: health.Down}, []string{"kubectl threeport status --fresh web"}},
		{
			"all pods crash",
			workloadStatus{Status: health.Down, Resources: []v1alpha1.ResourceStatus{{}, resource("CrashLoopBackOff", none)}},
			[]string{tree, "kubectl -n shop logs deployment/web --previous"},
		},
		{
			"all pods run again after they ran out of memory",
			workloadStatus{Status: health.Down, Resources: []v1alpha1.ResourceStatus{resource("OOMKilled", none)}},
			[]string{tree, "kubectl -n shop logs deployment/web --previous"},
		},
		{
			"kubectl would show the logs of a Healthy pod",
			workloadStatus{Status: health.Down, Resources: []v1alpha1.ResourceStatus{resource("CrashLoopBackOff", some)}},
			[]string{tree},
		},
		{
			"no container has run",
			workloadStatus{Status: health.Down, Resources: []v1alpha1.ResourceStatus{resource("ImagePullBackOff", none)}},
			[]string{tree},
		},
	} {
		tt.status.Name = "web"
		if got := tt.status.nextCommands(); !slices.Equal(got, tt.want) {
			t.Errorf("%s: the commands are %q, want %q", tt.reason, got, tt.want)
		}
	}
}

func TestEncode(t *testing.T) {
	for name, o := range map[string]statusOptions{
		"status.json":     {output: output{value: outputJSON}},
		"status.yaml":     {output: output{value: outputYAML}},
		"status-web.json": {output: output{value: outputJSON}, name: "web"},
	} {
		all := statusesOf(goldenWorkloads(t), nil, goldenTime)
		if o.name != "" {
			all = all[:1]
		}
		var out bytes.Buffer
		if err := o.encode(&out, all); err != nil {
			t.Fatal(err)
		}
		golden(t, name, out.String())
	}
}

func TestStatus_UndecodableWorkload_IsAnError(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "odd"}, "status": map[string]any{"health": map[string]any{}},
	}}
	if _, err := decodeWorkload(u); exitCode(err) != exitCluster || !strings.Contains(err.Error(), "another version") {
		t.Errorf("decodeWorkload returned the error %v, want one about another version", err)
	}
}
