package server

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/threeport/threeport-agent/internal/server/ui"
)

// endpoint serves the requests of a route. Operations are huma's: it reads their parameters, and documents them.
type endpoint struct {
	serve    func(bodyLimit) http.HandlerFunc        // nil for an operation
	register func(huma.API, route)                   // nil for all others
	wrap     func(http.HandlerFunc) http.HandlerFunc // nil for none; not for pages
	errors   errorStyle
}

// errorStyle is how a path answers a method for which it has no route.
type errorStyle int

const (
	problemStyle errorStyle = iota // 405 as a problem of RFC 9457, with Allow
	v0Style                        // 405 in the words of v0's router
	pageStyle                      // v0's 404
)

// notFound is the endpoint of paths that have an access rule and no handler.
var notFound = endpoint{}

// handle is an endpoint that is no operation.
func handle(serve http.HandlerFunc) endpoint {
	return endpoint{serve: func(bodyLimit) http.HandlerFunc { return serve }}
}

// page is an endpoint for browsers.
func page(serve http.HandlerFunc) endpoint {
	return endpoint{errors: pageStyle, serve: func(limit bodyLimit) http.HandlerFunc {
		return func(w http.ResponseWriter, req *http.Request) {
			if limit.bytes > 0 {
				req.Body = http.MaxBytesReader(w, req.Body, limit.bytes)
			}
			serve(w, req)
		}
	}}
}

// operation is an endpoint in the OpenAPI document.
func operation[I, O any](op huma.Operation, serve func(context.Context, *I) (*O, error)) endpoint {
	return endpoint{register: func(api huma.API, r route) {
		op.Method, op.Path = r.method, r.path
		op.MaxBodyBytes, op.BodyReadTimeout = r.body.bytes, r.body.timeout
		huma.Register(api, op, serve)
	}}
}

// router builds one mux from the table of routes. It is huma's adapter, so that operations and other endpoints refuse a
// method in the same way.
type router struct {
	api   huma.API // of the operations
	mux   *http.ServeMux
	paths map[string]*pathHandlers
}

// pathHandlers are the handlers of a path by method.
type pathHandlers struct {
	methods map[string]http.HandlerFunc
	errors  errorStyle
}

func newRouter() *router {
	return &router{mux: http.NewServeMux(), paths: map[string]*pathHandlers{}}
}

// serve returns the handler of all rows.
func (r *router) serve(rows []route) http.Handler {
	pages := slices.ContainsFunc(rows, func(row route) bool { return row.endpoint.errors == pageStyle })
	for _, row := range rows {
		switch e := row.endpoint; {
		case e.register != nil:
			e.register(r.api, row) // calls Handle
		case e.serve != nil && e.errors == pageStyle:
			r.mux.HandleFunc(row.method+" "+row.path, e.serve(row.body))
		case e.serve != nil:
			r.add(row.method, row.path, e.errors, e.serve(row.body))
		}
		if row.endpoint.wrap != nil {
			methods := r.paths[row.path].methods
			methods[row.method] = row.endpoint.wrap(methods[row.method])
		}
	}
	for path, h := range r.paths {
		r.mux.HandleFunc(path, h.handler())
	}
	r.mux.HandleFunc("/", func(w http.ResponseWriter, req *http.Request) {
		if pages && strings.Contains(req.Header.Get("Accept"), "text/html") {
			ui.ServeNotFound(w)
			return
		}
		writeRouterError(w, http.StatusNotFound)
	})
	return r.mux
}

// Handle adds an operation for huma.
func (r *router) Handle(op *huma.Operation, serve func(huma.Context)) {
	r.add(op.Method, op.Path, problemStyle, holdingAnswer(func(w http.ResponseWriter, req *http.Request) {
		serve(humago.NewContext(op, req, w))
	}))
}

// ServeHTTP is for huma's own tests and serves nothing: see serve.
func (r *router) ServeHTTP(w http.ResponseWriter, req *http.Request) { http.NotFound(w, req) }

func (r *router) add(method, path string, errors errorStyle, serve http.HandlerFunc) {
	if r.paths[path] == nil {
		r.paths[path] = &pathHandlers{methods: map[string]http.HandlerFunc{}, errors: errors}
	}
	r.paths[path].methods[method] = serve
}

// handler serves the methods of the path. HEAD is served where GET is (RFC 9110, section 9.1), except by v0; net/http sends
// no body for it.
func (h *pathHandlers) handler() http.HandlerFunc {
	methods := maps.Clone(h.methods)
	if serve, ok := methods[http.MethodGet]; ok && h.errors != v0Style {
		methods[http.MethodHead] = serve
	}
	allow := strings.Join(slices.Sorted(maps.Keys(methods)), ", ")
	return func(w http.ResponseWriter, req *http.Request) {
		serve, ok := methods[req.Method]
		switch {
		case ok:
			serve(w, req)
		case h.errors == v0Style:
			writeRouterError(w, http.StatusMethodNotAllowed)
		default:
			w.Header().Set("Allow", allow)
			writeProblem(w, problem(http.StatusMethodNotAllowed, "accepted here: "+allow))
		}
	}
}

// strictQuery refuses a query that is malformed or names a parameter twice: huma takes the first value and ignores the rest.
func strictQuery(api huma.API) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		requested := ctx.URL()
		query, err := url.ParseQuery(requested.RawQuery)
		if err != nil {
			_ = huma.WriteErr(api, ctx, http.StatusBadRequest, "the query is malformed")
			return
		}
		for name, values := range query {
			if len(values) > 1 {
				_ = huma.WriteErr(api, ctx, http.StatusUnprocessableEntity, "validation failed",
					&huma.ErrorDetail{Location: "query." + shortened(name), Message: fmt.Sprintf("duplicate parameter: give it once, not %d times", len(values))})
				return
			}
		}
		next(ctx)
	}
}
