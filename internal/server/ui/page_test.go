package ui

import (
	"compress/gzip"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"testing"
)

func newPage(t *testing.T) *Page {
	t.Helper()
	p, err := New()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func get(t *testing.T, p *Page, target string, header http.Header) *httptest.ResponseRecorder {
	t.Helper()
	mux := http.NewServeMux() // with the patterns of the server's table of routes
	mux.HandleFunc("GET /{$}", p.Index)
	mux.HandleFunc("GET /workloads/{type}/{id}", p.Workload)
	mux.HandleFunc("GET /page/{version}/{name}", p.Asset)
	mux.HandleFunc("GET /", p.NotFound)
	req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
	maps.Copy(req.Header, header)
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, req)
	return w
}

func TestPage_Paths(t *testing.T) {
	p := newPage(t)
	cases := []struct {
		reason, path, contentType, cache string
		code                             int
	}{
		{reason: "the workload list", path: "/", contentType: "text/html; charset=utf-8", cache: "no-cache", code: 200},
		{
			reason: "a workload, even if it does not exist", path: "/workloads/WorkloadInstance/877588458330128385",
			contentType: "text/html; charset=utf-8", cache: "no-cache", code: 200,
		},
		{
			reason: "a Helm workload", path: "/workloads/HelmWorkloadInstance/1", contentType: "text/html; charset=utf-8",
			cache: "no-cache", code: 200,
		},
		{reason: "no such type", path: "/workloads/Deployment/1", code: 404},
		{reason: "an ID is a number", path: "/workloads/WorkloadInstance/x", code: 404},
		{reason: "an ID has 64 bits", path: "/workloads/WorkloadInstance/9223372036854775808", code: 404},
		{
			reason: "an asset of this version may be cached forever", path: p.folder() + "/main.js",
			contentType: "text/javascript; charset=utf-8", cache: "public, max-age=31536000, immutable",
			code: 200,
		},
		{
			reason: "an asset of another version must not be cached", path: "/page/0123456789abcdef/main.js",
			contentType: "text/javascript; charset=utf-8", cache: "no-store", code: 200,
		},
		{reason: "no such asset", path: p.folder() + "/secret.js", code: 404},
		{reason: "the document is no asset", path: p.folder() + "/index.html", code: 404},
		{reason: "there are no folders", path: p.folder() + "/", code: 404},
		{reason: "an unknown path", path: "/favicon.ico", code: 404},
	}
	for _, c := range cases {
		t.Run(c.reason, func(t *testing.T) {
			resp := get(t, p, c.path, nil)
			if resp.Code != c.code {
				t.Fatalf("status %d, expected %d", resp.Code, c.code)
			}
			if c.code == http.StatusOK && (resp.Header().Get("Content-Type") != c.contentType || resp.Header().Get("Cache-Control") != c.cache) {
				t.Errorf("Content-Type %q and Cache-Control %q, expected %q and %q",
					resp.Header().Get("Content-Type"), resp.Header().Get("Cache-Control"), c.contentType, c.cache)
			}
		})
	}
}

func TestPage_EveryAnswer_HasHeaders(t *testing.T) {
	p := newPage(t)
	for _, target := range []string{"/", p.folder() + "/main.js", "/nothing"} {
		header := get(t, p, target, nil).Header()
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; " +
				"form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
			"X-Content-Type-Options":       "nosniff",
			"Referrer-Policy":              "no-referrer",
			"Cross-Origin-Opener-Policy":   "same-origin",
			"Cross-Origin-Resource-Policy": "same-origin",
		} {
			if got := header.Get(name); got != want {
				t.Errorf("%s: %s is %q, expected %q", target, name, got, want)
			}
		}
		if header.Get("Permissions-Policy") == "" {
			t.Errorf("%s: the header Permissions-Policy is missing", target)
		}
	}
}

