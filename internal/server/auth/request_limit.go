package auth

import "sync"

// requestLimit bounds the simultaneous requests of one kind, in total and for each key, such as a client address or a principal. So
// no address or principal keeps the others out. It is safe for concurrent use.
type requestLimit struct {
	total, perKey int

	mu       sync.Mutex
	requests int
	byKey    map[string]int
}

func newRequestLimit(total, perKey int) *requestLimit {
	return &requestLimit{total: total, perKey: perKey, byKey: map[string]int{}}
}

// tryAcquire counts a request, unless there are too many. The caller releases it.
func (l *requestLimit) tryAcquire(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.requests >= l.total || l.byKey[key] >= l.perKey {
		return false
	}
	l.requests++
	l.byKey[key]++
	return true
}

func (l *requestLimit) release(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests--
	if l.byKey[key]--; l.byKey[key] == 0 {
		delete(l.byKey, key)
	}
}
