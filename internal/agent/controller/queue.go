package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// changeQueue adds workloads to the controller's queue, once that is there.
type changeQueue struct {
	mu    sync.Mutex
	queue priorityqueue.PriorityQueue[reconcile.Request]
}

func (q *changeQueue) set(queue priorityqueue.PriorityQueue[reconcile.Request]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queue = queue
}

func (q *changeQueue) add(workload string, delay time.Duration) {
	q.mu.Lock()
	queue := q.queue
	q.mu.Unlock()
	if queue != nil {
		queue.AddWithOpts(priorityqueue.AddOpts{After: delay, Priority: new(statusPriority)},
			reconcile.Request{NamespacedName: types.NamespacedName{Name: workload}})
	}
}
