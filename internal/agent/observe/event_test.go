package observe

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

func TestEventTime_IsTheLast(t *testing.T) {
	at := func(second int) time.Time {
		return time.Date(2026, 1, 2, 3, 4, second, 123456000, time.FixedZone("", 3600))
	}
	all := corev1.Event{
		Series:         &corev1.EventSeries{LastObservedTime: metav1.NewMicroTime(at(5))},
		LastTimestamp:  metav1.NewTime(at(4)),
		EventTime:      metav1.NewMicroTime(at(3)),
		FirstTimestamp: metav1.NewTime(at(2)),
	}
	all.CreationTimestamp = metav1.NewTime(at(1))
	tests := []struct {
		reason string
		cut    func(*corev1.Event)
		want   time.Time
	}{
		{"a series counts its repeats", func(*corev1.Event) {}, at(5)},
		{"a series without a time", func(ev *corev1.Event) { ev.Series = &corev1.EventSeries{Count: 3} }, at(4)},
		{"no series", func(ev *corev1.Event) { ev.Series = nil }, at(4)},
		{"written through events.k8s.io", func(ev *corev1.Event) { ev.LastTimestamp = metav1.Time{} }, at(3)},
		{"the first time is all there is", func(ev *corev1.Event) { ev.EventTime = metav1.MicroTime{} }, at(2)},
		{"no time but that of its storage", func(ev *corev1.Event) { ev.FirstTimestamp = metav1.Time{} }, at(1)},
	}
	ev := all.DeepCopy()
	for _, tt := range tests {
		tt.cut(ev)
		got := EventTime(ev)
		if !got.Equal(tt.want) || got.Location() != time.UTC {
			t.Errorf("%s: got %s, want %s", tt.reason, got, tt.want.UTC())
		}
		if reported := NewEvent(ev, target.Attribution{}).Time; !reported.Equal(got) {
			t.Errorf("%s: %s is reported", tt.reason, reported)
		}
	}
}

func podEvent() *corev1.Event {
	ev := &corev1.Event{
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "app", Name: "web-1-x", UID: "uid-pod"},
		Type:           corev1.EventTypeWarning,
		Reason:         "BackOff",
		Message:        "Back-off restarting",
	}
	ev.UID, ev.ResourceVersion = "uid-event", "5"
	return ev
}

func TestNewEvent_HasTheInvolvedObject(t *testing.T) {
	derived := target.Attribution{Instance: shop, Resource: target.Resource{Ref: webRef, ID: 7}}
	listed, labelled := derived, target.Attribution{Instance: chart}
	listed.Listed = true
	tests := []struct {
		reason      string
		attribution target.Attribution
		derived     bool
		resource    int64
	}{
		{"the row identifies the listed resource", listed, false, 7},
		{"a derived object has none", derived, true, 7},
		{"an object with only the label has none", labelled, true, 0},
	}
	for _, tt := range tests {
		got := NewEvent(podEvent(), tt.attribution)
		if got.Derived != tt.derived || got.ResourceID != tt.resource || got.Instance() != tt.attribution.Instance {
			t.Errorf("%s: got %+v", tt.reason, got)
		}
		if got.InvolvedUID != "uid-pod" || got.InvolvedVersion != "v1" || got.Message != "Back-off restarting" {
			t.Errorf("%s: got %+v", tt.reason, got)
		}
		if got.Type != "Warning" || got.Reason != "BackOff" || got.String() != "event BackOff of Pod app/web-1-x" {
			t.Errorf("%s: got %s, %+v", tt.reason, got, got)
		}
	}
}

