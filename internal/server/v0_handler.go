package server

import (
	"io"
	"log/slog"
	"net/http"
	"strconv"

	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// objectEvent is the object of v0 whose rows agents create.
const objectEvent = "WorkloadEvent"

// v0API serves the rows of v0 from a store. It logs failures of the server, without any part of a body.
type v0API struct {
	store  *store.Store
	log    *slog.Logger
	memory *v0Memory
	// definitions is nil under strict v0.
	definitions *definitions
}

func newV0API(s *store.Store, log *slog.Logger) *v0API {
	return &v0API{store: s, log: log, memory: newV0Memory()}
}

// Handler serves v0 alone from a store, to everyone.
func Handler(s *store.Store, log *slog.Logger) http.Handler {
	return newRouter().serve(newV0API(s, log).strictRoutes())
}

// v0Request is a request for rows of one resource.
type v0Request struct {
	*http.Request
	w        http.ResponseWriter
	resource *store.Resource
	body     bodyLimit
	view     documentView
}

// format is how rows are written for the principal of the request.
func (r *v0Request) format() rowFormat { return rowFormat{r.resource, r.view} }

// rows is the endpoint of a function that answers for itself or fails.
func (v *v0API) rows(r *store.Resource, serve func(*v0Request) error) endpoint {
	return endpoint{errors: v0Style, serve: func(limit bodyLimit) http.HandlerFunc {
		return func(w http.ResponseWriter, req *http.Request) {
			if err := serve(&v0Request{req, w, r, limit, v.definitions.view(req.Context())}); err != nil {
				v.fail(w, req, r, err)
			}
		}
	}}
}

// plain is an endpoint without rows.
func (*v0API) plain(serve http.HandlerFunc) endpoint {
	return endpoint{errors: v0Style, serve: func(bodyLimit) http.HandlerFunc { return serve }}
}

// fail answers with an error.
func (v *v0API) fail(w http.ResponseWriter, req *http.Request, r *store.Resource, err error) {
	e := toHTTPError(err)
	if isServerError(err, e) && req.Context().Err() == nil {
		v.log.Error("Request failed", "method", req.Method, "path", req.URL.Path, "error", err)
	}
	if e.code == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", strconv.Itoa(int(retryAfter.Seconds())))
	}
	writeHTTPError(w, r, e)
}

// oneRow is the Meta of an answer with a single row.
var oneRow = threeport.Meta{Page: 1, Size: 1, TotalCount: 1}

func (v *v0API) create(req *v0Request) error {
	values, release, err := v.readPayload(req)
	if err != nil {
		return err
	}
	defer release()
	if err := checkComplete(req.resource, values); err != nil {
		return err
	}
	if err := v.authorize(req.Context(), req.resource, values); err != nil {
		return err
	}
	row, created, err := v.store.Create(req.Context(), req.resource, values)
	if err != nil {
		return err
	}
	code := http.StatusCreated
	if !created { // the row existed, with other values, and may belong to another cluster
		if err := v.authorize(req.Context(), req.resource, nil, row); err != nil {
			return err
		}
		code = http.StatusOK
	}
	v.recordHeartbeat(req, values, row)
	writeRows(req.w, req.format(), code, oneRow, row)
	return nil
}

func (v *v0API) get(req *v0Request) error {
	id, err := req.id()
	if err != nil {
		return err
	}
	row, err := v.store.Get(req.Context(), req.resource, id)
	if err != nil {
		return err
	}
	if err := v.authorize(req.Context(), req.resource, nil, row); err != nil {
		return err
	}
	writeRows(req.w, req.format(), http.StatusOK, oneRow, row)
	return nil
}

func (v *v0API) list(req *v0Request) error {
	selection, err := selectionOf(req.resource, req.URL.Query())
	if err != nil {
		return err
	}
	if err := v.authorizeList(req.Context(), req.resource, selection); err != nil {
		return err
	}
	rows, total, err := v.store.List(req.Context(), req.resource, selection)
	if err != nil {
		return err
	}
	if err := v.authorize(req.Context(), req.resource, nil, rows...); err != nil {
		return err
	}
	meta := threeport.Meta{Page: selection.Page, Size: selection.Size, TotalCount: total}
	writeRows(req.w, req.format(), http.StatusOK, meta, rows...)
	return nil
}

// update reads the row before the body, as Threeport's API does: a bad body for a deleted row is answered with 404.
func (v *v0API) update(req *v0Request) error {
	id, err := req.id()
	if err != nil {
		return err
	}
	before, err := v.store.Get(req.Context(), req.resource, id)
	if err != nil {
		return err
	}
	values, release, err := v.readPayload(req)
	if err != nil {
		return err
	}
	defer release()
	if err := v.authorize(req.Context(), req.resource, values, before); err != nil {
		return err
	}
	row, err := v.store.Update(req.Context(), req.resource, id, values)
	if err != nil {
		return err
	}
	v.recordHeartbeat(req, values, row)
	writeRows(req.w, req.format(), http.StatusOK, oneRow, row)
	return nil
}

func (v *v0API) remove(req *v0Request) error {
	id, err := req.id()
	if err != nil {
		return err
	}
	row, err := v.store.Remove(req.Context(), req.resource, id)
	if err != nil {
		return err
	}
	writeRows(req.w, req.format(), http.StatusOK, oneRow, row)
	return nil
}

func (v *v0API) health(w http.ResponseWriter, req *http.Request) {
	if err := v.store.Ping(req.Context()); err != nil {
		http.Error(w, "the database does not answer", http.StatusServiceUnavailable)
		return
	}
	_, _ = io.WriteString(w, "ok\n")
}

// versions answers which versions of an object exist. Clients discover capabilities by it.
func versions(r *store.Resource) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, []byte(`{"API":"`+r.Object+`","Versions":["v0"]}`+"\n"))
	}
}

// readPayload reads the values in a request's body. They take memory until the caller releases it.
func (v *v0API) readPayload(req *v0Request) (values []any, release func(), err error) {
	held, err := v.memory.acquire(req.Request)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			held.release()
		}
	}()
	body, err := held.read(req.w, req.Request, req.body)
	if err != nil {
		return nil, nil, err
	}
	values, err = readValues(req.resource, body, req.Header.Get("Content-Type"))
	return values, held.release, err
}

// id is the {id} of the path. Threeport's API answers 500 to one that is no int64.
func (r *v0Request) id() (int64, error) {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil {
		return 0, &httpError{http.StatusInternalServerError, "the ID is not a 64-bit integer"}
	}
	return id, nil
}
