package informers

import (
	"hash/maphash"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// eventIndex is an index of Events: by their name, or by their involved object.
type eventIndex int

const (
	eventsByName eventIndex = iota
	eventsAboutUID
	eventsAboutName
	eventIndexCount
)

// eventHashes are the hashes of an Event's values in the indexes; 0 if an index does not have the Event.
type eventHashes [eventIndexCount]uint32

// eventPlaces are the places of an Event in its buckets of the indexes.
type eventPlaces [eventIndexCount]uint32

// eventSet has the Events of a store. Each index distributes the hashes of values over eventBuckets. A map by name takes 50 bytes more for
// each Event, and a set for each value of the other indexes, as client-go has it, 300 bytes.
type eventSet [eventIndexCount]map[uint32][]*cachedEvent

// eventBuckets is the number of buckets of an index. A look-up of one value reads all Events of a bucket.
const eventBuckets = 4096

// hashSeed is random, so that an attacker cannot choose names or UIDs that share a bucket.
var hashSeed = maphash.MakeSeed()

func hashOf[T comparable](value T) uint32 {
	var none T
	if value == none {
		return 0
	}
	return max(uint32(maphash.Comparable(hashSeed, value)), 1) //nolint:gosec // half of the hash suffices
}

func hashesOf(name types.NamespacedName, ref corev1.ObjectReference) eventHashes {
	involved := observe.InvolvedObject(&corev1.Event{InvolvedObject: ref})
	return eventHashes{
		eventsByName: hashOf(name), eventsAboutUID: hashOf(eventsAboutUID.value(involved)), eventsAboutName: hashOf(eventsAboutName.value(involved)),
	}
}

// value returns the value of an Event in an index by its involved object; empty if the index does not have the Event.
func (x eventIndex) value(involved target.Identity) string {
	if x == eventsAboutUID {
		return string(involved.UID)
	}
	return involved.String()
}

// get returns the Event of a name; nil if there is none.
func (s *eventSet) get(name types.NamespacedName) *cachedEvent {
	hash := hashOf(name)
	for _, ev := range s[eventsByName][hash%eventBuckets] {
		if ev.hashes[eventsByName] == hash && ev.name() == name {
			return ev
		}
	}
	return nil
}

// replace removes the Event before, and adds another one. Each of them may be nil.
func (s *eventSet) replace(before, obj any) {
	if ev, ok := before.(*cachedEvent); ok {
		s.remove(ev)
	}
	if ev, ok := obj.(*cachedEvent); ok {
		s.add(ev)
	}
}

func (s *eventSet) list() []any {
	size := 0
	for _, bucket := range s[eventsByName] {
		size += len(bucket)
	}
	out := make([]any, 0, size)
	for _, bucket := range s[eventsByName] {
		for _, ev := range bucket {
			out = append(out, ev)
		}
	}
	return out
}

func (s *eventSet) add(ev *cachedEvent) {
	for index, hash := range ev.hashes {
		if hash == 0 {
			continue
		}
		if s[index] == nil {
			s[index] = map[uint32][]*cachedEvent{}
		}
		bucket := s[index][hash%eventBuckets]
		ev.places[index] = uint32(len(bucket)) //nolint:gosec // memory has fewer Events
		s[index][hash%eventBuckets] = append(bucket, ev)
	}
}

// remove removes an Event that was added. The last Event of a bucket takes its place.
func (s *eventSet) remove(ev *cachedEvent) {
	for index, hash := range ev.hashes {
		if hash == 0 {
			continue
		}
		bucket := s[index][hash%eventBuckets]
		last := len(bucket) - 1
		moved := bucket[last]
		bucket[ev.places[index]], moved.places[index] = moved, ev.places[index]
		if bucket[last] = nil; last == 0 {
			delete(s[index], hash%eventBuckets)
		} else {
			s[index][hash%eventBuckets] = bucket[:last]
		}
	}
}

// find returns the Events whose value in an index has a hash.
func (s *eventSet) find(index eventIndex, hash uint32) []*cachedEvent {
	var out []*cachedEvent
	if hash == 0 {
		return nil
	}
	for _, ev := range s[index][hash%eventBuckets] {
		if ev.hashes[index] == hash {
			out = append(out, ev)
		}
	}
	return out
}

// eachEvent visits the Events that an index has under a value, and that match.
func (p *informerPool) eachEvent(index eventIndex, value string, match func(*cachedEvent) bool, visit func(*corev1.Event)) {
	hash := hashOf(value)
	for _, i := range p.eventInformers() {
		for _, cached := range i.store.eventsBy(index, hash) {
			if !match(cached) {
				continue
			}
			if ev := cached.event(); index.value(observe.InvolvedObject(ev)) == value {
				visit(ev)
			}
		}
	}
}
