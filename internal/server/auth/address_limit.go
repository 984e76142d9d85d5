package auth

import "sync"

// addressLimit bounds the simultaneous requests of one kind, in total and for each client address. So no address keeps the others
// out. It is safe for concurrent use.
type addressLimit struct {
	total, perAddress int

	mu        sync.Mutex
	requests  int
	byAddress map[string]int
}

func newAddressLimit(total, perAddress int) *addressLimit {
	return &addressLimit{total: total, perAddress: perAddress, byAddress: map[string]int{}}
}

// tryAcquire counts a request of an address, unless there are too many. The caller releases it.
func (l *addressLimit) tryAcquire(address string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.requests >= l.total || l.byAddress[address] >= l.perAddress {
		return false
	}
	l.requests++
	l.byAddress[address]++
	return true
}

func (l *addressLimit) release(address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests--
	if l.byAddress[address]--; l.byAddress[address] == 0 {
		delete(l.byAddress, address)
	}
}
