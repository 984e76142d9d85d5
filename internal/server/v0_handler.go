package server

import (
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"strconv"

	"github.com/threeport/threeport-agent/internal/server/auth"
	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// objectEvent is the object of v0 whose rows agents create, and objectResource the one whose rows have definitions.
const (
	objectEvent    = "WorkloadEvent"
	objectResource = "WorkloadResourceInstance"
)

// v0API serves the rows of v0 from a store. It logs failures of the server, without any part of a body.
type v0API struct {
	store  *store.Store
	log    *slog.Logger
	limits *v0Limits
	// definitions is nil under strict v0.
	definitions *definitions
	// claims is nil under strict v0.
	claims *claims
}

// newV0API makes the handlers of v0. maxBody limits a body, in bytes.
func newV0API(s *store.Store, log *slog.Logger, maxBody int64) *v0API {
	return &v0API{store: s, log: log, limits: newV0Limits(maxBody)}
}

// Handler serves v0 alone from a store, to everyone.
func Handler(s *store.Store, log *slog.Logger) http.Handler {
	return newRouter().serve(newV0API(s, log, DefaultLimits().V0BodyBytes).strictRoutes())
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
			auth.SetAuditObject(req.Context(), auth.AuditObject{Type: r.Object})
			if err := serve(&v0Request{req, w, r, limit, v.definitions.view(req.Context(), senderOf(req))}); err != nil {
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
	v.logFailure(req, err, e)
	if problem, ok := errors.AsType[*auth.Problem](err); ok {
		maps.Copy(w.Header(), problem.GetHeaders())
	}
	if e.code == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", strconv.Itoa(int(retryAfter.Seconds())))
	}
	writeHTTPError(w, r, e)
}

// logFailure logs an error if it is the server's.
func (v *v0API) logFailure(req *http.Request, err error, e *httpError) {
	if isServerError(err, e) && req.Context().Err() == nil {
		v.log.Error("Request failed", "method", req.Method, "path", req.URL.Path, "error", err)
	}
}

// oneRow is the Meta of an answer with a single row.
var oneRow = threeport.Meta{Page: 1, Size: 1, TotalCount: 1}

func (v *v0API) create(req *v0Request) error {
	return v.inTurn(req, req.bodyBytes(), func() error { return v.createRow(req) })
}

func (v *v0API) createRow(req *v0Request) error {
	held, err := req.acquire(v.limits.bodies, req.firstBytes())
	if err != nil {
		return err
	}
	defer held.release()
	values, err := req.readPayload(held, onCreate)
	if err != nil {
		return err
	}
	if err := checkComplete(req.resource, values); err != nil {
		return err
	}
	claim, err := v.authorizeWrite(req.Context(), req.resource, values)
	if err != nil {
		return err
	}
	if err := v.setInstanceOfEvent(req, values); err != nil {
		return err
	}
	cluster, err := v.clusterOfNew(req)
	if err != nil {
		return err
	}
	var row store.Row
	code := http.StatusCreated
	err = v.write(req, func() error {
		var created bool
		row, created, err = v.store.CreateFor(req.Context(), req.resource, values, cluster, claim)
		if err = v.claimed(req.Context(), claim, err); err != nil {
			return err
		}
		if !created { // the row existed, with other values, and may belong to another cluster
			if err := v.authorizeRead(req.Context(), req.resource, row); err != nil {
				return err
			}
			code = http.StatusOK
		}
		v.recordHeartbeat(req, values, row)
		return nil
	})
	if err != nil {
		return err
	}
	auth.SetAuditObject(req.Context(), auth.AuditObject{Type: req.resource.Object, ID: strconv.FormatInt(row.ID, 10), Name: cluster})
	writeRows(req.w, req.format(), code, oneRow, row)
	return nil
}

// setInstanceOfEvent adds the instance to an Event of an agent that names only a resource: the limits of Events are those of an instance.
func (v *v0API) setInstanceOfEvent(req *v0Request, values []any) error {
	if req.resource.Object != objectEvent || auth.PrincipalFrom(req.Context()).Role != auth.RoleAgent {
		return nil
	}
	instance, _ := req.resource.Field("WorkloadInstanceID")
	helm, _ := req.resource.Field("HelmWorkloadInstanceID")
	resource, _ := req.resource.Field("WorkloadResourceInstanceID")
	id, named := values[resource].(int64)
	if !named || values[instance] != nil || values[helm] != nil {
		return nil
	}
	owner, err := v.store.ResourceOwner(req.Context(), id)
	if err != nil {
		return err
	}
	values[instance] = int64(owner.ID)
	return nil
}

func (v *v0API) get(req *v0Request) error {
	id, err := req.id()
	if err != nil {
		return err
	}
	found, err := v.store.Find(req.Context(), req.resource, id)
	if err != nil {
		return err
	}
	if err := v.authorizeRead(req.Context(), req.resource, found.Row); err != nil {
		return err
	}
	return v.inTurn(req, found.Size, func() error { return v.readRow(req, found) })
}

func (v *v0API) readRow(req *v0Request, found store.Found) error {
	held, err := req.acquire(v.limits.answers, found.Size)
	if err != nil {
		return err
	}
	defer held.release()
	row, err := v.store.Get(req.Context(), req.resource, found.ID)
	if err != nil {
		return err
	}
	if err := v.withhold(req.Context(), req.resource, row); err != nil {
		return err
	}
	writeRows(req.w, req.format(), http.StatusOK, oneRow, row)
	return nil
}

// update finds the row and checks the permission before it reads the body. As in Threeport's API, a bad body for a deleted row is
// answered with 404.
func (v *v0API) update(req *v0Request) error {
	id, err := req.id()
	if err != nil {
		return err
	}
	before, err := v.store.Find(req.Context(), req.resource, id)
	if err != nil {
		return err
	}
	if err := v.authorizeRead(req.Context(), req.resource, before.Row); err != nil {
		return err
	}
	return v.inTurn(req, before.Size+req.bodyBytes(), func() error { return v.updateRow(req, before) })
}

func (v *v0API) updateRow(req *v0Request, before store.Found) error {
	held, err := req.acquire(v.limits.bodies, before.Size+req.firstBytes())
	if err != nil {
		return err
	}
	defer held.release()
	values, err := req.readPayload(held, onUpdate)
	if err != nil {
		return err
	}
	claim, err := v.authorizeWrite(req.Context(), req.resource, values, before.Row)
	if err != nil {
		return err
	}
	var row store.Row
	err = v.write(req, func() error {
		row, err = v.store.UpdateFor(req.Context(), req.resource, before.ID, values, claim)
		if err = v.claimed(req.Context(), claim, err); err != nil {
			return err
		}
		v.recordHeartbeat(req, values, row)
		return nil
	})
	if err != nil {
		return err
	}
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

// readPayload reads the values in the request's body into the reserved memory.
func (r *v0Request) readPayload(held *reservation, names nameCheck) ([]any, error) {
	body, err := r.readBody(held)
	if err != nil {
		return nil, err
	}
	return readValues(r.resource, body, r.Header.Get("Content-Type"), names)
}

// id is the {id} of the path. Threeport's API answers 500 to one that is no int64.
func (r *v0Request) id() (int64, error) {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil {
		return 0, &httpError{http.StatusInternalServerError, "the ID is not a 64-bit integer"}
	}
	r.setAuditID(id)
	return id, nil
}

// setAuditID names a row in the audit record of the request.
func (r *v0Request) setAuditID(id int64) {
	auth.SetAuditObject(r.Context(), auth.AuditObject{Type: r.resource.Object, ID: strconv.FormatInt(id, 10)})
}
