package reporter

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

// queues hold the keys of changed objects, Events and workloads until a worker processes them. A key is in its queue once,
// and no two workers process it at a time.
type queues struct {
	objects  workqueue.TypedRateLimitingInterface[target.Ref]
	events   workqueue.TypedRateLimitingInterface[types.NamespacedName]
	statuses workqueue.TypedRateLimitingInterface[string] // by workload
	// unattributed has capacity 1 and signals that Events about unknown objects are to be queued again.
	unattributed chan struct{}
	// eventsListed is true if reported Events may have expired while no informer watched them.
	eventsListed atomic.Bool
	statusDelay  time.Duration
}

func newQueues(statusDelay time.Duration) *queues {
	return &queues{
		objects:      newQueue[target.Ref]("objects"),
		events:       newQueue[types.NamespacedName]("events"),
		statuses:     newQueue[string]("statuses"),
		unattributed: make(chan struct{}, 1),
		statusDelay:  statusDelay,
	}
}

func newQueue[T comparable](name string) workqueue.TypedRateLimitingInterface[T] {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[T](50*time.Millisecond, 30*time.Second)
	return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[T]{Name: name})
}

// statusLater queues a workload after the status delay, in which further changes may come.
func (q *queues) statusLater(workload string) { q.statuses.AddAfter(workload, q.statusDelay) }

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
	q.statuses.ShutDown()
}

func (q *queues) len() int { return q.objects.Len() + q.events.Len() + q.statuses.Len() }

// work processes a queue until it is shut down and empty. A key that fails is retried later.
func work[T comparable](
	ctx context.Context, queue workqueue.TypedRateLimitingInterface[T], process func(context.Context, T) error, log logr.Logger,
) {
	for {
		key, shutdown := queue.Get()
		if shutdown {
			return
		}
		if err := process(ctx, key); err != nil && ctx.Err() == nil {
			if queue.NumRequeues(key) == 0 {
				log.Info("read failed; it is retried", "key", fmt.Sprint(key), "error", err.Error())
			}
			queue.AddRateLimited(key)
		} else {
			queue.Forget(key)
		}
		queue.Done(key)
	}
}
