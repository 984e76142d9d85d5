package oracle

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// IDs like those of the control plane: beyond 2^53, so that a float64 cannot distinguish them.
const (
	webID      = 1<<60 + 1
	resourceID = 1<<60 + 2
	chartID    = 1<<60 + 3
)

var (
	at    = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	micro = at.Add(123456 * time.Microsecond)

	pods        = schema.GroupKind{Kind: "Pod"}
	services    = schema.GroupKind{Kind: "Service"}
	sets        = schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}
	deployments = schema.GroupKind{Group: "apps", Kind: "Deployment"}
)

// scene is a cluster with a control plane whose rows match it. The workload "web" has a Deployment with a pod. The workload
// "chart" has a Service, listed without its namespace, and a pod that has only the label of the chart. Other objects have no
// workload; one of them has a listed name and kind in another group.
type scene struct {
	*Oracle
	History
	workloads []Expected
}

func newScene() *scene {
	s := &scene{Oracle: newOracle()}
	s.workloads = []Expected{
		{Deployed: deployed("web", v1alpha1.WorkloadTypeInstance, webID,
			v1alpha1.WorkloadResourceInstance{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "demo", Name: "web", ThreeportID: resourceID})},
		{Deployed: deployed("chart", v1alpha1.WorkloadTypeHelmInstance, chartID,
			v1alpha1.WorkloadResourceInstance{Version: "v1", Kind: "ConfigMap", Namespace: "demo", Name: "chart"},
			v1alpha1.WorkloadResourceInstance{Version: "v1", Kind: "Service", Name: "chart"})},
	}
	s.watched[deployments] = func() bool { return true }
	s.sees(deployments, "web", "deployment", "7")
	s.sees(sets, "web-1", "set", "8", ownedBy("deployment"))
	s.sees(pods, "web-1-a", "pod", "9", ownedBy("set"))
	s.sees(services, "chart", "service", "10")
	s.sees(pods, "hook", "hook", "11", func(m *metav1.ObjectMeta) {
		m.Labels = map[string]string{v1alpha1.LabelHelmWorkloadInstance: strconv.Itoa(chartID)}
	})
	s.sees(schema.GroupKind{Group: "example.com", Kind: "Deployment"}, "web", "stranger", "12")
	s.happens("e1", "ScalingReplicaSet", "Deployment", "web", "deployment", at)
	s.happens("e2", "Scheduled", "Pod", "web-1-a", "pod", micro)
	s.happens("e3", "Started", "Pod", "hook", "hook", at)
	s.happens("e4", "Checked", "Service", "chart", "service", at)
	s.happens("e5", "Started", "Deployment", "web", "stranger", at)

	s.Resources = map[int64]threeport.WorkloadResourceInstance{resourceID: {
		LastOperation: new(threeport.OperationModified),
		RuntimeDefinition: []byte(`{"kind":"Deployment","metadata":
			{"namespace":"demo","name":"web","uid":"deployment","resourceVersion":"7"}}`),
	}}
	s.Events = []threeport.WorkloadEvent{
		row("e1", "ScalingReplicaSet", "about web", at),
		row("e2", "Scheduled", "Pod web-1-a: about web-1-a", micro),
		helmRow("e3", "Started", "Pod hook: about hook"),
		helmRow("e4", "Checked", "about chart"),
	}
	return s
}

func deployed(name string, typ v1alpha1.WorkloadType, id int64, resources ...v1alpha1.WorkloadResourceInstance) upstream.Deployed {
	return upstream.Deployed{Workload: upstream.Workload{Name: name, Type: typ}, InstanceID: id, Resources: resources}
}

func ownedBy(uids ...types.UID) func(*metav1.ObjectMeta) {
	return func(m *metav1.ObjectMeta) {
		for _, uid := range uids {
			m.OwnerReferences = append(m.OwnerReferences, metav1.OwnerReference{UID: uid})
		}
	}
}

func (s *scene) sees(kind schema.GroupKind, name string, uid types.UID, version string, more ...func(*metav1.ObjectMeta)) {
	m := metav1.ObjectMeta{Namespace: "demo", Name: name, UID: uid, ResourceVersion: version}
	for _, set := range more {
		set(&m)
	}
	s.recordObject(kind, &metav1.PartialObjectMetadata{ObjectMeta: m}, false)
}

