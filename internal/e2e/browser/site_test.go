package browser

import (
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"testing"
)

// A reader of the documents' site searches for a flag, and opens the page that describes it.
func TestSite_Search(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	// A warning, such as a link to an unknown page or anchor, is an error.
	build := exec.CommandContext(t.Context(), "mkdocs", "build", "--strict", "--config-file", "../../../hack/site/mkdocs.yml", "--site-dir", out)
	build.Env = append(build.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	if log, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the site: %v (mkdocs missing? `make site-packages`)\n%s", err, log)
	}
	if pages, err := filepath.Glob(filepath.Join(out, "*", "index.html")); err != nil || len(pages) < 30 {
		t.Errorf("the site has %d pages beside the first one (%v), want at least 30", len(pages), err)
	}
	server := httptest.NewServer(http.FileServer(http.Dir(out)))
	defer server.Close()

	tab := openTab(t)
	visit(t, tab, server.URL+"/?q=event-filters", "document.querySelector('#mkdocs-search-results article a')")
	const pages = "[...document.querySelectorAll('#mkdocs-search-results article a')].map((a) => new URL(a.href).pathname)"
	if !eval[bool](t, tab, pages+".includes('/event-filters/')") {
		t.Errorf("the results are %v, want /event-filters/ among them", eval[[]string](t, tab, pages))
	}
	visit(t, tab, server.URL+"/event-filters/", "document.querySelector('h1').innerText.includes('Filters of Events')")
	if link := eval[string](t, tab, "[...document.querySelectorAll('[role=main] a')].find((a) => a.innerText === 'event-filters').href"); link != "https://github.com/threeport/threeport-agent/blob/main/config/components/event-filters" {
		t.Errorf("a link that leaves the documents goes to %s, want that folder of the repository", link)
	}
}
