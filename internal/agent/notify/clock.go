package notify

import (
	"sync"
	"time"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// clock gives versions to what has none of its own: times in microseconds that only grow, beyond whatever the control
// plane turned out to have. So what is sent later is newer, also if the system's clock was put back, or an agent before
// this one had one that was ahead. The zero value is ready.
type clock struct {
	mu   sync.Mutex
	last int64
}

// next returns a version that is newer than all before.
func (c *clock) next() threeport.ID {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = max(time.Now().UnixMicro(), c.last+1)
	return threeport.ID(c.last)
}

// latest bounds what is believed of a version: the year 2200. A clock that was raised to the end of its numbers could not
// grow any more.
const maxClock = threeport.ID(230 * 365 * 24 * 3600 * 1_000_000)

// raise makes the next version newer than one that the control plane has.
func (c *clock) advance(has threeport.ID) {
	if has > maxClock {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = max(c.last, int64(has))
}
