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
	"sync"

	"github.com/threeport/threeport-agent/internal/threeport"
)

//go:embed assets
var embedded embed.FS

// Page serves the document and its assets. Make one with [New]. Its methods are HTTP handlers, for GET and HEAD, and safe for
// concurrent use.
type Page struct {
	index  asset
	assets map[string]asset
	// version is a hash of all assets. It is in their paths, so that a browser never combines cached assets with those of
	// another version.
	version string
}

// The placeholders in the document: the folder of the assets, and the list of modules. With the list a browser loads all
// modules at once, and not each after the one that imports it.
const (
	folderPlaceholder  = "{{folder}}"
	modulesPlaceholder = "<!-- modules -->"
)

// New returns the page. The first call compresses the assets and completes the document.
func New() (*Page, error) { return thePage() }

var thePage = sync.OnceValues(buildPage)

func buildPage() (*Page, error) {
	files, err := fs.Sub(embedded, "assets")
	if err != nil {
		return nil, fmt.Errorf("open the page's assets: %w", err)
	}
	p := &Page{assets: map[string]asset{}}
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
			_, _ = fmt.Fprintf(&modules, "<link rel=\"modulepreload\" href=\"%s/%s\">\n", folderPlaceholder, a.name)
		}
	}
	p.version = hex.EncodeToString(all.Sum(nil)[:8])
	if err := p.complete(modules.Bytes()); err != nil {
		return nil, err
	}
	return p, nil
}

// complete replaces the placeholders in the document.
func (p *Page) complete(modules []byte) error {
	const name = "index.html"
	body := p.assets[name].body
	delete(p.assets, name)
	body = bytes.ReplaceAll(body, []byte(modulesPlaceholder), bytes.TrimSpace(modules))
	body = bytes.ReplaceAll(body, []byte(folderPlaceholder), []byte(p.folder()))
	var err error
	p.index, err = newAsset(name, body)
	return err
}

func (p *Page) folder() string { return "/page/" + p.version }

// Index serves the document at /. Its script shows what belongs to the address.
func (p *Page) Index(w http.ResponseWriter, req *http.Request) {
	SetHeaders(w.Header())
	w.Header().Set("Cache-Control", "no-cache")
	p.index.serve(w, req)
}

// Workload serves the document at /workloads/{type}/{id}, whether or not the workload exists.
func (p *Page) Workload(w http.ResponseWriter, req *http.Request) {
	id, err := strconv.ParseInt(req.PathValue("id"), 10, 64)
	known := req.PathValue("type") == threeport.TypeWorkloadInstance ||
		req.PathValue("type") == threeport.TypeHelmWorkloadInstance
	if !known || err != nil || id < 0 {
		p.NotFound(w, req)
		return
	}
	p.Index(w, req)
}

// Asset serves a file at /page/{version}/{name}. For another version it serves its own file of that name, and forbids to cache
// it. During a rollout, the document of one replica may load the assets of another.
func (p *Page) Asset(w http.ResponseWriter, req *http.Request) {
	a, ok := p.assets[req.PathValue("name")]
	if !ok {
		p.NotFound(w, req)
		return
	}
	SetHeaders(w.Header())
	if strings.HasPrefix(req.URL.Path, p.folder()+"/") {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	} else {
		w.Header().Set("Cache-Control", "no-store")
	}
	a.serve(w, req)
}

// NotFound answers 404.
func (p *Page) NotFound(w http.ResponseWriter, _ *http.Request) { ServeNotFound(w) }
