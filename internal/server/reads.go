package server

import (
	"context"
	"net/http"
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
		auth.RoleViewer: newTurns(v0Wait, 0, maxReadPause),
		auth.RoleAgent:  newTurns(v0Wait, shortRead, maxReadPause),
	}
}

// begin waits until a sender has no other read. The caller calls end.
func (r rowReads) begin(ctx context.Context, from sender) (end func(), err error) {
	limited, ok := r[from.role]
	if !ok {
		return func() {}, nil
	}
	turn, err := limited.begin(ctx, from, 1)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	return func() {
		turn.worked = time.Since(began)
		turn.end()
	}, nil
}

// limit is an endpoint that serves one read of a sender at a time.
func (r rowReads) limit(e endpoint) endpoint {
	e.wrap = func(serve http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, req *http.Request) {
			end, err := r.begin(req.Context(), senderOf(req))
			if err != nil {
				w.Header().Set("Retry-After", "1")
				writeProblem(w, problem(http.StatusServiceUnavailable, "too many reads at once: ask again"))
				return
			}
			defer end()
			serve(w, req)
		}
	}
	return e
}

// reading serves a read of rows of v0.
func (v *v0API) reading(serve func(*v0Request) error) func(*v0Request) error {
	return func(req *v0Request) error {
		end, err := v.limits.reads.begin(req.Context(), senderOf(req.Request))
		if err != nil {
			return err
		}
		defer end()
		return serve(req)
	}
}