// loses deletes an object.
func (s *scene) loses(uid types.UID) {
	last := s.objects[uid]
	m := metav1.ObjectMeta{Namespace: last.namespace, Name: last.name, UID: uid, ResourceVersion: "99"}
	ownedBy(last.owners...)(&m)
	s.recordObject(last.kind, cache.DeletedFinalStateUnknown{Obj: &metav1.PartialObjectMetadata{ObjectMeta: m}}, true)
}

// happens records an Event. Only those of events.k8s.io have fractions of a second; they have no lastTimestamp.
func (s *scene) happens(uid types.UID, reason, kind, name string, involved types.UID, when time.Time) {
	ev := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "demo", UID: uid, CreationTimestamp: metav1.NewTime(at.Add(time.Hour))},
		InvolvedObject: corev1.ObjectReference{Kind: kind, Namespace: "demo", Name: name, UID: involved},
		Type:           corev1.EventTypeNormal, Reason: reason, Message: "about " + name,
	}
	if when.Nanosecond() > 0 {
		ev.EventTime = metav1.NewMicroTime(when)
	} else {
		ev.FirstTimestamp, ev.LastTimestamp = metav1.NewTime(at.Add(-time.Hour)), metav1.NewTime(when)
	}
	s.recordEvent(ev, false)
}

func row(uid, reason, message string, when time.Time) threeport.WorkloadEvent {
	return threeport.WorkloadEvent{
		RuntimeEventUID: &uid, Type: new("Normal"), Reason: &reason, Message: &message, Timestamp: &when,
		WorkloadInstanceID: new(int64(webID)), WorkloadResourceInstanceID: new(int64(resourceID)),
	}
}

func helmRow(uid, reason, message string) threeport.WorkloadEvent {
	r := row(uid, reason, message, at)
	r.WorkloadInstanceID, r.WorkloadResourceInstanceID, r.HelmWorkloadInstanceID = nil, nil, new(int64(chartID))
	return r
}

// operation and define set fields of the row of the Deployment.
func (s *scene) operation(last string) {
	r := s.Resources[resourceID]
	r.LastOperation = &last
	s.Resources[resourceID] = r
}

func (s *scene) define(old, replacement string) {
	r := s.Resources[resourceID]
	r.RuntimeDefinition = []byte(strings.Replace(string(r.RuntimeDefinition), old, replacement, 1))
	s.Resources[resourceID] = r
}

func TestCheck_Accepts(t *testing.T) {
	cases := map[string]func(*scene){
		"exactly what is in the cluster": func(*scene) {},
		"a deleted object as DELETED": func(s *scene) {
			s.loses("deployment")
			s.operation(threeport.OperationDeleted)
		},
		"an Event about an object that was deleted": func(s *scene) {
			s.loses("pod")
			s.loses("set")
		},
		"a recreated object, and Events about both incarnations": func(s *scene) {
			s.loses("deployment")
			s.sees(deployments, "web", "again", "20")
			s.happens("e6", "ScalingReplicaSet", "Deployment", "web", "again", at)
			s.define(`"deployment","resourceVersion":"7"`, `"again","resourceVersion":"20"`)
			s.Events = append(s.Events, row("e6", "ScalingReplicaSet", "about web", at))
		},
		"a recreated object whose deletion was missed": func(s *scene) {
			s.sees(deployments, "web", "again", "20")
			s.define(`"deployment","resourceVersion":"7"`, `"again","resourceVersion":"20"`)
		},
		"no reports about a listed object that does not exist": func(s *scene) {
			s.workloads[0].Resources[0].Name, s.Events = "absent", s.Events[2:]
			s.operation("")
		},
		"nothing more of a released workload": func(s *scene) {
			s.workloads[0].Released = true
			s.sees(deployments, "web", "deployment", "20")
			s.happens("e6", "Scheduled", "Pod", "web-1-a", "pod", at)
		},
		"old Events of a released workload": func(s *scene) {
			s.workloads[0].Released = true
			s.happens("e2", "Scheduled", "Pod", "web-1-a", "pod", at.Add(time.Hour))
		},
		"a repeated Event with its newest time": func(s *scene) {
			ev := s.events["e2"].DeepCopy()
			ev.Series = &corev1.EventSeries{LastObservedTime: metav1.NewMicroTime(micro.Add(time.Minute))}
			s.recordEvent(ev, false)
			s.Events[1].Timestamp = new(micro.Add(time.Minute))
		},
		"an Event without any time of its own": func(s *scene) {
			s.events["e1"].FirstTimestamp, s.events["e1"].LastTimestamp = metav1.Time{}, metav1.Time{}
			s.Events[0].Timestamp = new(at.Add(time.Hour))
		},
		"the chain of owners before the label": func(s *scene) {
			s.sees(pods, "web-1-a", "pod", "9", ownedBy("set"), func(m *metav1.ObjectMeta) {
				m.Labels = map[string]string{v1alpha1.LabelHelmWorkloadInstance: strconv.Itoa(chartID)}
			})
		},
		"an owner's label": func(s *scene) {
			s.sees(pods, "child", "child", "13", ownedBy("hook"))
			s.happens("e6", "Started", "Pod", "child", "child", at)
			s.Events = append(s.Events, helmRow("e6", "Started", "Pod child: about child"))
		},
		"an owner cycle": func(s *scene) {
			s.sees(pods, "a", "a", "13", ownedBy("b"))
			s.sees(pods, "b", "b", "14", ownedBy("a"))
			s.happens("e6", "Started", "Pod", "a", "a", at)
		},
		"the first of two workloads that list an object": func(s *scene) {
			s.sees(pods, "web-1-a", "pod", "9", ownedBy("service", "deployment"))
		},
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			s := newScene()
			change(s)
			if differences := s.Check(s.History, s.workloads); len(differences) > 0 {
				t.Errorf("want no difference, got\n%s", strings.Join(differences, "\n"))
			}
		})
	}
}

