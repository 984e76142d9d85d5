package server

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/threeport/threeport-agent/internal/server/auth"
)

// The pauses after a read of rows. A person does not notice maxReadPause. An agent reads many single rows, which take less than
// shortRead.
const (
	maxReadPause = 250 * time.Millisecond
	shortRead    = 10 * time.Millisecond
)

// rowReads let a sender of a role have one read of rows at a time, with a pause as long. So a sender with many reads occupies half of a
// processor. Administrators are trusted.
type rowReads map[auth.Role]turns

func newRowReads() rowReads {
	return rowReads{
		auth.RoleViewer: newTurns("reads", v0Wait, 0, maxReadPause),
		auth.RoleAgent:  newTurns("reads", v0Wait, shortRead, maxReadPause),
	}
}

// do reads when the sender has no other read.
func (r rowReads) do(ctx context.Context, from sender, read func() error) error {
	limited, ok := r[from.role]
	if !ok {
		return read()
	}
	return limited.do(ctx, from, 1, read)
}

// limit is an endpoint that serves one read of a sender at a time.
func (r rowReads) limit(e endpoint) endpoint {
	e.wrap = func(serve http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, req *http.Request) {
			err := r.do(req.Context(), senderOf(req), func() error {
				serve(w, req)
				return nil
			})
			if err != nil {
				setCause(req.Context(), err)
				w.Header().Set("Retry-After", strconv.Itoa(int(retryAfter.Seconds())))
				writeProblem(w, problem(http.StatusServiceUnavailable, "too many reads at once: ask again"))
			}
		}
	}
	return e
}

// reading serves a read of rows of v0.
func (v *v0API) reading(serve func(*v0Request) error) func(*v0Request) error {
	return func(req *v0Request) error {
		return v.limits.reads.do(req.Context(), senderOf(req.Request), func() error { return serve(req) })
	}
}
