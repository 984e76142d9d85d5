package notify

import (
	"sync"
	"time"
)

// intervals are the times of a negotiation.
type intervals struct {
	// tick is how often the times below are checked.
	tick time.Duration
	// reprobe is the wait before a control plane is asked again for report sets and their features: it may be upgraded.
	reprobe time.Duration
	// retry is the wait after a failed probe. It doubles with each further failure, up to maxRetry.
	retry, maxRetry time.Duration
	// downgradeBackoff is the wait after a downgrade. It doubles with each further downgrade, up to reprobe, because old and
	// new replicas may answer in turn during a rollout. It is reset after report sets have worked for the time stable.
	downgradeBackoff, stable time.Duration
	// heartbeat is the wait after the last set before an empty one is sent.
	heartbeat time.Duration
	// recount is how often the delivery counts of sent statuses are compared with the outbox.
	recount time.Duration
}

func defaultIntervals() intervals {
	return intervals{
		tick: time.Second, reprobe: 5 * time.Minute, retry: time.Second, maxRetry: 30 * time.Second,
		downgradeBackoff: 30 * time.Second, stable: 10 * time.Minute, heartbeat: 15 * time.Second, recount: 15 * time.Second,
	}
}

// schedule decides when to ask the control plane for report sets and their features.
type schedule struct {
	intervals

	mu         sync.Mutex
	due        time.Time
	failures   int       // of probes, since the last answer
	downgrades int       // since report sets were stable
	upgraded   time.Time // the last upgrade
}

func (s *schedule) isDue() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !time.Now().Before(s.due)
}

// probed notes that the control plane was asked.
func (s *schedule) probed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wait := s.reprobe
	if err == nil {
		s.failures = 0
	} else {
		s.failures++
		wait = min(s.retry<<min(s.failures-1, 10), s.maxRetry)
	}
	s.due = time.Now().Add(wait)
}

// upgrade notes that the control plane takes report sets.
func (s *schedule) upgrade() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.upgraded = time.Now()
}

// downgrade notes that the control plane no longer takes report sets. It returns the wait before the next probe.
func (s *schedule) downgrade() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.upgraded) >= s.stable {
		s.downgrades = 0
	}
	wait := min(s.downgradeBackoff<<min(s.downgrades, 10), s.reprobe)
	s.downgrades++
	s.due = time.Now().Add(wait)
	return wait
}
