package informers

import (
	"hash/maphash"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// eventIndex is an index of Events by their involved object. An index of client-go has a set for each value. Most sets would
// have one Event and take 300 bytes, so the hashes of values are distributed over a fixed number of buckets.
type eventIndex string

const (
	eventsByUID  eventIndex = "involvedUID"
	eventsByName eventIndex = "involvedName"
)

// eventBuckets is the number of buckets of an index. A look-up of one value reads all Events of a bucket.
const eventBuckets = 4096

// eventHashes are the hashes of an Event's values in the indexes; 0 if an index does not have the Event.
type eventHashes struct{ uid, name uint64 }

// hashSeed is random, so that an attacker cannot choose names or UIDs that share a bucket.
var hashSeed = maphash.MakeSeed()

func hashOf(value string) uint64 {
	if value == "" {
		return 0
	}
	return max(maphash.String(hashSeed, value), 1)
}

func hashesOf(ref corev1.ObjectReference) eventHashes {
	involved := observe.InvolvedObject(&corev1.Event{InvolvedObject: ref})
	return eventHashes{uid: hashOf(eventsByUID.value(involved)), name: hashOf(eventsByName.value(involved))}
}

func bucketOf(hash uint64) string { return strconv.FormatUint(hash%eventBuckets, 36) }

var eventIndexers = cache.Indexers{
	string(eventsByUID):  eventsByUID.bucket,
	string(eventsByName): eventsByName.bucket,
}

// bucket implements cache.IndexFunc.
func (x eventIndex) bucket(obj any) ([]string, error) {
	ev, ok := obj.(*cachedEvent)
	if !ok || x.hash(ev) == 0 {
		return nil, nil
	}
	return []string{bucketOf(x.hash(ev))}, nil
}

func (x eventIndex) hash(ev *cachedEvent) uint64 {
	if x == eventsByUID {
		return ev.hashes.uid
	}
	return ev.hashes.name
}

// value returns the value of an Event in the index by its involved object; empty if the index does not have the Event.
func (x eventIndex) value(involved target.Identity) string {
	if x == eventsByUID {
		return string(involved.UID)
	}
	return involved.String()
}

// eachEvent visits the Events that an index has under a value.
func (p *informerPool) eachEvent(index eventIndex, value string, visit func(*corev1.Event)) {
	hash := hashOf(value)
	for _, i := range p.eventInformers() {
		events, err := i.shared.GetIndexer().ByIndex(string(index), bucketOf(hash))
		if err != nil {
			continue // an index that every informer of Events has
		}
		for _, obj := range events {
			cached, ok := obj.(*cachedEvent)
			if !ok || index.hash(cached) != hash {
				continue
			}
			if ev := cached.event(); index.value(observe.InvolvedObject(ev)) == value {
				visit(ev)
			}
		}
	}
}
