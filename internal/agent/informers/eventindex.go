package informers

import (
	"hash/maphash"
	"strconv"

	"k8s.io/client-go/tools/cache"
)

// eventIndex is an index of Events by their involved object. An index of client-go has a set for each value. Most sets would
// have one Event and take 300 bytes, so the values are distributed over a fixed number of buckets.
type eventIndex string

const (
	eventsByUID  eventIndex = "involvedUID"
	eventsByName eventIndex = "involvedName"
)

// eventBuckets is the number of buckets of an index. A look-up of one value reads all Events of a bucket.
const eventBuckets = 4096

// bucketSeed is random, so that an attacker cannot choose names or UIDs that share a bucket.
var bucketSeed = maphash.MakeSeed()

func bucketOf(value string) string {
	return strconv.FormatUint(maphash.String(bucketSeed, value)%eventBuckets, 36)
}

var eventIndexers = cache.Indexers{
	string(eventsByUID):  eventsByUID.bucket,
	string(eventsByName): eventsByName.bucket,
}

// bucket implements cache.IndexFunc.
func (x eventIndex) bucket(obj any) ([]string, error) {
	ev, ok := obj.(*cachedEvent)
	if !ok || x.value(ev) == "" {
		return nil, nil
	}
	return []string{bucketOf(x.value(ev))}, nil
}

// value returns the value of an Event in the index; empty if the index does not have the Event.
func (x eventIndex) value(ev *cachedEvent) string {
	if x == eventsByUID {
		return string(ev.involved.uid)
	}
	return ev.involvedObject().String()
}

// eachEvent visits the Events that an index has under a value.
func (p *informerPool) eachEvent(index eventIndex, value string, visit func(*cachedEvent)) {
	for _, i := range p.eventInformers() {
		events, err := i.shared.GetIndexer().ByIndex(string(index), bucketOf(value))
		if err != nil {
			continue // an index that every informer of Events has
		}
		for _, obj := range events {
			if ev, ok := obj.(*cachedEvent); ok && index.value(ev) == value {
				visit(ev)
			}
		}
	}
}
