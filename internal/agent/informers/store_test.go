package informers

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// recordingStore returns a store, and the notifications about its objects so far.
func recordingStore(kind schema.GroupVersionKind) (kept *store, notifications func() string) {
	var got []string
	record := func(format string, args ...any) { got = append(got, fmt.Sprintf(format, args...)) }
	name := func(obj any) string {
		v, _ := cachedName(obj)
		return v.Name + cachedVersion(obj).resourceVersion
	}
	handler := cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			if initial {
				record("initial %s", name(obj))
			} else {
				record("add %s", name(obj))
			}
		},
		UpdateFunc: func(before, obj any) { record("update %s to %s", name(before), name(obj)) },
		DeleteFunc: func(obj any) { record("delete %s", name(obj)) },
	}
	cachedForm := func(obj any) (any, error) {
		switch o := obj.(type) {
		case *corev1.Event:
			return newCachedEvent(o), nil
		case *corev1.Pod:
			return newCachedPod(o)
		}
		return obj, nil
	}
	return newStore(kind, cachedForm, handler, func() { record("listed") }), func() string {
		defer func() { got = nil }()
		// The objects of one list come in any order, and "listed" comes last.
		if n := len(got) - 1; n > 0 && got[n] == "listed" {
			slices.Sort(got[:n])
		} else {
			slices.Sort(got)
		}
		return strings.Join(got, ", ")
	}
}

func versioned(name, version string) any {
	return &metav1.PartialObjectMetadata{ObjectMeta: versionedMetadata(name, version)}
}

func versionedEvent(name, version string) any {
	return &corev1.Event{ObjectMeta: versionedMetadata(name, version)}
}

func versionedPod(name, version string) any {
	return &corev1.Pod{ObjectMeta: versionedMetadata(name, version)}
}

func versionedMetadata(name, version string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "app", Name: name, UID: types.UID("uid-" + name), ResourceVersion: version}
}

func TestStore_Changes_AreNotified(t *testing.T) {
	testStoreChanges(t, schema.GroupVersionKind{}, versioned)
}

func TestStore_ChangesOfEvents_AreNotified(t *testing.T) {
	testStoreChanges(t, eventKind, versionedEvent)
}

func TestStore_ChangesOfPods_AreNotified(t *testing.T) {
	testStoreChanges(t, podKind, versionedPod)
}

func testStoreChanges(t *testing.T, kind schema.GroupVersionKind, versioned func(name, version string) any) {
	t.Helper()
	kept, notifications := recordingStore(kind)
	for _, step := range []struct {
		what string
		do   func() error
		want string
	}{
		{"first list", func() error { return kept.Replace([]any{versioned("a", "1"), versioned("b", "2")}, "2") }, "initial a1, initial b2, listed"},
		{"list with a name twice", func() error {
			return kept.Replace([]any{versioned("a", "0"), versioned("a", "1"), versioned("b", "2")}, "2")
		}, ""},
		{"new object", func() error { return kept.Add(versioned("c", "3")) }, "add c3"},
		{"change", func() error { return kept.Update(versioned("a", "4")) }, "update a1 to a4"},
		{"change of an object that the store lacks", func() error { return kept.Update(versioned("d", "5")) }, "add d5"},
		{"creation of an object that the store has", func() error { return kept.Add(versioned("d", "6")) }, "update d5 to d6"},
		{"deletion, with the last version", func() error { return kept.Delete(versioned("b", "7")) }, "delete b7"},
		{"same version again", func() error { return kept.Update(versioned("a", "4")) }, ""},
		{
			"later list", func() error {
				return kept.Replace([]any{versioned("a", "4"), versioned("c", "8"), versioned("e", "9")}, "9")
			},
			"add e9, delete d6, update c3 to c8",
		},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
		if got := notifications(); got != step.want {
			t.Errorf("%s: notified %q, want %q", step.what, got, step.want)
		}
	}
	var names []string
	for _, obj := range kept.list() {
		name, _ := cachedName(obj)
		names = append(names, name.Name)
	}
	if slices.Sort(names); !slices.Equal(names, []string{"a", "c", "e"}) {
		t.Errorf("the store has %v, want a, c and e", names)
	}
}

