package browser

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"go.uber.org/goleak"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// chromium is the browser of all tests; nil if it is not installed. Each test has its own tab.
var chromium *Chromium

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	var err error
	chromium, err = Start(context.Background())
	if err != nil && !errors.Is(err, ErrNoChromium) {
		_, _ = fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if chromium != nil {
		chromium.Stop()
	}
	if err := goleak.Find(goleak.IgnoreTopFunction("internal/poll.runtime_pollWait"), goleak.IgnoreTopFunction("net/http.(*persistConn).writeLoop")); err != nil && code == 0 {
		_, _ = fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// neverOffline is an agent timeout longer than any test.
const neverOffline = time.Hour

// startAPI starts a control plane with a fleet.
func startAPI(t *testing.T, agentTimeout time.Duration, fleet Fleet) (*API, map[string]threeport.Instance) {
	t.Helper()
	if chromium == nil {
		t.Fatal(ErrNoChromium)
	}
	api := NewAPI(filepath.Join(t.TempDir(), "rows.db"), agentTimeout, slog.New(slog.DiscardHandler))
	if err := api.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := api.Stop(); err != nil {
			t.Error(err)
		}
	})
	instances, err := Post(t.Context(), api.URL, fleet)
	if err != nil {
		t.Fatal(err)
	}
	return api, instances
}

// openTab opens a tab with the size of a desktop. Problems of its pages fail the test.
func openTab(t *testing.T) *Tab {
	t.Helper()
	if chromium == nil {
		t.Fatal(ErrNoChromium)
	}
	tab, err := chromium.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, problem := range tab.Problems() {
			t.Errorf("the browser reported a problem: %s", problem)
		}
		tab.Close()
	})
	emulate(t, tab, 1280, 900, Media{})
	return tab
}

func emulate(t *testing.T, tab *Tab, width, height int64, media Media) {
	t.Helper()
	if err := tab.Emulate(width, height, media); err != nil {
		t.Fatal(err)
	}
}

// visit loads a page, and waits until a condition holds.
func visit(t *testing.T, tab *Tab, url, condition string) {
	t.Helper()
	if err := tab.Do(chromedp.Navigate(url)); err != nil {
		t.Fatal(err)
	}
	until(t, tab, condition)
}

func until(t *testing.T, tab *Tab, condition string) {
	t.Helper()
	if err := tab.Until(condition); err != nil {
		t.Fatal(err)
	}
}

// click clicks at the position of an element, as a user does. It waits until the element has stayed at a place for two
// frames, because the click would miss one that moves.
func click(t *testing.T, tab *Tab, css string) {
	t.Helper()
	until(t, tab, `await (async () => {
		const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
		const place = () => JSON.stringify(document.querySelector(`+quote(css)+`).getBoundingClientRect());
		const before = place();
		await frame();
		await frame();
		return place() === before;
	})()`)
	if err := tab.Do(chromedp.Click(chromedp.CSS(css))); err != nil {
		t.Fatalf("click %s: %v", css, err)
	}
}

// press presses keys one after the other.
func press(t *testing.T, tab *Tab, keys ...string) {
	t.Helper()
	for _, key := range keys {
		if err := tab.Do(chromedp.KeyEvent(key)); err != nil {
			t.Fatalf("press %q: %v", key, err)
		}
	}
}

// eval evaluates an expression.
func eval[T any](t *testing.T, tab *Tab, expression string) T {
	t.Helper()
	value, err := Eval[T](tab, expression)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// quote returns a text as a JavaScript literal.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `\'`) + "'" }

// pathOf returns the path of a workload's page.
func pathOf(i threeport.Instance) string {
	return fmt.Sprintf("/workloads/%s/%d", i.Type, int64(i.ID))
}

// Conditions of pages.
const (
	listShown     = "document.querySelectorAll('.grid-list .row').length > 0 && document.querySelector('#live').dataset.state === 'live'"
	workloadShown = "document.querySelector('.verdict') && document.querySelector('#live').dataset.state === 'live'"
)

// rowContains returns the condition that the row of a workload contains a text.
func rowContains(name, text string) string {
	return fmt.Sprintf("[...document.querySelectorAll('.grid-list .row')].some((r) => r.querySelector('.open').innerText === %s && r.innerText.includes(%s))", quote(name), quote(text))
}
