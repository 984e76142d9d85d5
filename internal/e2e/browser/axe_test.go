package browser

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// axeFile is the path of axe-core after npm ci.
var axeFile = filepath.Join("..", "..", "..", "hack", "browser", "node_modules", "axe-core", "axe.min.js")

// violations is a script that runs axe on the page. It returns the rule, the impact and the first elements of each serious or
// critical violation.
const violations = `axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => violations
	.filter(({ impact }) => impact === 'serious' || impact === 'critical')
	.map(({ id, impact, nodes }) => id + ' (' + impact + '): ' + nodes.slice(0, 3).map((n) => n.html.slice(0, 160) + ' ' + (n.any[0]?.message ?? n.all[0]?.message ?? n.none[0]?.message ?? '')).join(' | ')))`

func TestPages_Accessibility(t *testing.T) {
	api, instances := startAPI(t, neverOffline, Sample(time.Now()))
	proxy := newFaultProxy(t, api)
	cases := []struct {
		name, path, shown string
		code              int
		act               string // a script that runs after the page is shown
	}{
		{name: "list", path: "/", shown: listShown},
		{name: "list, filtered", path: "/?status=Down&text=ledger", shown: listShown},
		{name: "list, nothing found", path: "/?text=nothing-has-this", shown: "document.querySelector('.none').checkVisibility()"},
		{name: "workload", path: pathOf(instances[Checkout]), shown: "document.querySelectorAll('.line').length > 10 && document.querySelector('.event')"},
		{name: "diff", path: pathOf(instances[Checkout]), shown: "document.querySelector('#tab-changes')", act: "document.querySelector('#tab-changes').click()"},
		{name: "keys", path: "/", shown: listShown, act: "document.querySelector('#help').click()"},
		{name: "not found", path: "/workloads/WorkloadInstance/1", shown: stateShown("missing")},
		{name: "signed out", path: "/", code: 401, shown: stateShown("signed-out")},
		{name: "broken", path: "/", code: 500, shown: stateShown("broken")},
	}
	for _, media := range []Media{{}, {Dark: true}} {
		for _, c := range cases {
			t.Run(map[bool]string{false: "light ", true: "dark "}[media.Dark]+c.name, func(t *testing.T) {
				tab := openTab(t)
				tab.Ignore(isNetworkError)
				media.ReducedMotion = true
				emulate(t, tab, 1280, 900, media)
				proxy.setFault(func(string) int { return c.code })
				visit(t, tab, proxy.URL+c.path, c.shown)
				if c.act != "" {
					if err := tab.Do(discard(c.act)); err != nil {
						t.Fatal(err)
					}
				}
				expectAccessible(t, tab)
			})
		}
	}
}

// expectAccessible expects no violations on the current page.
func expectAccessible(t *testing.T, tab *Tab) {
	t.Helper()
	axe, err := os.ReadFile(axeFile)
	if err != nil {
		t.Fatal("axe-core is missing: `make browser-packages` installs it")
	}
	if err := tab.Do(discard(string(axe) + "; true")); err != nil {
		t.Fatal(err)
	}
	for _, violation := range eval[[]string](t, tab, violations) {
		t.Error(violation)
	}
}

// discard evaluates a statement without a value.
func discard(expression string) chromedp.Action[chromedp.Void] {
	return chromedp.Evaluate[chromedp.Void](expression)
}
