package server

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/threeport"
)

const (
	// pingEvery is how long a stream may be silent: proxies end one that is for a minute.
	pingEvery = 15 * time.Second

	// maxWatches bounds the streams of one replica. Each has a goroutine or two, and a connection of HTTP/1.1.
	maxWatches = 10_000
)

// subscription is what a watch is told. Next waits for rows that have changed since the call before, each in its
// newest version; it returns [store.ErrReset] if some were left out, and [store.ErrEnded] if there will be no more. Place is
// where to go on from after what it returned.
type subscription interface {
	Next(ctx context.Context) ([]threeport.Workload, error)
	Position() threeport.ID
	Close()
}

// watches are the streams of rows that change.
type watches struct {
	subscribe func(ctx context.Context, q store.WatchQuery) (subscription, error)
	pingEvery time.Duration
	metrics   *metrics
	// onStop calls a function when the server stops, until it is forgotten: a stream would not end otherwise.
	onStop func(end func()) (forget func() bool)
	open   atomic.Int64
}

type watchRequest struct {
	BoardFilter
	ID          string `query:"id" pattern:"^[0-9]{1,19}$" patternDescription:"a decimal of 64 bits" doc:"The ID of the only workload to watch. It needs one type, and nothing else."`
	LastEventID string `header:"Last-Event-ID" pattern:"^[0-9]{1,19}$" patternDescription:"the ID of an event" doc:"The last event that the client has: the stream goes on from there, with changes of about a minute before it once more. Browsers send it by themselves."`
	// huma documents a parameter by its name and place.
	LastEvent string `query:"lastEventID" pattern:"^[0-9]{1,19}$" patternDescription:"the ID of an event" doc:"As Last-Event-ID, which counts more, for a client that cannot send headers."`
}

func (ws *watches) register(api huma.API) {
	huma.Register(api, huma.Operation{
		OperationID: "watch-workloads", Method: http.MethodGet, Path: "/v0/workloads/watch",
		Tags: []string{tagBoard}, Summary: "Watch workloads",
		Description: "Server-sent events, from now on or from the event that the client has last. workload has a row that has " +
			"changed, in its newest version, or that is gone or does not match any more; reset says that events were missed " +
			"and that everything has to be loaded anew; ping only says that the connection is alive. Each has an ID, and so has " +
			"the opening, which is no event. To miss nothing, watch first and list then.",
		Responses: map[string]*huma.Response{"200": eventStreamResponse(api)},
		Errors: append([]int{
			http.StatusBadRequest, http.StatusUnprocessableEntity,
		}, commonErrors...),
	}, ws.watch)
}

func (ws *watches) watch(ctx context.Context, request *watchRequest) (*huma.StreamResponse, error) {
	q, err := request.query()
	if err != nil {
		return nil, err
	}
	if ws.open.Add(1) > maxWatches {
		ws.open.Add(-1)
		return nil, unavailable(ctx, "too many watches at once: try again", errors.New("too many watches at once"))
	}
	ctx, cancel := context.WithCancel(ctx)
	forget := ws.onStop(cancel)
	leave := func() {
		forget()
		cancel()
		ws.open.Add(-1)
	}
	s, err := ws.subscribe(ctx, q)
	if err != nil {
		leave()
		return nil, readProblem(ctx, err)
	}
	remarkOf(ctx).lasts = true
	return &huma.StreamResponse{Body: func(answer huma.Context) {
		defer leave()
		defer s.Close()
		_, w := humago.Unwrap(answer)
		if answer.Method() == http.MethodHead {
			_ = newEventStream(w).open("") // nothing comes after the headers
			return
		}
		ws.metrics.watches.Inc()
		defer ws.metrics.watches.Dec()
		ws.stream(ctx, newEventStream(w), s, q.After != nil)
	}}, nil
}

// stream sends what there is until the client, its credential or the server ends it, or the client does not read.
func (ws *watches) stream(ctx context.Context, events *eventStream, s subscription, resumed bool) {
	begin := ""
	if !resumed {
		begin = placeOf(s)
	}
	err := events.open(begin)
	for err == nil && ctx.Err() == nil {
		err = ws.step(ctx, events, s)
	}
	// Why it ended the client sees, and comes again; only what is wrong here is worth a line in the log.
	if _, gone := errors.AsType[*streamError](err); !gone && ctx.Err() == nil && !errors.Is(err, store.ErrEnded) {
		note(ctx, err)
	}
}

// step sends what has changed, or a ping if nothing has for a while.
func (ws *watches) step(ctx context.Context, events *eventStream, s subscription) error {
	wait, cancel := context.WithTimeout(ctx, ws.pingEvery)
	defer cancel()
	rows, err := s.Next(wait)
	switch {
	case errors.Is(err, store.ErrReset):
		return events.bare(eventReset, placeOf(s))
	case err != nil && ctx.Err() == nil && wait.Err() != nil:
		return events.bare(eventPing, placeOf(s))
	case err != nil:
		return err
	default:
		return events.workloads(rows)
	}
}

// placeOf is the ID of an event without a row.
func placeOf(s subscription) string { return strconv.FormatInt(int64(s.Position()), 10) }

// query is what the store is asked.
func (r *watchRequest) query() (store.WatchQuery, error) {
	q := store.WatchQuery{Board: r.BoardFilter.query()}
	last := r.LastEvent
	if r.LastEventID != "" {
		last = r.LastEventID
	}
	if last != "" {
		after, err := strconv.ParseInt(last, 10, 64)
		if err != nil {
			return q, parameterProblem("header.Last-Event-ID", "the ID of an event")
		}
		q.After = new(threeport.ID(after))
	}
	if r.ID == "" {
		return q, nil
	}
	if len(r.Type) != 1 || len(r.Status) > 0 || r.Cluster != "" || r.Text != "" {
		return q, parameterProblem("query.id", "one type beside it, and no status, cluster or text")
	}
	id, err := parseID("query.id", r.ID)
	q.Instance = &threeport.Instance{Type: r.Type[0], ID: id}
	q.Board = store.WorkloadQuery{}
	return q, err
}
