package informers

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// The cache has all Events of the cluster, and anybody may create Events about objects that do not exist. 60,000 of them with short
// messages fit a sixteenth of the agent's memory limit of 256 MiB.
func TestEventCache_UnownedEvents_TakeLittleMemory(t *testing.T) {
	const n, limit = 60_000, 279 // bytes per Event
	kept := newEventStore()
	before := heapBytes()
	for i := range n {
		if err := kept.Add(decoded(t, unownedEvent(i))); err != nil {
			t.Fatal(err)
		}
	}
	each := (heapBytes() - before) / n
	t.Logf("%d bytes per Event", each)
	if each > limit {
		t.Errorf("a cached Event takes %d bytes, want at most %d", each, limit)
	}
	if got := len(kept.list()); got != n {
		t.Errorf("the cache has %d Events, want %d", got, n)
	}
}

// Everybody who may create Events chooses their texts. The cache keeps the beginning of a long one, and no reference that no object
// can have.
func TestEventCache_LongTexts_TakeLittleMemory(t *testing.T) {
	const n, limit = 500, 3000 // bytes per Event
	long := strings.Repeat("ü", 64<<10)
	var kept []*cachedEvent
	before := heapBytes()
	for i := range n {
		ev := unownedEvent(i)
		ev.Reason, ev.Message, ev.Type = long, long, long
		ev.InvolvedObject.Kind, ev.InvolvedObject.Name, ev.InvolvedObject.APIVersion, ev.InvolvedObject.UID = long, long, long, types.UID(long)
		kept = append(kept, cachedForm(t, ev))
	}
	if each := (heapBytes() - before) / n; each > limit {
		t.Errorf("a cached Event takes %d bytes, want at most %d", each, limit)
	}
	got := kept[0].event()
	if !kept[0].common.Value().shortened || !utf8.ValidString(got.Message) || !strings.HasPrefix(long, got.Message) || len(got.Message) < maxCachedMessage-3 {
		t.Errorf("the message has %d bytes, want the beginning of the whole one", len(got.Message))
	}
	if ref := got.InvolvedObject; ref.Kind+ref.Name+ref.APIVersion+string(ref.UID) != "" {
		t.Errorf("the reference has a field of %d bytes", len(ref.Kind)+len(ref.Name))
	}
}

// A short text of an Event is kept for longer than the Event, for example by the registry. It does not keep the other texts.
func TestCachedEvent_DecodedTexts_ShareNoMemory(t *testing.T) {
	const n, limit = 10_000, 128 // bytes per text
	kept := make([]string, 0, n)
	before := heapBytes()
	for i := range n {
		ev := unownedEvent(i)
		ev.Message = strings.Repeat("x", maxCachedMessage)
		kept = append(kept, cachedForm(t, ev).event().InvolvedObject.Name)
	}
	if each := (heapBytes() - before) / n; each > limit {
		t.Errorf("a text takes %d bytes, want at most %d", each, limit)
	}
	runtime.KeepAlive(kept)
}

func heapBytes() int64 {
	runtime.GC()
	runtime.GC() // the second collection frees what finalizers kept
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// unownedEvent returns an Event about a Pod that does not exist.
func unownedEvent(i int) *corev1.Event {
	at := metav1.NewTime(time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC).Add(time.Duration(i) * time.Second))
	pod := fmt.Sprintf("web-66c6ccd947-%08d", i)
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "someone-else", Name: fmt.Sprintf("%s.%016x", pod, i), CreationTimestamp: at, ResourceVersion: fmt.Sprint(1_000_000 + i),
			UID: types.UID(fmt.Sprintf("0a1b2c3d-4e5f-6a7b-8c9d-%012d", i)),
		},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: "v1", Kind: "Pod", Namespace: "someone-else", Name: pod, FieldPath: "spec.containers{web}",
			UID: types.UID(fmt.Sprintf("5c4d3e2f-4e5f-6a7b-8c9d-%012d", i)), ResourceVersion: "1000",
		},
		Reason: "BackOff", Message: "Back-off restarting failed container web in pod " + pod, Type: corev1.EventTypeWarning,
		Source: corev1.EventSource{Component: "kubelet", Host: "node-1"}, FirstTimestamp: at, LastTimestamp: at, Count: 1,
	}
}

// decoded returns an object as the client decodes it: its strings share no memory with those of other objects.
func decoded[T any, P interface {
	*T
	Marshal() ([]byte, error)
	Unmarshal(data []byte) error
}](t *testing.T, in P) P {
	t.Helper()
	data, err := in.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	out := P(new(T))
	if err := out.Unmarshal(data); err != nil {
		t.Fatal(err)
	}
	return out
}

// cachedForm returns what the cache keeps of an Event.
func cachedForm(t *testing.T, ev *corev1.Event) *cachedEvent {
	t.Helper()
	return newCachedEvent(decoded(t, ev))
}

