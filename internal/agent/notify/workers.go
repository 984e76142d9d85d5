package notify

import "sync"

// workers counts the goroutines of a notifier that deliver.
type workers struct {
	mu              sync.Mutex
	wanted, running int
}

func (w *workers) setWanted(wanted int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wanted = wanted
}

// join counts another worker; false if there are enough.
func (w *workers) join() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running >= w.wanted {
		return false
	}
	w.running++
	return true
}

// leave reports whether a worker is to end, because there are too many. It no longer counts then.
func (w *workers) leave() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running <= w.wanted {
		return false
	}
	w.running--
	return true
}
