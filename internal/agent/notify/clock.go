package notify

import (
	"sync"
	"time"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// clock gives versions to reports that have none in the cluster: times in microseconds that only grow, and that exceed those
// of the control plane. So a later report is newer, even if the system's clock was set back or the clock of an earlier agent
// was ahead. The zero value is ready.
type clock struct {
	mu   sync.Mutex
	last int64
}

// next returns a version that is newer than all earlier ones.
func (c *clock) next() threeport.ID {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = max(time.Now().UnixMicro(), c.last+1)
	return threeport.ID(c.last)
}

// maxClock is the latest version that the clock is advanced to, in the year 2200. At the end of its range it could not grow.
const maxClock = threeport.ID(230 * 365 * 24 * 3600 * 1_000_000)

// advance makes the next version newer than one of the control plane.
func (c *clock) advance(has threeport.ID) {
	if has > maxClock {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = max(c.last, int64(has))
}
