package server

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/threeport/threeport-agent/internal/server/auth"
	"github.com/threeport/threeport-agent/internal/server/store"
)

// v0Copies is how often a value of v0 is in memory at once: as received and as decoded, or as read and as encoded.
const v0Copies = 2

// The bounds of the memory of answers, in bytes. The viewers leave enough for any answer to others, except for the largest
// definitions. Bodies have bounds of their own, so that readers do not keep agents out.
const (
	answerBytes          = 96 << 20
	answerBytesPerRole   = answerBytes / 4 * 3
	answerBytesPerSender = answerBytes / 3
)

// largestV0Bodies is the number of the largest bodies that are in memory at once, of different senders. A role has three quarters
// of their memory, so agents leave half a body to administrators: 8 MiB by default.
const largestV0Bodies = 2

// A list of more than longList rows, which takes seconds, needs one of v0LongLists slots. A sender has one at a time, and a role
// leaves one to the others.
const (
	longList           = store.MaxSize
	v0LongLists        = 4
	v0LongListsPerRole = v0LongLists - 1
)

// A search reads texts of many rows, for up to the search timeout of the store. It needs one of searchSlots, so that searches
// leave a connection of the database and a processor to other readers. A sender has one at a time, and a role leaves one to
// the others.
const (
	searchSlots        = 3
	searchSlotsPerRole = searchSlots - 1
)

// writesPerSender is the number of rows that a sender writes at once. Writes of one row wait for each other, and for a report set that
// changes it, each with a connection of the database.
const writesPerSender = 2

// largeValues is the size, in bytes, above which a request needs a turn of its sender, since values of 8 MiB take a second. The pause
// grows with the size, because a large request also delays those of others for longer.
const largeValues = 64 << 10

// v0Wait is how long a request of v0 waits for memory or a slot before the server asks its sender to repeat it.
const v0Wait = 5 * time.Second

// v0Limits bound the requests of v0.
type v0Limits struct {
	body      int64 // bytes of one body
	bodies    *limiter
	answers   *limiter
	longLists *limiter
	searches  *limiter // of all lists
	writes    *limiter
	turns     turns // of requests with large values
	reads     rowReads
}

func newV0Limits(body int64) *v0Limits {
	largest := largestV0Memory(body)
	return &v0Limits{
		body:      body,
		bodies:    newLimiter("memory of v0 bodies", largestV0Bodies*largest, largest, v0Wait).limitRoles(largest + largest/2),
		answers:   newLimiter("memory of answers", answerBytes, answerBytesPerSender, v0Wait).limitRoles(answerBytesPerRole),
		longLists: newLimiter("long lists", v0LongLists, 1, v0Wait).limitRoles(v0LongListsPerRole),
		searches:  newLimiter("searches", searchSlots, 1, v0Wait).limitRoles(searchSlotsPerRole),
		writes:    newLimiter("v0 writes", math.MaxInt64, writesPerSender, v0Wait),
		turns:     newTurns("large v0 requests", v0Wait, 0, maxPause),
		reads:     newRowReads(),
	}
}

// largestV0Memory is the memory of a body of the largest size that changes a row of the largest size.
func largestV0Memory(body int64) int64 {
	row := 0
	for _, r := range store.Resources {
		row = max(row, r.MaxChunkBytes())
	}
	return v0Copies * (body + int64(row))
}

// agentBody is the maximum size of a body of an agent, in bytes, if --max-v0-body is not less. An agent sends the documents that
// it may set, and a few texts.
func agentBody(r *store.Resource) int64 {
	size := int64(1 << 20)
	for _, f := range r.Fields {
		if f.Kind == store.Document && slices.Contains(auth.AgentFields(r.Object), f.Name) {
			size += int64(f.MaxBytes)
		}
	}
	return size
}

// bodyLimit is the limit of the request's body, by the role of its sender.
func (r *v0Request) bodyLimit() bodyLimit {
	limit := r.body
	if auth.PrincipalFrom(r.Context()).Role == auth.RoleAgent {
		limit.bytes = min(limit.bytes, agentBody(r.resource))
	}
	return limit
}

// acquire reserves memory for a value of n bytes, or fails with errLimitReached. The caller releases the reservation.
func (r *v0Request) acquire(from *limiter, n int64) (*reservation, error) {
	return from.acquire(r.Context(), senderOf(r.Request), v0Copies*n)
}

// firstBytes is the size of the first buffer for the body.
func (r *v0Request) firstBytes() int64 {
	if r.ContentLength >= 0 {
		return min(firstRead, r.ContentLength+1) // the end of the body shows after its last byte
	}
	return firstRead
}

// readBody reads the body. The reservation has memory for its first buffer, and grows with the body.
func (r *v0Request) readBody(held *reservation) ([]byte, error) {
	first := r.firstBytes()
	others := held.held - v0Copies*first
	grow := func(size int64) error { return held.grow(others + v0Copies*size) }
	body, err := r.bodyLimit().read(r.w, r.Request, first, grow)
	if err == nil || errors.Is(err, errLimitReached) {
		return body, err
	}
	return nil, bodyError(err)
}

// bodyError is the error of a body that did not arrive. It is no error of the database, although the errors of both
// connections look alike.
func bodyError(err error) error {
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return fmt.Errorf("read body: %w", err)
	}
	return &httpError{http.StatusInternalServerError, "read body: " + err.Error()}
}

// bodyBytes is the size of the body, or the limit if the size is unknown.
func (r *v0Request) bodyBytes() int64 {
	if r.ContentLength >= 0 {
		return r.ContentLength
	}
	return r.bodyLimit().bytes
}

// inTurn does the work of a request with values of a size, in bytes. If they are large, it waits for a turn of the sender. The work
// includes reading the body, which is the most of it if the server rejects the body. Administrators are trusted, and need no turn.
func (v *v0API) inTurn(req *v0Request, size int64, work func() error) error {
	if size <= largeValues || auth.PrincipalFrom(req.Context()).Role == auth.RoleAdmin {
		return work()
	}
	return v.limits.turns.do(req.Context(), senderOf(req.Request), size/largeValues, work)
}

// write runs the transactions of a request when the sender has few others. Administrators are trusted: a row that an agent has locked
// does not delay their other writes.
func (v *v0API) write(req *v0Request, transactions func() error) error {
	if auth.PrincipalFrom(req.Context()).Role == auth.RoleAdmin {
		return transactions()
	}
	slot, err := v.limits.writes.acquire(req.Context(), senderOf(req.Request), 1)
	if err != nil {
		return fmt.Errorf("%w: %w", errWrites, err)
	}
	defer slot.release()
	return transactions()
}
