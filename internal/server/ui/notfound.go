package ui

import (
	"io"
	"net/http"
)

const notFoundPage = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Page not found</title></head>
<body><h1>Page not found</h1><p>There is no page at this address. <a href="/">Show the workloads</a></p></body>
</html>
`

// ServeNotFound answers a browser's request for a path that does not exist.
func ServeNotFound(w http.ResponseWriter) {
	SetHeaders(w.Header())
	w.Header().Set("Content-Type", contentTypes[".html"])
	w.WriteHeader(http.StatusNotFound)
	_, _ = io.WriteString(w, notFoundPage) // fails only if the client has gone
}
