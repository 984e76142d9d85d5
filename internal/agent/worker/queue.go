// Package worker processes keys from work queues of client-go, and retries those that fail.
package worker

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unique"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
)

// The waits before a key is processed again: doubled with each failure, up to the larger.
const (
	retryMin = 50 * time.Millisecond
	retryMax = 30 * time.Second
)

// ErrRetry makes [Queue.Work] process a key again and log nothing.
var ErrRetry = errors.New("retry later")

// Queue holds keys until a worker processes them. A key is in the queue once, and no two workers process it at a time.
//
// The queue of client-go keeps maps as large as the most keys that were queued at a time, such as all objects of a cluster. So its keys
// are handles, which have a pointer's size.
type Queue[T comparable] struct {
	keys workqueue.TypedRateLimitingInterface[unique.Handle[T]]
	name string
}

// NewQueue returns a queue. Its name is a label of client-go's metrics.
func NewQueue[T comparable](name string) Queue[T] {
	return newQueue[T](name, nil)
}

// NewFairQueue returns a queue that serves groups of keys in turn: a group with many keys does not delay the others.
func NewFairQueue[T comparable](name string, groupOf func(T) string) Queue[T] {
	byHandle := func(key unique.Handle[T]) string { return groupOf(key.Value()) }
	return newQueue[T](name, &turns[unique.Handle[T]]{groupOf: byHandle, waiting: map[string][]unique.Handle[T]{}})
}

// newQueue returns a queue that serves keys in an order; nil for the order in which they were added.
func newQueue[T comparable](name string, order workqueue.Queue[unique.Handle[T]]) Queue[T] {
	type key = unique.Handle[T]
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[key](retryMin, retryMax)
	queue := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[key]{Name: name, Queue: order})
	delaying := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[key]{Name: name, Queue: queue})
	return Queue[T]{workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[key]{DelayingQueue: delaying}), name}
}

// Add adds a key.
func (q Queue[T]) Add(key T) { q.keys.Add(unique.Make(key)) }

// AddAfter adds a key after a time.
func (q Queue[T]) AddAfter(key T, d time.Duration) { q.keys.AddAfter(unique.Make(key), d) }

// Len is the number of keys that wait for a worker.
func (q Queue[T]) Len() int { return q.keys.Len() }

// NumRequeues is how often a key has failed since its last success.
func (q Queue[T]) NumRequeues(key T) int { return q.keys.NumRequeues(unique.Make(key)) }

// ShutDown ends the queue: no key can be added, and Work returns when the others are processed.
func (q Queue[T]) ShutDown() { q.keys.ShutDown() }

// Work processes keys until the queue is shut down and empty. A key that fails is processed again later, unless the context
// has ended. The first failure of a key is logged.
func (q Queue[T]) Work(ctx context.Context, process func(context.Context, T) error, log logr.Logger) {
	for {
		key, shutdown := q.keys.Get()
		if shutdown {
			return
		}
		if err := process(ctx, key.Value()); err != nil && ctx.Err() == nil {
			if q.keys.NumRequeues(key) == 0 && !errors.Is(err, ErrRetry) {
				log.Info("Processing a key failed. It is retried with backoff.", "queue", q.name, "key", fmt.Sprint(key.Value()), "error", err.Error())
			}
			q.keys.AddRateLimited(key)
		} else {
			q.keys.Forget(key)
		}
		q.keys.Done(key)
	}
}
