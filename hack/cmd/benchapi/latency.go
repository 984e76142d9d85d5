package main

import (
	"sync"
	"time"

	"github.com/threeport/threeport-agent/hack/figures"
)

// latencies collects the durations of requests. It is safe for concurrent use.
type latencies struct {
	mu  sync.Mutex
	all []float64 // in milliseconds
}

func (l *latencies) add(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, float64(d.Microseconds())/1000)
}

func (l *latencies) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.all)
}

// percentile returns a percentile in milliseconds; 0 without values.
func (l *latencies) percentile(percent float64) float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return figures.Percentile(l.all, percent)
}
