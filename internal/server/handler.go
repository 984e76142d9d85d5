package server

import (
	"io"
	"log/slog"
	"net/http"
	"strconv"

	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// api answers requests from a store.
type api struct {
	store  *store.Store
	log    *slog.Logger
	bodies *bodies
}

// Handler serves the API from a store, and /healthz. Failures that are the
// server's own are logged, without any part of a body.
func Handler(s *store.Store, log *slog.Logger) http.Handler {
	return (&api{store: s, log: log, bodies: newBodies()}).handler()
}

func (a *api) handler() http.Handler {
	mux := http.NewServeMux()
	for _, r := range store.Resources {
		route(mux, "/v0/"+r.Path, map[string]http.HandlerFunc{
			http.MethodPost: a.handle(r, a.create),
			http.MethodGet:  a.handle(r, a.list),
		})
		route(mux, "/v0/"+r.Path+"/{id}", map[string]http.HandlerFunc{
			http.MethodGet:    a.handle(r, a.get),
			http.MethodPatch:  a.handle(r, a.update),
			http.MethodDelete: a.handle(r, a.remove),
		})
		route(mux, "/"+r.Path+"/versions", map[string]http.HandlerFunc{
			http.MethodGet: versions(r),
		})
	}
	route(mux, "/healthz", map[string]http.HandlerFunc{http.MethodGet: a.health})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { answerBare(w, http.StatusNotFound) })
	return mux
}

// route serves a path's methods, and answers 405 to any other.
func route(mux *http.ServeMux, path string, methods map[string]http.HandlerFunc) {
	mux.HandleFunc(path, func(w http.ResponseWriter, req *http.Request) {
		if serve, ok := methods[req.Method]; ok {
			serve(w, req)
			return
		}
		answerBare(w, http.StatusMethodNotAllowed)
	})
}

// handle makes a handler of a function that answers for itself or fails.
func (a *api) handle(r *store.Resource, serve func(http.ResponseWriter, *http.Request, *store.Resource) error) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		err := serve(w, req, r)
		if err == nil {
			return
		}
		f := failureOf(err)
		if isOwnFault(err, f) && req.Context().Err() == nil {
			a.log.Error("Request failed", "method", req.Method, "path", req.URL.Path, "error", err)
		}
		if f.code == http.StatusServiceUnavailable {
			w.Header().Set("Retry-After", strconv.Itoa(int(retryAfter.Seconds())))
		}
		answerFailure(w, r, f)
	}
}

// one is the Meta of an answer with a single object.
var one = threeport.Meta{Page: 1, Size: 1, TotalCount: 1}

func (a *api) create(w http.ResponseWriter, req *http.Request, r *store.Resource) error {
	values, done, err := a.readPayload(w, req, r)
	if err != nil {
		return err
	}
	defer done()
	if err := checkComplete(r, values); err != nil {
		return err
	}
	if err := a.guard(req.Context(), r, values); err != nil {
		return err
	}
	o, created, err := a.store.Create(req.Context(), r, values)
	if err != nil {
		return err
	}
	code := http.StatusCreated
	if !created { // then it is not what was sent, and may be another cluster's
		if err := a.guard(req.Context(), r, nil, o); err != nil {
			return err
		}
		code = http.StatusOK
	}
	a.hear(req, r, values, o)
	answerRows(w, r, code, one, o)
	return nil
}

func (a *api) get(w http.ResponseWriter, req *http.Request, r *store.Resource) error {
	id, err := pathID(req)
	if err != nil {
		return err
	}
	o, err := a.store.Get(req.Context(), r, id)
	if err != nil {
		return err
	}
	if err := a.guard(req.Context(), r, nil, o); err != nil {
		return err
	}
	answerRows(w, r, http.StatusOK, one, o)
	return nil
}

func (a *api) list(w http.ResponseWriter, req *http.Request, r *store.Resource) error {
	sel, err := selectionOf(r, req.URL.Query())
	if err != nil {
		return err
	}
	if err := a.guardList(req.Context(), r, sel); err != nil {
		return err
	}
	rows, total, err := a.store.List(req.Context(), r, sel)
	if err != nil {
		return err
	}
	if err := a.guard(req.Context(), r, nil, rows...); err != nil {
		return err
	}
	answerRows(w, r, http.StatusOK, threeport.Meta{Page: sel.Page, Size: sel.Size, TotalCount: total}, rows...)
	return nil
}

// update looks for the row before it looks at the body, as v0 does: a bad body
// for a row that is gone is answered with 404.
func (a *api) update(w http.ResponseWriter, req *http.Request, r *store.Resource) error {
	id, err := pathID(req)
	if err != nil {
		return err
	}
	before, err := a.store.Get(req.Context(), r, id)
	if err != nil {
		return err
	}
	values, done, err := a.readPayload(w, req, r)
	if err != nil {
		return err
	}
	defer done()
	if err := a.guard(req.Context(), r, values, before); err != nil {
		return err
	}
	o, err := a.store.Update(req.Context(), r, id, values)
	if err != nil {
		return err
	}
	a.hear(req, r, values, o)
	answerRows(w, r, http.StatusOK, one, o)
	return nil
}

func (a *api) remove(w http.ResponseWriter, req *http.Request, r *store.Resource) error {
	id, err := pathID(req)
	if err != nil {
		return err
	}
	o, err := a.store.Remove(req.Context(), r, id)
	if err != nil {
		return err
	}
	answerRows(w, r, http.StatusOK, one, o)
	return nil
}

func (a *api) health(w http.ResponseWriter, req *http.Request) {
	if err := a.store.Ping(req.Context()); err != nil {
		http.Error(w, "the database does not answer", http.StatusServiceUnavailable)
		return
	}
	_, _ = io.WriteString(w, "ok\n")
}

// versions answers which versions of an object there are: the way to discover a
// capability.
func versions(r *store.Resource) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, []byte(`{"API":"`+r.Object+`","Versions":["v0"]}`+"\n"))
	}
}

// readPayload reads the values that a body has. They take memory until done is
// called.
func (a *api) readPayload(w http.ResponseWriter, req *http.Request, r *store.Resource) (values []any, done func(), err error) {
	room, err := a.bodies.enter(req)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			room.free()
		}
	}()
	body, err := room.receive(w, req)
	if err != nil {
		return nil, nil, err
	}
	values, err = readValues(r, body, req.Header.Get("Content-Type"))
	return values, room.free, err
}

// pathID is the {id} of the path. v0 answers 500 to what is not an int64.
func pathID(req *http.Request) (int64, error) {
	id, err := strconv.ParseInt(req.PathValue("id"), 10, 64)
	if err != nil {
		return 0, &failure{http.StatusInternalServerError, "the ID is not a 64-bit integer"}
	}
	return id, nil
}
