package server

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/threeport/threeport-agent/internal/server/auth"
	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/threeport"
)

const (
	// pingInterval is how long a stream may be silent. The page takes a connection for dead after three missing pings, and
	// proxies close a silent one after a minute.
	pingInterval = 5 * time.Second

	// watchRetryAfter is how long a client waits for the end of another watch. Others end when people close their pages.
	watchRetryAfter = 10 * time.Second
)

// subscription is a source of changed rows. Next waits for rows that have changed since the last call, each in its newest
// version. It returns [store.ErrReset] if rows were skipped, and [store.ErrEnded] at the end. Place is where to resume after
// the rows that Next returned.
type subscription interface {
	Next(ctx context.Context) ([]*store.Change, error)
	Position() threeport.ID
	Close()
}

// watches are the streams of changed rows.
type watches struct {
	subscribe    func(ctx context.Context, q store.WatchQuery) (subscription, error)
	pingInterval time.Duration
	metrics      *metrics
	// onStop calls end when the server stops, unless forget is called before: a stream does not end by itself.
	onStop func(end func()) (forget func() bool)
	slots  *watchSlots
}

func newWatches(s *store.Store, perPrincipal int, m *metrics, onStop func(func()) func() bool) *watches {
	return &watches{
		subscribe:    func(ctx context.Context, q store.WatchQuery) (subscription, error) { return s.Watch(ctx, q) },
		pingInterval: pingInterval, metrics: m, onStop: onStop, slots: newWatchSlots(perPrincipal),
	}
}

type watchRequest struct {
	WorkloadFilter
	ID          string `query:"id" pattern:"^[0-9]{1,19}$" patternDescription:"a decimal of 64 bits" doc:"The ID of the only workload to watch, together with one type and no other filter."`
	LastEventID string `header:"Last-Event-ID" pattern:"^[0-9]{1,19}$" patternDescription:"the ID of an event" doc:"The client's last event. The stream resumes there, and repeats changes of about a minute before. Browsers send it automatically."`
	// huma identifies a parameter by its name and its place.
	LastEvent string `query:"lastEventID" pattern:"^[0-9]{1,19}$" patternDescription:"the ID of an event" doc:"Like Last-Event-ID, which takes precedence, for clients that cannot send headers."`
}

var watchWorkloadsOperation = huma.Operation{
	OperationID: "watch-workloads",
	Tags:        []string{tagWorkloads}, Summary: "Watch workloads",
	Description: "Server-sent events from now on, or from the client's last event. workload has the newest version of a row that " +
		"has changed, was deleted, or no longer matches. reset reports that events were missed: reload everything. ping " +
		"keeps the connection alive. Each event has an ID, and so has the opening of the stream. To miss nothing, start the " +
		"watch before the list.",
	Errors: badParameters,
}

func (ws *watches) watch(ctx context.Context, request *watchRequest) (*huma.StreamResponse, error) {
	q, err := request.query()
	if err != nil {
		return nil, err
	}
	slot, err := ws.slots.acquire(auth.PrincipalFrom(ctx))
	if err != nil {
		return nil, tooManyRequests(err.Error(), watchRetryAfter)
	}
	ctx, cancel := context.WithCancel(ctx)
	forget := ws.onStop(cancel)
	closeWatch := func() {
		forget()
		cancel()
		slot.release()
	}
	s, err := ws.subscribe(ctx, q)
	if err != nil {
		closeWatch()
		return nil, storeProblem(ctx, err)
	}
	requestInfoOf(ctx).stream = true
	return &huma.StreamResponse{Body: func(answer huma.Context) {
		defer closeWatch()
		defer s.Close()
		_, w := humago.Unwrap(answer)
		if answer.Method() == http.MethodHead {
			_ = newEventStream(w, slot.budget).open("") // nothing comes after the headers
			return
		}
		auth.BeginStream(ctx)
		ws.metrics.watches.Inc()
		defer ws.metrics.watches.Dec()
		ws.stream(ctx, newEventStream(w, slot.budget), s, q.After != nil)
	}}, nil
}

// stream sends events until the client, its credential or the server ends it, or the client stops reading.
func (ws *watches) stream(ctx context.Context, events *eventStream, s subscription, resumed bool) {
	place := ""
	if !resumed {
		place = placeOf(s)
	}
	err := events.open(place)
	for err == nil && ctx.Err() == nil {
		if err = events.wait(ctx); err == nil { // more rows come together then
			err = ws.step(ctx, events, s)
		}
	}
	// A client that has gone or was cut off reconnects. Only a failure of the server is logged.
	if _, gone := errors.AsType[*streamError](err); !gone && ctx.Err() == nil && !errors.Is(err, store.ErrEnded) {
		setCause(ctx, err)
	}
}

// step sends the rows that have changed, or a ping after a silence.
func (ws *watches) step(ctx context.Context, events *eventStream, s subscription) error {
	wait, cancel := context.WithTimeout(ctx, ws.pingInterval)
	defer cancel()
	rows, err := s.Next(wait)
	switch {
	case errors.Is(err, store.ErrReset):
		return events.bare(eventReset, placeOf(s))
	case errors.Is(err, context.DeadlineExceeded) && wait.Err() != nil && ctx.Err() == nil:
		return events.bare(eventPing, placeOf(s))
	case err != nil:
		return err
	default:
		return events.workloads(rows)
	}
}

// placeOf is the ID of an event that has no row.
func placeOf(s subscription) string { return strconv.FormatInt(int64(s.Position()), 10) }

// query is the request as a query to the store.
func (r *watchRequest) query() (store.WatchQuery, error) {
	q := store.WatchQuery{Filter: r.WorkloadFilter.query()}
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
		return q, parameterProblem("query.id", "one type with it, and no status, cluster or text")
	}
	id, err := parseID("query.id", r.ID)
	q.Instance = &threeport.Instance{Type: r.Type[0], ID: id}
	q.Filter = store.WorkloadQuery{}
	return q, err
}
