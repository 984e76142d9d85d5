package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/controlplane"
)

// IDs as the control plane gives them: beyond 2^53, and different only where a float does not tell.
const (
	webID      = 1<<60 + 1
	resourceID = 1<<60 + 2
	chartID    = 1<<60 + 3
)

// agreement is a cluster, and a control plane that was told exactly what is in it: a Deployment "web" with a
// pod, the pod of a chart, known by its label, and an object of nobody.
func agreement() ([]deployed, history, truth) {
	workloads := []deployed{
		{
			workload:   workload{"web", v1alpha1.WorkloadTypeInstance, "Healthy", []string{"Scheduled"}},
			instanceID: webID,
			resources: []v1alpha1.WorkloadResourceInstance{
				{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "demo", Name: "web", ThreeportID: resourceID},
			},
		},
		{
			workload:   workload{"chart", v1alpha1.WorkloadTypeHelmInstance, "Healthy", []string{"Started"}},
			instanceID: chartID,
		},
	}
	at := metav1.NewTime(time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC))
	micro := metav1.NewMicroTime(at.Add(123456 * time.Microsecond))
	held := truth{
		objects: objects(
			object{kind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, namespace: "demo", name: "web", uid: "deployment", resourceVersion: "7"},
			object{kind: schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}, namespace: "demo", name: "web-1", uid: "set", owners: []types.UID{"deployment"}},
			object{kind: schema.GroupKind{Kind: "Pod"}, namespace: "demo", name: "web-1-a", uid: "pod", owners: []types.UID{"set"}},
			object{
				kind: schema.GroupKind{Kind: "Pod"}, namespace: "demo", name: "hook", uid: "hook",
				labels: map[string]string{v1alpha1.LabelHelmWorkloadInstance: fmt.Sprint(int64(chartID))},
			},
			object{kind: schema.GroupKind{Kind: "Pod"}, namespace: "demo", name: "stranger", uid: "stranger"},
		),
		events: []corev1.Event{
			event("e1", "ScalingReplicaSet", "Deployment", "web", "deployment", func(ev *corev1.Event) { ev.LastTimestamp = at }),
			event("e2", "Scheduled", "Pod", "web-1-a", "pod", func(ev *corev1.Event) { ev.EventTime = micro }),
			event("e3", "Started", "Pod", "hook", "hook", func(ev *corev1.Event) { ev.LastTimestamp = at }),
			event("e4", "Started", "Pod", "stranger", "stranger", func(ev *corev1.Event) { ev.LastTimestamp = at }),
		},
	}
	said := history{
		statuses: map[string]string{"web": "Healthy", "chart": "Healthy"},
		resources: map[int64]controlplane.WorkloadResourceInstance{resourceID: {
			ID:            new(int64(resourceID)),
			LastOperation: new(controlplane.OperationModified),
			RuntimeDefinition: []byte(`{"kind":"Deployment","metadata":
				{"namespace":"demo","name":"web","uid":"deployment","resourceVersion":"7"}}`),
		}},
		events: []controlplane.WorkloadEvent{
			row("e1", "ScalingReplicaSet", "about web", at.Time),
			row("e2", "Scheduled", "Pod web-1-a: about web-1-a", micro.Time),
			{
				RuntimeEventUID: new("e3"), Type: new("Normal"), Reason: new("Started"), Message: new("Pod hook: about hook"),
				Timestamp: &at.Time, HelmWorkloadInstanceID: new(int64(chartID)),
			},
		},
	}
	return workloads, said, held
}

func objects(list ...object) map[types.UID]object {
	out := map[types.UID]object{}
	for _, obj := range list {
		out[obj.uid] = obj
	}
	return out
}

func event(uid types.UID, reason, kind, name string, involved types.UID, setTime func(*corev1.Event)) corev1.Event {
	ev := corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{UID: uid},
		InvolvedObject: corev1.ObjectReference{Kind: kind, Name: name, UID: involved},
		Type:           corev1.EventTypeNormal, Reason: reason, Message: "about " + name,
	}
	setTime(&ev)
	return ev
}

func row(uid, reason, message string, at time.Time) controlplane.WorkloadEvent {
	return controlplane.WorkloadEvent{
		RuntimeEventUID: &uid, Type: new("Normal"), Reason: &reason, Message: &message, Timestamp: &at,
		WorkloadInstanceID: new(int64(webID)), WorkloadResourceInstanceID: new(int64(resourceID)),
	}
}

func TestCheckAcceptsAgreement(t *testing.T) {
	workloads, said, held := agreement()
	if unmet := check(workloads, said, held); len(unmet) > 0 {
		t.Errorf("the control plane was told exactly what is in the cluster, got\n%s", strings.Join(unmet, "\n"))
	}
}

