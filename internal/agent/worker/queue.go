// Package worker processes keys from work queues of client-go, and retries those that fail.
package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

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
type Queue[T comparable] struct {
	workqueue.TypedRateLimitingInterface[T]
	name string
}

// NewQueue returns a queue. Its name is a label of client-go's metrics.
func NewQueue[T comparable](name string) Queue[T] {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[T](retryMin, retryMax)
	return Queue[T]{workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[T]{Name: name}), name}
}

// NewFairQueue returns a queue that serves groups of keys in turn: a group with many keys does not delay the others.
func NewFairQueue[T comparable](name string, groupOf func(T) string) Queue[T] {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[T](retryMin, retryMax)
	turns := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[T]{Name: name, Queue: &turns[T]{groupOf: groupOf, waiting: map[string][]T{}}})
	delaying := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[T]{Name: name, Queue: turns})
	return Queue[T]{workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[T]{DelayingQueue: delaying}), name}
}

// Work processes keys until the queue is shut down and empty. A key that fails is processed again later, unless the context
// has ended. The first failure of a key is logged.
func (q Queue[T]) Work(ctx context.Context, process func(context.Context, T) error, log logr.Logger) {
	for {
		key, shutdown := q.Get()
		if shutdown {
			return
		}
		if err := process(ctx, key); err != nil && ctx.Err() == nil {
			if q.NumRequeues(key) == 0 && !errors.Is(err, ErrRetry) {
				log.Info("Processing a key failed. It is retried with backoff.", "queue", q.name, "key", fmt.Sprint(key), "error", err.Error())
			}
			q.AddRateLimited(key)
		} else {
			q.Forget(key)
		}
		q.Done(key)
	}
}
