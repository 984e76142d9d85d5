package server

import (
	"encoding/binary"
	"math"
	"net/http"
	"sync"
	"time"
)

// The bytes per second that a client may send besides bodies that a handler reads, and the most at once. A frame of HTTP/2 may begin a
// request and reset it, or be no request at all. It comes to no handler, so no other limit counts it, and it costs the server much more
// than the client. From its first request on, a connection of HTTP/1.1 counts records of TLS instead of bytes: its bytes come to a handler.
const (
	// Those of one connection without an authenticated request. Its first read is never late, so the first request of a sender ends this
	// limit. The burst is small, because a client may connect again and again. In a crowd of connections, each has a part of the rate.
	anonymousBytesPerSecond = 16 << 10
	anonymousBytesBurst     = 1 << 10

	// Those of all connections of one sender together.
	overheadPerSecond = 256 << 10
	overheadBurst     = 256 << 10

	// anonymousCrowd is the number of connections without an authenticated request whose rate all together have: that of one sender.
	anonymousCrowd = overheadPerSecond / anonymousBytesPerSecond

	// recordCost is how many bytes a record of TLS counts. A record may update a key. Then the server derives keys and sends a record.
	recordCost = 64
)

// overheadCheck is how often a connection that pauses checks whether it is authenticated meanwhile, or closed.
const overheadCheck = 50 * time.Millisecond

// overhead counts bytes that are no body: a bucket of tokens that may have a debt. Several connections may wait for its end; each has the
// place of the bytes that it has received, so that they do not all go on at once.
type overhead struct {
	perSecond, burst float64
	shared           bool // by the connections of a sender

	mu             sync.Mutex
	spent, allowed float64   // bytes since it was made; allowed is at most a burst more than spent
	at             time.Time // of allowed
}

// newOverhead is that of a connection without an authenticated request.
func newOverhead(now time.Time) *overhead {
	return &overhead{perSecond: anonymousBytesPerSecond, burst: anonymousBytesBurst, allowed: anonymousBytesBurst, at: now}
}

func newSharedOverhead(now time.Time) *overhead {
	return &overhead{perSecond: overheadPerSecond, burst: overheadBurst, shared: true, allowed: overheadBurst, at: now}
}

// spend counts bytes that were received, and returns their place.
func (o *overhead) spend(bytes int) (place float64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.spent += float64(bytes)
	return o.spent
}

// place returns the place of the last bytes.
func (o *overhead) place() float64 { return o.spend(0) }

// giveBack takes back bytes that do not count.
func (o *overhead) giveBack(bytes int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.allow(float64(bytes))
}

func (o *overhead) allow(bytes float64) { o.allowed = min(o.allowed+bytes, o.spent+o.burst) }

// wait returns how long a connection has to pause after the bytes at a place; 0 if it has not. In a crowd of connections, each has a part
// of the usual rate.
func (o *overhead) wait(place float64, now time.Time, crowd int) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	perSecond := o.perSecond / float64(crowd)
	if passed := now.Sub(o.at).Seconds(); passed > 0 {
		o.allow(passed * perSecond)
		o.at = now
	}
	if o.allowed >= place {
		return 0
	}
	return time.Duration((place - o.allowed) / perSecond * float64(time.Second))
}

// isFull reports whether a new bucket would be the same.
func (o *overhead) isFull(now time.Time) bool { return o.wait(o.place()+o.burst, now, 1) == 0 }

// isLimited reports whether bytes count. A trusted proxy has the requests of many clients, and a TLS handshake has a limit of its own.
func (c *connection) isLimited() bool {
	return c.refused != nil && c.handshake.Load() <= 0
}

// received counts what the client sent, and lets the connection of a sender pause before the server has it.
func (c *connection) received(bytes []byte) {
	count, records := len(bytes), c.records.next(bytes)
	if !c.isLimited() {
		return
	}
	if c.isHTTP1.Load() {
		count = recordCost * records
	}
	o := c.overhead.Load()
	if place := o.spend(count); o.shared {
		c.pause(func() time.Duration { return o.wait(place, time.Now(), 1) })
	}
}

// awaitOverhead waits until a client without an authenticated request may send more. It comes before a read and not after it, so that a
// request that authenticates the connection ends the pause.
func (c *connection) awaitOverhead() {
	c.pause(func() time.Duration {
		o := c.overhead.Load()
		if o.shared || !c.isLimited() {
			return 0
		}
		return o.wait(o.place(), time.Now(), c.of.crowd(anonymousCrowd))
	})
}

// mostAtOnce is the number of bytes that one read may take. A record of TLS has up to 16 KiB, which are 1,600 frames.
func (c *connection) mostAtOnce() int {
	if !c.isLimited() || c.overhead.Load().shared {
		return math.MaxInt
	}
	return anonymousBytesBurst
}

// pause returns when wait is 0, or the connection is closed.
func (c *connection) pause(wait func() time.Duration) {
	for {
		rest := wait()
		if rest <= 0 {
			return
		}
		timer := time.NewTimer(min(rest, overheadCheck))
		select {
		case <-timer.C:
		case <-c.done:
			timer.Stop()
			return
		}
	}
}

// bodyRead takes back the bytes of a body that a handler has read.
func bodyRead(req *http.Request, bytes int) {
	if opened, ok := req.Context().Value(connectionKey{}).(*connection); ok && opened.isLimited() && !opened.isHTTP1.Load() {
		opened.overhead.Load().giveBack(bytes)
	}
}

// tlsRecords follows the records of TLS in the bytes of a client.
type tlsRecords struct {
	header []byte // that has arrived of the next record
	rest   int    // bytes of the present record that have not arrived
}

// next returns the number of records whose header ends in these bytes.
func (r *tlsRecords) next(bytes []byte) (records int) {
	const headerBytes = 5 // type, version and length: RFC 8446, section 5.1
	for len(bytes) > 0 {
		if r.rest > 0 {
			n := min(r.rest, len(bytes))
			r.rest, bytes = r.rest-n, bytes[n:]
			continue
		}
		n := min(headerBytes-len(r.header), len(bytes))
		r.header, bytes = append(r.header, bytes[:n]...), bytes[n:]
		if len(r.header) == headerBytes {
			r.rest, r.header = int(binary.BigEndian.Uint16(r.header[3:])), r.header[:0]
			records++
		}
	}
	return records
}
