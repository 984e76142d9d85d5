package store

import (
	"math/rand/v2"
	"sync"
	"time"
)

// ids generates row IDs. As those of Threeport's API, they grow with time and exceed 2^53, which exposes clients that
// convert them to floating point.
//
// The upper 48 bits count units of 10 µs since 2015; the lower 15 identify the process, since processes may share a
// database. It is safe for concurrent use.
type ids struct {
	process int64 // 15 bits, odd so that it is never 0

	mu   sync.Mutex
	tick int64 // of the newest ID
}

const processBits = 15

var idEpoch = time.Date(2015, 1, 1, 0, 0, 0, 0, time.UTC)

// newIDs generates IDs above the newest that exists, whatever the clock says.
func newIDs(newest int64) *ids {
	return &ids{
		process: rand.Int64N(1<<processBits) | 1, //nolint:gosec // distinct, not secret
		tick:    newest >> processBits,
	}
}

func (g *ids) next() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tick = max(g.tick+1, int64(time.Since(idEpoch)/(10*time.Microsecond)))
	return g.tick<<processBits | g.process
}
