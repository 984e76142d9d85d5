package ui

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"

	"github.com/threeport/threeport-agent/internal/threeport"
)

//go:embed assets
var embedded embed.FS

// Page serves the document and its assets. Make one with [New]; it may be used by many goroutines at once.
type Page struct {
	mux    *http.ServeMux
	index  asset
	assets map[string]asset
	// version is of all assets together. It is in their paths, so that what a browser has kept is never of another
	// version than what it loads.
	version string
}

// Patterns are what a server's mux has to route to a [Page].
func Patterns() []string {
	return []string{"GET /{$}", "GET /workloads/{type}/{id}", "GET /page/"}
}

// The document has these where the folder of the assets belongs, and the list of the modules: the browser loads all at
// once then, and need not read one to know of the next.
const (
	openFolder  = "{{folder}}"
	openModules = "<!-- modules -->"
)

// New compresses the assets and completes the document.
func New() (*Page, error) {
	files, err := fs.Sub(embedded, "assets")
	if err != nil {
		return nil, fmt.Errorf("open the page's assets: %w", err)
	}
	p := &Page{mux: http.NewServeMux(), assets: map[string]asset{}}
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		return nil, fmt.Errorf("list the page's assets: %w", err)
	}
	all := sha256.New()
	var modules bytes.Buffer
	for _, entry := range entries {
		body, err := fs.ReadFile(files, entry.Name())
		if err != nil {
			return nil, fmt.Errorf("read the page's assets: %w", err)
		}
		a, err := newAsset(entry.Name(), body)
		if err != nil {
			return nil, err
		}
		p.assets[a.name] = a
		_, _ = fmt.Fprintln(all, a.name, a.hash)
		if path.Ext(a.name) == ".js" {
			_, _ = fmt.Fprintf(&modules, "<link rel=\"modulepreload\" href=\"%s/%s\">\n", openFolder, a.name)
		}
	}
	p.version = hex.EncodeToString(all.Sum(nil)[:8])
	if err := p.complete(modules.Bytes()); err != nil {
		return nil, err
	}
	p.mux.HandleFunc("GET /{$}", p.serveIndex)
	p.mux.HandleFunc("GET /workloads/{type}/{id}", p.serveWorkload)
	p.mux.HandleFunc("GET /page/{version}/{name}", p.serveAsset)
	return p, nil
}

// complete fills in what the document leaves open.
func (p *Page) complete(modules []byte) error {
	const name = "index.html"
	body := p.assets[name].body
	delete(p.assets, name)
	body = bytes.ReplaceAll(body, []byte(openModules), bytes.TrimSpace(modules))
	body = bytes.ReplaceAll(body, []byte(openFolder), []byte(p.folder()))
	var err error
	p.index, err = newAsset(name, body)
	return err
}

func (p *Page) folder() string { return "/page/" + p.version }

// ServeHTTP answers GET and HEAD of the document and the assets, and 404 for every other path.
func (p *Page) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	SetHeaders(w.Header())
	p.mux.ServeHTTP(w, req)
}

// serveIndex sends the document, which says itself what is to be seen at its address.
func (p *Page) serveIndex(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Cache-Control", "no-cache")
	p.index.serve(w, req)
}

// serveWorkload does so for addresses that may be a workload's.
func (p *Page) serveWorkload(w http.ResponseWriter, req *http.Request) {
	id, err := strconv.ParseInt(req.PathValue("id"), 10, 64)
	known := req.PathValue("type") == threeport.TypeWorkloadInstance ||
		req.PathValue("type") == threeport.TypeHelmWorkloadInstance
	if !known || err != nil || id < 0 {
		http.NotFound(w, req)
		return
	}
	p.serveIndex(w, req)
}

// serveAsset sends a file. Of another version it has only the name to offer: while replicas are being replaced, a
// document of one may ask the other for its assets; the browser must not keep these.
func (p *Page) serveAsset(w http.ResponseWriter, req *http.Request) {
	a, ok := p.assets[req.PathValue("name")]
	if !ok {
		http.NotFound(w, req)
		return
	}
	if strings.HasPrefix(req.URL.Path, p.folder()+"/") {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	} else {
		w.Header().Set("Cache-Control", "no-store")
	}
	a.serve(w, req)
}