// A handler that reads the store finds the change that it is notified of.
func TestStore_Handler_SeesTheChange(t *testing.T) {
	var kept *store
	seen := map[string]bool{}
	kept = newStore(schema.GroupVersionKind{}, func(obj any) (any, error) { return obj, nil }, cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			name, _ := cachedName(obj)
			seen["add "+name.Name] = kept.get(name) == obj
		},
		DeleteFunc: func(obj any) {
			name, _ := cachedName(obj)
			seen["delete "+name.Name] = kept.get(name) == nil
		},
	}, func() {})
	for _, err := range []error{
		kept.Replace([]any{versioned("a", "1")}, "1"), kept.Add(versioned("b", "2")), kept.Delete(versioned("b", "3")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, change := range []string{"add a", "add b", "delete b"} {
		if !seen[change] {
			t.Errorf("the handler did not find the change %q in the store", change)
		}
	}
}

// An Event that has changed, or was deleted, is found by its new object only.
func TestStore_EventsChange_IndexesFollow(t *testing.T) {
	kept := newEventStore()
	ev := unownedEvent(1)
	before := string(ev.InvolvedObject.UID)
	if err := kept.Add(ev); err != nil {
		t.Fatal(err)
	}
	changed := unownedEvent(1)
	changed.InvolvedObject.UID, changed.ResourceVersion = "another", "2000000"
	if err := kept.Update(changed); err != nil {
		t.Fatal(err)
	}
	found := func(uid string) int { return len(kept.eventsBy(eventsAboutUID, hashOf(uid))) }
	if found(before) != 0 || found("another") != 1 {
		t.Errorf("after a change, %d Events are found by the former object and %d by the new one, want 0 and 1", found(before), found("another"))
	}
	if err := kept.Replace([]any{unownedEvent(1)}, ""); err != nil {
		t.Fatal(err)
	}
	if found(before) != 1 || found("another") != 0 {
		t.Errorf("after a list, %d Events are found by the listed object and %d by the former one, want 1 and 0", found(before), found("another"))
	}
	if err := kept.Delete(unownedEvent(1)); err != nil {
		t.Fatal(err)
	}
	if found(before) != 0 {
		t.Errorf("after the deletion, %d Events are found, want none", found(before))
	}
}

// Two Events whose names have one hash are different Events.
func TestStore_EventsWithOneHash_AreFoundByName(t *testing.T) {
	kept := newEventStore()
	var events []*cachedEvent
	for i := range 3 {
		ev := newCachedEvent(unownedEvent(i))
		ev.hashes[eventsByName] = hashOf(nameOf(unownedEvent(0)))
		events = append(events, ev)
		if err := kept.Add(ev); err != nil {
			t.Fatal(err)
		}
	}
	first := nameOf(unownedEvent(0))
	if got := kept.get(first); got != events[0] {
		t.Errorf("the store has %v under the name of the first Event, want that", got)
	}
	if err := kept.Delete(events[0]); err != nil {
		t.Fatal(err)
	}
	if got := kept.get(first); got != nil {
		t.Errorf("the store has %v under the name of a deleted Event, want none", got)
	}
	if got := len(kept.list()); got != 2 {
		t.Errorf("the store has %d Events after the deletion of one of three, want 2", got)
	}
}

// Many Events share a bucket: those about one object, and others. Each is found until it is removed.
func TestEventSet_RandomChanges_FindWhatIsThere(t *testing.T) {
	var set eventSet
	there := map[*cachedEvent]bool{}
	var all []*cachedEvent
	for i := range 60 {
		uid := uint32(i%3) + 1 // a few objects, two of which share a bucket
		if uid == 3 {
			uid = eventBuckets + 1
		}
		name := 1 + uint32(i%7) + uint32(i/7)*eventBuckets // eight or nine share a bucket
		all = append(all, &cachedEvent{hashes: eventHashes{eventsByName: name, eventsAboutUID: uid, eventsAboutName: uint32(i % 5)}})
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		ev := all[random.IntN(len(all))]
		if there[ev] {
			set.remove(ev)
		} else {
			set.add(ev)
		}
		there[ev] = !there[ev]
		for index := range eventIndexCount {
			want := map[uint32]int{}
			for _, ev := range all {
				if there[ev] && ev.hashes[index] != 0 {
					want[ev.hashes[index]]++
				}
			}
			for hash, n := range want {
				found := set.find(index, hash)
				for _, ev := range found {
					if !there[ev] || ev.hashes[index] != hash {
						t.Fatalf("index %d finds an Event that was removed, or has another hash than %d", index, hash)
					}
				}
				if len(found) != n {
					t.Fatalf("index %d finds %d Events with the hash %d, want %d", index, len(found), hash, n)
				}
			}
		}
	}
	for ev, is := range there {
		if is {
			set.remove(ev)
		}
	}
	for index, buckets := range set {
		if len(buckets) > 0 {
			t.Errorf("index %d keeps %d buckets without Events", index, len(buckets))
		}
	}
}

// An Event of the first list stays preexisting until it is deleted, also when it changes or is listed again. A later Event of its name
// is not.
func TestStore_EventsOfFirstList_ArePreexisting(t *testing.T) {
	kept := newEventStore()
	version := 0
	next := func(i int, uid types.UID) *corev1.Event {
		ev := unownedEvent(i)
		version++
		ev.ResourceVersion = fmt.Sprint(version)
		if uid != "" {
			ev.UID = uid
		}
		return ev
	}
	for _, step := range []struct {
		what string
		do   func() error
		want string
	}{
		{"the first list", func() error { return kept.Replace([]any{next(0, ""), next(1, "")}, "") }, "0 1"},
		{"another Event", func() error { return kept.Add(next(2, "")) }, "0 1"},
		{"changes of all", func() error {
			return errors.Join(kept.Update(next(0, "")), kept.Update(next(1, "")), kept.Update(next(2, "")))
		}, "0 1"},
		{"a later list", func() error { return kept.Replace([]any{next(0, ""), next(1, ""), next(2, "")}, "") }, "0 1"},
		{"an Event of the same name", func() error { return kept.Add(next(0, "another")) }, "1"},
		{"a listed Event of the same name", func() error {
			return kept.Replace([]any{next(0, "another"), next(1, "another"), next(2, "")}, "")
		}, ""},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
		var got []string
		for i := range 3 {
			ev, ok := kept.get(nameOf(unownedEvent(i))).(*cachedEvent)
			if ok && ev.common.Value().preexisting {
				got = append(got, fmt.Sprint(i))
			}
		}
		if strings.Join(got, " ") != step.want {
			t.Errorf("after %s, the Events %v are preexisting, want %q", step.what, got, step.want)
		}
	}
}
