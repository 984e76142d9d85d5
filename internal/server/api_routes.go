package server

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

// routes are the handlers of the endpoints that v0 does not have: by path, then by method. They are huma's adapter, so
// that its operations and the others answer a wrong method alike.
type routes map[string]map[string]http.HandlerFunc

// Handle adds an operation.
func (r routes) Handle(op *huma.Operation, serve func(huma.Context)) {
	r.add(op.Method, op.Path, func(w http.ResponseWriter, req *http.Request) {
		serve(humago.NewContext(op, req, w))
	})
}

func (r routes) add(method, path string, serve http.HandlerFunc) {
	if r[path] == nil {
		r[path] = map[string]http.HandlerFunc{}
	}
	r[path][method] = serve
}

// ServeHTTP is for huma's own tests, and serves nothing: see mount.
func (r routes) ServeHTTP(w http.ResponseWriter, req *http.Request) { http.NotFound(w, req) }

// mount serves the routes from a mux. Where there is GET there is HEAD (RFC 9110, section 9.1), of whose answers net/http
// sends no body.
func (r routes) mount(mux *http.ServeMux) {
	for path, served := range r {
		methods := maps.Clone(served)
		if get, ok := methods[http.MethodGet]; ok {
			methods[http.MethodHead] = get
		}
		allow := strings.Join(slices.Sorted(maps.Keys(methods)), ", ")
		mux.HandleFunc(path, func(w http.ResponseWriter, req *http.Request) {
			if serve, ok := methods[req.Method]; ok {
				serve(w, req)
				return
			}
			w.Header().Set("Allow", allow)
			answerProblem(w, problem(http.StatusMethodNotAllowed, "accepted here: "+allow))
		})
	}
}

// strictQuery refuses a query that cannot be read, or that says one thing twice: huma takes the first and says nothing.
func strictQuery(api huma.API) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		asked := ctx.URL()
		query, err := url.ParseQuery(asked.RawQuery)
		if err != nil {
			_ = huma.WriteErr(api, ctx, http.StatusBadRequest, "the query is malformed")
			return
		}
		for name, values := range query {
			if len(values) > 1 {
				_ = huma.WriteErr(api, ctx, http.StatusUnprocessableEntity, "validation failed",
					&huma.ErrorDetail{Location: "query." + shortened(name), Message: fmt.Sprintf("is there %d times", len(values))})
				return
			}
		}
		next(ctx)
	}
}