func TestCachedEvent_ReportEqualsThatOfTheWholeEvent(t *testing.T) {
	legacy := unownedEvent(1)
	modern := unownedEvent(2)
	modern.FirstTimestamp, modern.LastTimestamp, modern.Count = metav1.Time{}, metav1.Time{}, 0
	modern.EventTime = metav1.NewMicroTime(time.Date(2026, 1, 1, 10, 0, 0, 123_456_000, time.UTC))
	modern.Series = &corev1.EventSeries{Count: 7, LastObservedTime: metav1.NewMicroTime(modern.EventTime.Add(time.Minute))}
	bare := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "app", Name: "bare", UID: "u", ResourceVersion: "1", CreationTimestamp: legacy.CreationTimestamp}}
	for name, ev := range map[string]*corev1.Event{"legacy": legacy, "with a series": modern, "with few fields": bare} {
		attribution := target.Attribution{Instance: target.Instance{Type: target.WorkloadInstance, ID: 1}}
		cached := cachedForm(t, ev).event()
		if want, got := observe.NewEvent(ev, attribution), observe.NewEvent(cached, attribution); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: the cached Event is reported as\n     %+v, want\n     %+v", name, got, want)
		}
		if cached.Namespace != ev.Namespace || cached.Name != ev.Name || !cached.CreationTimestamp.Equal(&ev.CreationTimestamp) {
			t.Errorf("%s: the cached Event is %s/%s of %s, want %s/%s of %s", name,
				cached.Namespace, cached.Name, cached.CreationTimestamp, ev.Namespace, ev.Name, ev.CreationTimestamp)
		}
	}
}

// The names and UIDs of an Event are whatever its creator chooses. The cache returns them as they are.
func TestCachedEvent_UnusualIdentities_AreKept(t *testing.T) {
	for _, test := range []struct {
		name, event, involved string
		uid                   types.UID
	}{
		{name: "by convention", event: "web-1.17a", involved: "web-1", uid: "5c4d3e2f-4e5f-6a7b-8c9d-000000000001"},
		{name: "object with a dot", event: "web.example.17a", involved: "web.example", uid: "node-1"},
		{name: "named after another object", event: "web-1.17a", involved: "web-2", uid: "5C4D3E2F-4E5F-6A7B-8C9D-000000000001"},
		{name: "without a dot", event: "web", involved: "web", uid: "b23456789abcdefg"},
		{name: "without an object", event: "web.17a", involved: "", uid: ""},
		{name: "without an object and a dot", event: "web", involved: "", uid: "t"},
		{name: "UUID without hyphens", event: "web-1.17a", involved: "web-1", uid: "5c4d3e2f4e5f6a7b8c9d000000000001"},
	} {
		ev := unownedEvent(1)
		ev.Name, ev.InvolvedObject.Name, ev.UID, ev.InvolvedObject.UID = test.event, test.involved, test.uid, test.uid
		cached := cachedForm(t, ev)
		got := cached.event()
		if got.Name != ev.Name || got.UID != ev.UID || got.InvolvedObject.Name != test.involved || got.InvolvedObject.UID != test.uid {
			t.Errorf("%s: the cache returns Event %s (%s) about %s (%s), want %s (%s) about %s (%s)", test.name,
				got.Name, got.UID, got.InvolvedObject.Name, got.InvolvedObject.UID, ev.Name, ev.UID, test.involved, test.uid)
		}
		if o := cached.GetObjectMeta(); o.GetName() != ev.Name || o.GetUID() != ev.UID || o.GetResourceVersion() != ev.ResourceVersion {
			t.Errorf("%s: the metadata are %s (%s) of version %s, want those of the Event", test.name, o.GetName(), o.GetUID(), o.GetResourceVersion())
		}
	}
}

// Two values in one bucket do not find each other's Events.
func TestEventIndex_SharedBucket_FindsOnlyTheValue(t *testing.T) {
	kept := newEventStore()
	var events []*corev1.Event
	for i := range 2 * eventBuckets {
		events = append(events, unownedEvent(i))
		if err := kept.Add(events[i]); err != nil {
			t.Fatal(err)
		}
	}
	p := &informerPool{running: map[informerID]*informer{{}: {gvk: eventKind, store: kept}}}
	for _, ev := range events[:100] {
		for index, value := range map[eventIndex]string{
			eventsAboutUID: string(ev.InvolvedObject.UID), eventsAboutName: observe.InvolvedObject(ev).String(),
		} {
			var found []string
			p.eachEvent(index, value, anyEvent, func(e *corev1.Event) { found = append(found, e.Name) })
			if got := strings.Join(found, " "); got != ev.Name {
				t.Errorf("index %d finds %q for %s, want %q", index, got, value, ev.Name)
			}
		}
	}
}

// newEventStore returns a store of Events whose handler does nothing.
func newEventStore() *store {
	return newStore(eventKind, transform(eventKind, allListed(false), nil), cache.ResourceEventHandlerFuncs{}, func() {})
}