func TestCheck_Differences(t *testing.T) {
	const event = "web: expected the agent to report Event Scheduled of Pod web-1-a (e2) "
	const resource = "web: expected the agent to report Deployment web"
	cases := map[string]struct {
		change func(*scene)
		want   string // the beginning of the one sentence that is expected
	}{
		"a missing row of a resource": {
			change: func(s *scene) { delete(s.Resources, resourceID) },
			want:   resource + ", the API has no row 1152921504606846978",
		},
		"a resource that was not reported": {
			change: func(s *scene) { s.operation("") },
			want:   resource + ` as ADDED or MODIFIED, its last operation is ""`,
		},
		"a resource that counts as deleted": {
			change: func(s *scene) { s.operation("DELETED") },
			want:   resource + ` as ADDED or MODIFIED, its last operation is "DELETED"`,
		},
		"a resource that was deleted": {
			change: func(s *scene) { s.loses("deployment") },
			want:   resource + ` as DELETED, its last operation is "MODIFIED"`,
		},
		"a resource that was never created": {
			change: func(s *scene) { s.workloads[0].Resources[0].Name, s.Events = "absent", s.Events[2:] },
			want:   `web: expected the agent to report Deployment absent as DELETED, its last operation is "MODIFIED"`,
		},
		"an old version of a resource": {
			change: func(s *scene) { s.sees(deployments, "web", "deployment", "8") },
			want:   resource + " with resource version 8, the API has 7",
		},
		"an earlier incarnation of a resource": {
			change: func(s *scene) { s.define(`"deployment"`, `"earlier"`) },
			want:   resource + " with uid deployment, the API has earlier",
		},
		"an object without its kind": {
			change: func(s *scene) { s.define(`"Deployment"`, `""`) },
			want:   resource + " with kind Deployment, the API has ",
		},
		"an object in another namespace": {
			change: func(s *scene) { s.define(`"demo"`, `"other"`) },
			want:   resource + " with namespace demo, the API has other",
		},
		"a resource without its object": {
			change: func(s *scene) { s.define("{", "") },
			want:   resource + " with its object, the runtime definition is not valid",
		},
		"a kind that the oracle does not watch": {
			change: func(s *scene) { delete(s.watched, deployments) },
			want:   "web: the oracle does not watch Deployment.apps; call Add",
		},

		"a missing Event": {
			change: func(s *scene) { s.Events = slices.Delete(s.Events, 1, 2) },
			want:   event + "once, the API has 0 rows",
		},
		"a missing Event of an object that was created and deleted": {
			change: func(s *scene) {
				s.sees(pods, "web-1-b", "short", "13", ownedBy("set"))
				s.happens("e6", "Killing", "Pod", "web-1-b", "short", at)
				s.loses("short")
			},
			want: "web: expected the agent to report Event Killing of Pod web-1-b (e6) once, the API has 0 rows",
		},
		"a missing Event of an object known by its label": {
			change: func(s *scene) { s.happens("e6", "Pulled", "Pod", "hook", "hook", at) },
			want:   "chart: expected the agent to report Event Pulled of Pod hook (e6) once, the API has 0 rows",
		},
		"a missing Event of an object listed without its namespace": {
			change: func(s *scene) { s.happens("e6", "Checked", "Service", "chart", "service", at) },
			want:   "chart: expected the agent to report Event Checked of Service chart (e6) once, the API has 0 rows",
		},
		"an Event with two rows": {
			change: func(s *scene) { s.Events = append(s.Events, s.Events[1]) },
			want:   event + "once, the API has 2 rows",
		},
		"an Event with two rows of a released workload": {
			change: func(s *scene) { s.workloads[0].Released, s.Events = true, append(s.Events, s.Events[1]) },
			want:   event + "once, the API has 2 rows",
		},
		"an Event about an object of no workload": {
			change: func(s *scene) { s.Events = append(s.Events, row("e5", "Started", "about web", at)) },
			want:   `web: expected the agent to report only Events about objects of workloads, the API has Started "about web" (e5)`,
		},
		"an Event that did not happen": {
			change: func(s *scene) { s.Events = append(s.Events, threeport.WorkloadEvent{RuntimeEventUID: new("e9")}) },
			want:   `no workload: expected the agent to report only Events about objects of workloads, the API has  "" (e9), which never existed in the cluster`,
		},
		"an Event with another time": {
			change: func(s *scene) { s.Events[1].Timestamp = new(micro.Add(-time.Microsecond)) },
			want:   event + "with time 2026-07-01T12:00:00.123456Z, the API has 2026-07-01T12:00:00.123455Z",
		},
		"an Event with the zero time": {
			change: func(s *scene) { s.Events[1].Timestamp = new(time.Time{}) },
			want:   event + "with a time, the API has the zero time",
		},
		"an Event without a time": {
			change: func(s *scene) { s.Events[1].Timestamp = nil },
			want:   event + "with a time, the API has the zero time",
		},
		"an Event of another workload": {
			change: func(s *scene) { s.Events[1].WorkloadInstanceID = new(int64(chartID)) },
			want:   event + "with workload instance 1152921504606846977, the API has 1152921504606846979",
		},
		"an Event of two workloads": {
			change: func(s *scene) { s.Events[1].HelmWorkloadInstanceID = new(int64(chartID)) },
			want:   event + "with Helm workload instance 0, the API has 1152921504606846979",
		},
		"an Event of the wrong resource, of a released workload too": {
			change: func(s *scene) {
				s.workloads[0].Released, s.Events[1].WorkloadResourceInstanceID = true, new(int64(resourceID+1))
			},
			want: event + "with resource instance 1152921504606846978, the API has 1152921504606846979",
		},
		"an Event of another type": {
			change: func(s *scene) { s.Events[1].Type = new("Warning") },
			want:   event + "with type Normal, the API has Warning",
		},
		"an Event with another reason": {
			change: func(s *scene) { s.Events[1].Reason = new("Failed") },
			want:   event + "with reason Scheduled, the API has Failed",
		},
		"an Event that does not name its object": {
			change: func(s *scene) { s.Events[1].Message = new("about web-1-a") },
			want:   event + "with message Pod web-1-a: about web-1-a",
		},
		"an Event that names the listed object": {
			change: func(s *scene) { s.Events[0].Message = new("Deployment web: about web") },
			want:   "web: expected the agent to report Event ScalingReplicaSet of Deployment web (e1) with message about web, the API has Deployment web",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := newScene()
			c.change(s)
			if differences := s.Check(s.History, s.workloads); len(differences) != 1 || !strings.HasPrefix(differences[0], c.want) {
				t.Errorf("want one difference:\n%s\ngot %d:\n%s", c.want, len(differences), strings.Join(differences, "\n"))
			}
		})
	}
}