// A range of a file is answered with the whole file.
func TestPage_Range_IsIgnored(t *testing.T) {
	p := newPage(t)
	got := get(t, p, p.folder()+"/main.js", http.Header{"Range": {"bytes=0-0" + strings.Repeat(",0-0", 3000)}})
	if got.Code != http.StatusOK || got.Header().Get("Content-Range") != "" || strings.HasPrefix(got.Header().Get("Content-Type"), "multipart/") {
		t.Errorf("the answer is %d %v, want %d and the whole file", got.Code, got.Header(), http.StatusOK)
	}
}

func TestPage_Compression_ETags(t *testing.T) {
	p := newPage(t)
	target := p.folder() + "/main.js"
	plain := get(t, p, target, nil)
	zipped := get(t, p, target, http.Header{"Accept-Encoding": {"br, gzip;q=0.5"}})
	refused := get(t, p, target, http.Header{"Accept-Encoding": {"gzip;q=0"}})
	if zipped.Header().Get("Content-Encoding") != "gzip" || refused.Header().Get("Content-Encoding") != "" {
		t.Fatalf("Content-Encoding is %q where gzip is accepted and %q where it is refused, want \"gzip\" and none", zipped.Header().Get("Content-Encoding"), refused.Header().Get("Content-Encoding"))
	}
	r, err := gzip.NewReader(zipped.Body)
	if err != nil {
		t.Fatal(err)
	}
	unzipped, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(plain.Body)
	if err != nil {
		t.Fatal(err)
	}
	if string(unzipped) != string(body) {
		t.Error("the decompressed file differs from the file")
	}
	if plain.Header().Get("ETag") == zipped.Header().Get("ETag") {
		t.Error("the plain and the compressed file have the same entity tag")
	}
	again := get(t, p, target, http.Header{"If-None-Match": {plain.Header().Get("ETag")}})
	if again.Code != http.StatusNotModified {
		t.Errorf("status %d for a cached asset, expected 304", again.Code)
	}
}

func TestPage_Document_HasNoPlaceholders(t *testing.T) {
	p := newPage(t)
	body := string(p.index.body)
	if strings.Contains(body, folderPlaceholder) || strings.Contains(body, modulesPlaceholder) {
		t.Error("the document still has placeholders")
	}
	for _, found := range regexp.MustCompile(`(?:src|href)="(/page/[^"]+)"`).FindAllStringSubmatch(body, -1) {
		if resp := get(t, p, found[1], nil); resp.Code != http.StatusOK {
			t.Errorf("the document refers to %s, which is answered with %d, want %d", found[1], resp.Code, http.StatusOK)
		}
	}
}

// forbidden matches code that parses text as HTML or script, or needs inline styles.
var forbidden = regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|DOMParser|createContextualFragment|setAttribute\('(?:style|on)|javascript:|srcdoc`)

func TestAssets_MakeNoHTML(t *testing.T) {
	if !forbidden.MatchString("element.innerHTML = name") {
		t.Fatal("the pattern does not match an assignment to innerHTML")
	}
	names, err := fs.Glob(embedded, "assets/*")
	if err != nil || len(names) < 20 {
		t.Fatalf("the UI has %d assets, error %v; want 20 or more", len(names), err)
	}
	for _, name := range names {
		body, err := fs.ReadFile(embedded, name)
		if err != nil {
			t.Fatal(err)
		}
		if found := forbidden.Find(body); found != nil {
			t.Errorf("%s contains %q, which creates HTML", name, found)
		}
		if path.Ext(name) == ".html" && regexp.MustCompile(`<style|\sstyle=|\son[a-z]+=|<script>`).Match(body) {
			t.Errorf("%s contains an inline script or style", name)
		}
		if regexp.MustCompile(`https?://`).Match(regexp.MustCompile(`http://www\.w3\.org/2000/svg`).ReplaceAll(body, nil)) {
			t.Errorf("%s refers to another server", name)
		}
	}
}
