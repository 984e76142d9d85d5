package informers

import (
	"hash/maphash"
	"slices"

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

// eventIndexes has the Events of a store. Each index distributes the hashes of values over eventBuckets: a set for each value, as
// client-go has it, would take 300 bytes for a single Event.
type eventIndexes [eventIndexCount][][]*cachedEvent

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
			x[index] = make([][]*cachedEvent, eventBuckets)
		}
		bucket := &x[index][hash%eventBuckets]
		*bucket = append(*bucket, ev)
	}
}

func (x *eventIndexes) remove(ev *cachedEvent) {
	for index, hash := range ev.hashes {
		if hash == 0 {
			continue
		}
		bucket := &x[index][hash%eventBuckets]
		if at := slices.Index(*bucket, ev); at >= 0 {
			last := len(*bucket) - 1
			(*bucket)[at] = (*bucket)[last]
			*bucket = slices.Delete(*bucket, last, last+1)
		}
	}
}

// find returns the Events whose value in an index has a hash.
func (x *eventIndexes) find(index eventIndex, hash uint32) []*cachedEvent {
	var out []*cachedEvent
	if hash == 0 || x[index] == nil {
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
