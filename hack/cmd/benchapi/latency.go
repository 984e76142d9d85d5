package main

import (
	"slices"
	"sync"
	"time"
)

// latencies collects the durations of requests. It is safe for concurrent use.
type latencies struct {
	mu  sync.Mutex
	all []time.Duration
}

func (l *latencies) add(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, d)
}

func (l *latencies) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.all)
}

// percentile returns the value below which a fraction of all values lies, in milliseconds; 0 without values.
func (l *latencies) percentile(percent float64) float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.all) == 0 {
		return 0
	}
	slices.Sort(l.all)
	i := min(int(percent/100*float64(len(l.all))), len(l.all)-1)
	return float64(l.all[i].Microseconds()) / 1000
}
