package store

import (
	"crypto/rand"
	"encoding/binary"
	"sync"
	"time"
)

// ids generates row IDs. As those of Threeport's API, they grow with time and exceed 2^53, which exposes clients that
// convert them to floating point.
//
// The upper 48 bits count units of 10 µs since 2015. The lower 15 are random, so that the ID of a row cannot be computed
// from its time or from another ID. Processes may share a database. Two of them rarely make the same ID, and then the
// write of the second is repeated with another one. It is safe for concurrent use.
type ids struct {
	mu   sync.Mutex
	tick int64 // of the newest ID
}

const randomBits = 15

var idEpoch = time.Date(2015, 1, 1, 0, 0, 0, 0, time.UTC)

// newIDs returns a generator of IDs above newest, whatever the clock says.
func newIDs(newest int64) *ids { return &ids{tick: newest >> randomBits} }

func (g *ids) next() int64 {
	var random [2]byte
	_, _ = rand.Read(random[:]) // never fails
	// Odd, so that no ID is exact as a floating-point number.
	low := int64(binary.BigEndian.Uint16(random[:]))&(1<<randomBits-1) | 1
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tick = max(g.tick+1, int64(time.Since(idEpoch)/(10*time.Microsecond)))
	return g.tick<<randomBits | low
}