func TestCheckReports(t *testing.T) {
	cases := map[string]struct {
		change func(*history, *truth)
		want   []string // parts of the one sentence that is expected
	}{
		"another status": {
			func(said *history, _ *truth) { said.statuses["web"] = "Reconciling" },
			[]string{"web: expected the agent to report the status Healthy", `"Reconciling"`},
		},
		"a Helm workload without a status": {
			func(said *history, _ *truth) { said.statuses["chart"] = "" },
			[]string{"chart: expected the agent to report the status Healthy", `""`},
		},
		"a missing row of a resource": {
			func(said *history, _ *truth) { delete(said.resources, resourceID) },
			[]string{"web: expected the agent to report Deployment web, the API has no row 1152921504606846978"},
		},
		"a resource that was not reported": {
			func(said *history, _ *truth) {
				edit(said, func(r *controlplane.WorkloadResourceInstance) { r.LastOperation = nil })
			},
			[]string{"Deployment web, its row has no last operation"},
		},
		"a resource that counts as deleted": {
			func(said *history, _ *truth) {
				edit(said, func(r *controlplane.WorkloadResourceInstance) { r.LastOperation = new(controlplane.OperationDeleted) })
			},
			[]string{"Deployment web as ADDED or MODIFIED", "DELETED"},
		},
		"an old version of a resource": {
			func(_ *history, held *truth) { update(held, "deployment", func(o *object) { o.resourceVersion = "8" }) },
			[]string{`Deployment web with resource version "8"`, `"7"`},
		},
		"a resource without its object": {
			func(said *history, _ *truth) {
				edit(said, func(r *controlplane.WorkloadResourceInstance) { r.RuntimeDefinition = nil })
			},
			[]string{"Deployment web with its object"},
		},
		"an object that is not there": {
			func(_ *history, held *truth) { update(held, "deployment", func(o *object) { o.gone = true }) },
			[]string{"web: expected the cluster to have Deployment web"},
		},
		"a missing Event": {
			func(said *history, _ *truth) { said.events = said.events[1:] },
			[]string{"web: expected the agent to report Event ScalingReplicaSet of Deployment web (e1) once", "0 rows"},
		},
		"a missing Event of an object known by its label": {
			func(_ *history, held *truth) {
				held.events = append(held.events, event("e5", "Pulled", "Pod", "hook", "hook", func(ev *corev1.Event) {
					ev.LastTimestamp = metav1.Now()
				}))
			},
			[]string{"chart: expected the agent to report Event Pulled of Pod hook (e5) once", "0 rows"},
		},
		"a doubled Event": {
			func(said *history, _ *truth) { said.events = append(said.events, said.events[1]) },
			[]string{"web: expected the agent to report Event Scheduled of Pod web-1-a (e2) once", "2 rows"},
		},
		"an Event about an object of nobody": {
			func(said *history, _ *truth) {
				said.events = append(said.events, row("e4", "Started", "about stranger", time.Now()))
			},
			[]string{"web: expected the agent to report no Events but those about objects of workloads", "e4"},
		},
		"an Event that the cluster never had": {
			func(said *history, _ *truth) { said.events = append(said.events, row("e9", "Made", "up", time.Now())) },
			[]string{"web: expected the agent to report no Events but", "Made", "e9"},
		},
		"an Event with another time": {
			func(said *history, _ *truth) {
				said.events[1].Timestamp = new(said.events[1].Timestamp.Add(-time.Microsecond))
			},
			[]string{"Event Scheduled of Pod web-1-a (e2) with time 2026-07-01T12:00:00.123456Z", "12:00:00.123455Z"},
		},
		"an Event of the wrong resource": {
			func(said *history, _ *truth) { said.events[1].WorkloadResourceInstanceID = new(int64(resourceID + 1)) },
			[]string{"Event Scheduled of Pod web-1-a (e2) with resource instance 1152921504606846978", "has 1152921504606846979"},
		},
		"an Event that does not name its object": {
			func(said *history, _ *truth) { said.events[1].Message = new("about web-1-a") },
			[]string{"Event Scheduled of Pod web-1-a (e2) with message Pod web-1-a: about web-1-a"},
		},
		"a Secret's value in an answer": {
			func(said *history, _ *truth) { said.leaks = []string{"the answer to GET /v0/workload-events"} },
			[]string{"web: expected the agent to keep the Secret's value", "GET /v0/workload-events"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			workloads, said, held := agreement()
			c.change(&said, &held)
			expectOne(t, check(workloads, said, held), c.want)
		})
	}
}

func TestCheckReportsZeroTime(t *testing.T) {
	workloads, said, held := agreement()
	said.events[0].Timestamp = new(time.Time{})
	unmet := strings.Join(check(workloads, said, held), "\n")
	if want := "web: expected the agent to report Event ScalingReplicaSet of Deployment web (e1) with a time"; !strings.Contains(unmet, want) {
		t.Errorf("an Event has the zero time: expected %q, got\n%s", want, unmet)
	}
}

func TestCheckReportsMissingReason(t *testing.T) {
	workloads, said, held := agreement()
	workloads[0].reasons = []string{"BackOff"}
	expectOne(t, check(workloads, said, held), []string{"web: expected the agent to report an Event with the reason BackOff"})
}

func expectOne(t *testing.T, unmet, parts []string) {
	t.Helper()
	if len(unmet) != 1 {
		t.Fatalf("expected one sentence, got %d:\n%s", len(unmet), strings.Join(unmet, "\n"))
	}
	for _, part := range parts {
		if !strings.Contains(unmet[0], part) {
			t.Errorf("expected a sentence with %q, got\n%s", part, unmet[0])
		}
	}
}

func edit(said *history, change func(*controlplane.WorkloadResourceInstance)) {
	r := said.resources[resourceID]
	change(&r)
	said.resources[resourceID] = r
}

func update(held *truth, uid types.UID, change func(*object)) {
	obj := held.objects[uid]
	change(&obj)
	held.objects[uid] = obj
}