func TestNewEvent_CountsRepeats(t *testing.T) {
	first := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
	series := &corev1.EventSeries{Count: 9, LastObservedTime: metav1.NewMicroTime(first.Add(time.Hour))}
	for _, tt := range []struct {
		reason string
		change func(*corev1.Event)
		count  int64
		first  time.Time
	}{
		{"core/v1", func(ev *corev1.Event) { ev.Count, ev.FirstTimestamp = 4, metav1.NewTime(first) }, 4, first},
		{"a series", func(ev *corev1.Event) { ev.Series, ev.EventTime = series, metav1.NewMicroTime(first) }, 9, first},
		{"no count, and no time of its own", func(ev *corev1.Event) { ev.CreationTimestamp = metav1.NewTime(first) }, 0, first},
		{"no count and no times", func(*corev1.Event) {}, 0, time.Time{}},
	} {
		ev := podEvent()
		tt.change(ev)
		if got := NewEvent(ev, target.Attribution{}); got.Count != tt.count || !got.FirstTime.Equal(tt.first) {
			t.Errorf("%s: got %d times since %s", tt.reason, got.Count, got.FirstTime)
		}
	}
}

func TestNewEvent_LongTexts_AreCut(t *testing.T) {
	ev := NewEvent(&corev1.Event{Reason: strings.Repeat("r", 1000), Message: strings.Repeat("ä", 30_000)}, target.Attribution{})
	if len(ev.Reason) != maxEventReason || len(ev.Message) > maxEventMessage || len(ev.Message) < maxEventMessage-2 ||
		!utf8.ValidString(ev.Message) || !strings.HasSuffix(ev.Message, "ä…") {
		t.Errorf("the reason has %d bytes, the message %d: %q", len(ev.Reason), len(ev.Message), ev.Message[len(ev.Message)-8:])
	}
}

func TestNewEvent_WithoutATypeIsNormal(t *testing.T) {
	ev := podEvent()
	ev.Type = ""
	if got := NewEvent(ev, target.Attribution{}).Type; got != "Normal" {
		t.Errorf("got %q", got)
	}
}

func TestEvent_Repeat_IsANewVersionOfTheKey(t *testing.T) {
	attribution := target.Attribution{Instance: shop, Resource: target.Resource{ID: 7}}
	elsewhere, otherResource := attribution, attribution
	elsewhere.Instance = chart
	otherResource.Resource.ID = 8
	base := NewEvent(podEvent(), attribution)
	repeat := podEvent()
	repeat.ResourceVersion = "6"
	for reason, other := range map[string]Event{
		"repeated":                     NewEvent(repeat, attribution),
		"found to belong elsewhere":    NewEvent(podEvent(), elsewhere),
		"found to be another resource": NewEvent(podEvent(), otherResource),
	} {
		if base.Key() != other.Key() || base.OrderingKey() != other.OrderingKey() || base.Version() == other.Version() {
			t.Errorf("%s: keys %s and %s, versions %s and %s", reason, base.Key(), other.Key(), base.Version(), other.Version())
		}
	}
	if same := NewEvent(podEvent(), attribution); same.Version() != base.Version() {
		t.Error("the same Event is not news")
	}
	second := podEvent()
	second.UID = "uid-event-2"
	if other := NewEvent(second, attribution); other.Key() == base.Key() || other.OrderingKey() == base.OrderingKey() {
		t.Error("another Event shares the key or the ordering key")
	}
	if EventKey("uid-event") != base.Key() {
		t.Error("the key cannot be made of the UID")
	}
}

func TestInvolvedObject(t *testing.T) {
	tests := []struct {
		reason string
		in     corev1.ObjectReference
		want   target.Identity
	}{
		{"a core object", podEvent().InvolvedObject, target.Identity{Ref: target.Ref{Kind: "Pod", Namespace: "app", Name: "web-1-x"}, UID: "uid-pod"}},
		{
			"an object of a group",
			corev1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "app", Name: "web"},
			target.Identity{Ref: webRef},
		},
		{"a source that leaves the version empty", corev1.ObjectReference{Kind: "Node", Name: "n"}, target.Identity{Ref: target.Ref{Kind: "Node", Name: "n"}}},
	}
	for _, tt := range tests {
		if got := InvolvedObject(&corev1.Event{InvolvedObject: tt.in}); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.reason, got, tt.want)
		}
	}
}

