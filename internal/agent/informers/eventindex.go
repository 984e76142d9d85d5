package informers

import (
	"hash/maphash"

	corev1 "k8s.io/api/core/v1"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// eventIndex is an index of Events by their involved object.
type eventIndex int

const (
	eventsByUID eventIndex = iota
	eventsByName
	eventIndexCount
)

// eventHashes are the hashes of an Event's values in the indexes; 0 if an index does not have the Event.
type eventHashes [eventIndexCount]uint32

// eventPlaces are the places of an Event in its buckets of the indexes.
type eventPlaces [eventIndexCount]uint32

// eventIndexes has the Events of a store. Each index distributes the hashes of values over eventBuckets: a set for each value, as
// client-go has it, would take 300 bytes for a single Event.
type eventIndexes [eventIndexCount]map[uint32][]*cachedEvent

// eventBuckets is the number of buckets of an index. A look-up of one value reads all Events of a bucket.
const eventBuckets = 4096

// hashSeed is random, so that an attacker cannot choose names or UIDs that share a bucket.
var hashSeed = maphash.MakeSeed()

func hashOf(value string) uint32 {
	if value == "" {
		return 0
	}
	return max(uint32(maphash.String(hashSeed, value)), 1) //nolint:gosec // half of the hash suffices
}

func hashesOf(ref corev1.ObjectReference) eventHashes {
	involved := observe.InvolvedObject(&corev1.Event{InvolvedObject: ref})
	return eventHashes{eventsByUID: hashOf(eventsByUID.value(involved)), eventsByName: hashOf(eventsByName.value(involved))}
}

// value returns the value of an Event in the index by its involved object; empty if the index does not have the Event.
func (x eventIndex) value(involved target.Identity) string {
	if x == eventsByUID {
		return string(involved.UID)
	}
	return involved.String()
}

func (x *eventIndexes) add(ev *cachedEvent) {
	for index, hash := range ev.hashes {
		if hash == 0 {
			continue
		}
		if x[index] == nil {
			x[index] = map[uint32][]*cachedEvent{}
		}
		bucket := x[index][hash%eventBuckets]
		ev.places[index] = uint32(len(bucket)) //nolint:gosec // memory has fewer Events
		x[index][hash%eventBuckets] = append(bucket, ev)
	}
}

// remove removes an Event that was added. The last Event of a bucket takes its place.
func (x *eventIndexes) remove(ev *cachedEvent) {
	for index, hash := range ev.hashes {
		if hash == 0 {
			continue
		}
		bucket := x[index][hash%eventBuckets]
		last := len(bucket) - 1
		moved := bucket[last]
		bucket[ev.places[index]], moved.places[index] = moved, ev.places[index]
		if bucket[last] = nil; last == 0 {
			delete(x[index], hash%eventBuckets)
		} else {
			x[index][hash%eventBuckets] = bucket[:last]
		}
	}
}

// find returns the Events whose value in an index has a hash.
func (x *eventIndexes) find(index eventIndex, hash uint32) []*cachedEvent {
	var out []*cachedEvent
	if hash == 0 {
		return nil
	}
	for _, ev := range x[index][hash%eventBuckets] {
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
