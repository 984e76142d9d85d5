package reporter

import (
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/agent/worker"
)

// queues hold the keys of changed objects, Events and workloads until a worker processes them. A key is in its queue once,
// and no two workers process it at a time. The namespaces take turns: thousands of changes in one do not delay the others.
type queues struct {
	objects    worker.Queue[target.Ref]
	events     worker.Queue[types.NamespacedName]
	longEvents worker.Queue[types.NamespacedName] // attributed ones with texts that the cache has in part
	statuses   worker.Queue[string]               // by workload
	samples    queueSamples
	// unattributed has capacity 1 and signals that Events about unknown objects are to be queued again.
	unattributed chan struct{}
	// eventsListed is true after an informer's first list of Events, until the expired ones are forgotten.
	eventsListed atomic.Bool
	statusDelay  time.Duration
}

// queueSamples are the sampled changes of each queue.
type queueSamples struct {
	objects            *samples[target.Ref]
	events, longEvents *samples[types.NamespacedName]
	statuses           *samples[string]
}

func newQueues(statusDelay time.Duration, tracing Tracing) *queues {
	namespaceOf := func(event types.NamespacedName) string { return event.Namespace }
	return &queues{
		objects:    worker.NewFairQueue("objects", func(ref target.Ref) string { return ref.Namespace }),
		events:     worker.NewFairQueue("events", namespaceOf),
		longEvents: worker.NewFairQueue("long-events", namespaceOf),
		statuses:   worker.NewQueue[string]("statuses"),
		samples: queueSamples{
			newSamples[target.Ref](tracing), newSamples[types.NamespacedName](tracing), newSamples[types.NamespacedName](tracing),
			newSamples[string](tracing),
		},
		unattributed: make(chan struct{}, 1),
		statusDelay:  statusDelay,
	}
}

// statusLater queues a workload after the status delay, in which further changes may come.
func (q *queues) statusLater(workload string) {
	q.samples.statuses.add(workload)
	q.statuses.AddAfter(workload, q.statusDelay)
}

// requeueUnattributed requests that the Events about unknown objects are queued again: their attribution depends on the
// declared workloads, the synced kinds and the owners of other objects. It does not block.
func (q *queues) requeueUnattributed() {
	select {
	case q.unattributed <- struct{}{}:
	default:
	}
}

func (q *queues) shutDown() {
	q.objects.ShutDown()
	q.events.ShutDown()
	q.longEvents.ShutDown()
	q.statuses.ShutDown()
}