func TestIsAbout(t *testing.T) {
	node := target.Identity{Ref: target.Ref{Kind: "Node", Name: "n-1"}, UID: "uid-node"}
	pod := target.Identity{Ref: target.Ref{Kind: "Pod", Namespace: "app", Name: "web-1-x"}, UID: "uid-pod"}
	aboutNode := corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: "n-1", UID: "uid-node"}
	aboutPod := podEvent().InvolvedObject
	with := func(change func(*corev1.ObjectReference)) corev1.ObjectReference {
		out := aboutPod
		change(&out)
		return out
	}
	for _, tt := range []struct {
		reason    string
		namespace string // of the Event
		involved  corev1.ObjectReference
		known     target.Identity
		want      bool
	}{
		{"an Event of a controller", "app", aboutPod, pod, true},
		{"another version of a group", "app", corev1.ObjectReference{
			APIVersion: "apps/v1beta1", Kind: "ReplicaSet", Namespace: "app", Name: "web-1", UID: "uid-set",
		}, target.Identity{Ref: target.Ref{Group: "apps", Kind: "ReplicaSet", Namespace: "app", Name: "web-1"}, UID: "uid-set"}, true},
		{"without an API version", "app", with(func(o *corev1.ObjectReference) { o.APIVersion = "" }), pod, true},
		{"an Event of a user of another namespace", "evil", aboutPod, pod, false},
		{"the namespace of the Event", "evil", with(func(o *corev1.ObjectReference) { o.Namespace = "evil" }), pod, false},
		{"no namespace", "default", with(func(o *corev1.ObjectReference) { o.Namespace = "" }), pod, false},
		{"another name", "app", with(func(o *corev1.ObjectReference) { o.Name = "web" }), pod, false},
		{"another kind", "app", with(func(o *corev1.ObjectReference) { o.Kind = "ConfigMap" }), pod, false},
		{"another group", "app", with(func(o *corev1.ObjectReference) { o.APIVersion = "example.com/v1" }), pod, false},
		{"another UID", "app", with(func(o *corev1.ObjectReference) { o.UID = "uid-other" }), pod, false},
		{"a cluster-scoped object", "default", aboutNode, node, true},
		{"a cluster-scoped object, by a system component", "kube-system", aboutNode, node, true},
		{"a cluster-scoped object, by a user", "evil", aboutNode, node, false},
	} {
		ev := &corev1.Event{InvolvedObject: tt.involved}
		ev.Namespace = tt.namespace
		if got := IsAbout(ev, tt.known); got != tt.want {
			t.Errorf("%s: IsAbout is %t, want %t", tt.reason, got, tt.want)
		}
	}
}

// Anybody may write such times.
func TestNewEvent_TimesBeyondJSON_AreLeftOut(t *testing.T) {
	created := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	west, east := time.FixedZone("", -23*3600-59*60), time.FixedZone("", 23*3600+59*60)
	for _, at := range []time.Time{
		time.Date(9999, 12, 31, 23, 59, 59, 0, west), time.Date(0, 1, 1, 0, 0, 0, 0, east), time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC),
	} {
		ev := &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(created)},
			FirstTimestamp: metav1.NewTime(at), LastTimestamp: metav1.NewTime(at), EventTime: metav1.NewMicroTime(at),
			Series: &corev1.EventSeries{LastObservedTime: metav1.NewMicroTime(at)},
		}
		got := NewEvent(ev, target.Attribution{})
		if _, err := json.Marshal(got); err != nil || !got.Time.Equal(created) || !got.FirstTime.Equal(created) {
			t.Errorf("with %s, the times are %s and %s (%v), want those of the creation", at, got.Time, got.FirstTime, err)
		}
	}
}
