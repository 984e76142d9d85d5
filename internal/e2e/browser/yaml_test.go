package browser

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"
	"sigs.k8s.io/yaml"
)

// YAML parsers read copied and saved definitions, whatever values they have.
func TestDefinition_CopyAndDownload_AreYAML(t *testing.T) {
	texts := []any{
		"", " ", "a ", " a", "a: b", "a #b", "#a", "a:", "-", "- a", "?", "*a", "&a", "!a", "{a}", "[a]", "a, b", "'a'", `"a"`, "%a", "@a", "`a`", "<<", "=", "|", ">", "~",
		"true", "No", "y", "null", "1", "-1", "1.5", "1e3", "0x1f", "0b11", "0o17", "017", "1_000", ".5", ".inf", "-.INF", ".nan", "1:20", "2026-01-02", "2026-01-02 03:04:05", "2026-01-02T03:04:05Z", "12e", "v1.2.3",
		"a\nb", "a\nb\n", "a\nb\n\n", "a\n\n\n", "\n", "\n\n", "\na", "\n a\nb", " a\nb", "\ta\nb", "a\n b\n\tc", "a\n  ", "a\n\n  \n", "a\r\nb", "a\tb", "a\x01b\nc", "a\u007f", "a\u0085b\nc", "a\u2028b", "\ufeffa", "é👩‍👩‍👧", "---\na", "a\n---\nb", "a\n# b", strings.Repeat("long ", 500),
		json.Number("9007199254740993"), 1.5, -1, true, nil,
		[]any{},
		map[string]any{},
		[]any{[]any{"a\nb", []any{}}, map[string]any{"x": []any{"a"}}},
	}
	values := map[string]any{"texts": texts, "nested": []any{map[string]any{"name": " a\nb", "list": texts}}}
	for i, text := range texts {
		if key, ok := text.(string); ok && len(key) < 100 {
			values[key] = i
			values["of "+fmt.Sprint(i)] = text
		}
	}
	api, instances := startAPI(t, neverOffline, Fleet{Clusters: []Cluster{clusterOfOneObject(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": values})}})
	tab := openTab(t)
	visit(t, tab, api.URL+pathOf(instances["one"]), "document.querySelectorAll('.line').length > 10")
	eval[bool](t, tab, `navigator.clipboard.writeText = async (text) => { window.copied = text; }; true`)
	click(t, tab, "[aria-label='Copy the YAML']")
	until(t, tab, "window.copied && document.querySelector('.taken').innerText === 'Copied'")
	copied := eval[string](t, tab, "window.copied")
	expectYAML(t, copied, values)

	// Without TLS a browser has no clipboard API, and with it a browser may refuse.
	eval[bool](t, tab, `navigator.clipboard.writeText = async () => { throw new Error('no'); };
		document.addEventListener('copy', () => { window.selected = document.activeElement.value; }, { once: true }); true`)
	click(t, tab, "[aria-label='Copy the YAML']")
	until(t, tab, "window.selected === window.copied && document.activeElement.matches('[aria-label=\"Copy the YAML\"]') && !document.querySelector('textarea')")
	eval[bool](t, tab, `document.execCommand = () => false; document.querySelector('.taken').textContent = ''; true`)
	click(t, tab, "[aria-label='Copy the YAML']")
	until(t, tab, "document.querySelector('.taken').innerText === 'The browser does not allow copying'")

	folder := t.TempDir()
	if _, err := chromedp.Call(tab.ctx, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{Behavior: "allow", DownloadPath: folder, BrowserContextID: chromedp.FromContext(tab.ctx).BrowserContextID}); err != nil {
		t.Fatal(err)
	}
	click(t, tab, "[aria-label='Download the YAML']")
	saved := filepath.Join(folder, "Deployment-shop-one.yaml")
	for deadline := time.Now().Add(waitTimeout); ; {
		if raw, err := os.ReadFile(saved); err == nil && string(raw) == copied {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("there is no file %s with the copied text", saved)
		}
		until(t, tab, "true")
	}
}

// expectYAML expects a text to be an object in YAML with these data.
func expectYAML(t *testing.T, text string, values map[string]any) {
	t.Helper()
	var got struct{ Data map[string]any }
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("the copied text is no YAML: %v\n%s", err, text)
	}
	decode := func(raw []byte, into any) {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		if err := d.Decode(into); err != nil {
			t.Fatal(err)
		}
	}
	decode(raw, &got)
	var expected map[string]any
	decode(definition(values), &expected)
	for key, value := range expected {
		if got, expected := definition(map[string]any{key: got.Data[key]}), definition(map[string]any{key: value}); !bytes.Equal(got, expected) {
			t.Errorf("the YAML has %s, want %s", got, expected)
		}
	}
	if len(got.Data) != len(expected) {
		t.Errorf("the YAML has %d values, want %d", len(got.Data), len(expected))
	}
}
