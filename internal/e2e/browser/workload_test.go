package browser

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

func TestWorkloadPage(t *testing.T) {
	api, instances := startAPI(t, never, Sample(time.Now()))
	tab := openTab(t)
	visit(t, tab, api.URL+pathOf(instances[Checkout]), workloadShown)

	for name, condition := range map[string]string{
		"the cause is on top":           "document.querySelector('.cause-what').innerText === 'Deployment checkout has 0 of 6 replicas ready'",
		"the chain is below it":         "document.querySelectorAll('.cause-why li').length === 2",
		"waiting reports are said":      "document.querySelector('.notice.pending').innerText.includes('14 reports are not delivered yet')",
		"dead letters are said":         "document.querySelector('.notice.rejected').innerText.includes('1 report was rejected by the control plane')",
		"lost Events are said":          "document.querySelector('.notice.dropped').innerText.includes('212 Events were dropped')",
		"a node of the tree":            "document.querySelector('[role=treeitem][aria-level=\"3\"]').getAttribute('aria-label').startsWith('Pod checkout-7d9c8b6f5-4kq2n, Down')",
		"similar objects are grouped":   "[...document.querySelectorAll('.node.group')].some((n) => n.innerText.includes('12 Healthy Pods (grouped)'))",
		"the health over time":          "[...document.querySelectorAll('.band g')].map((g) => g.dataset.status).join() === 'Healthy,Reconciling,Unhealthy,Down'",
		"where Events were lost":        "document.querySelector('.gap title').textContent === '212 Events were dropped here'",
		"Events as marks":               "document.querySelectorAll('.point.warning').length > 6",
		"Events in words":               "document.querySelector('.event.warning .message').innerText.startsWith('Back-off restarting')",
		"the worst object's definition": "document.querySelector('#object-title').innerText.includes('Deployment checkout') && document.querySelectorAll('.line').length > 10",
		"the exact time is at hand":     "/^\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d(\\.\\d+)? UTC$/.test(document.querySelector('.facts time').dataset.utc)",
		"the title says how it is":      "document.title === 'Down: checkout'",
	} {
		if err := tab.Until(condition); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDefinition_SearchAndDiff(t *testing.T) {
	api, instances := startAPI(t, never, Sample(time.Now()))
	tab := openTab(t)
	visit(t, tab, api.URL+pathOf(instances[Checkout]), "document.querySelectorAll('.line').length > 10")
	if err := tab.Do(chromedp.SendKeys(chromedp.CSS("#find"), "checkout")); err != nil {
		t.Fatal(err)
	}
	until(t, tab, "/^1 of 8$/.test(document.querySelector('.found').innerText) && document.querySelectorAll('mark.current').length === 1")
	const inSight = "(([a, b]) => a.top >= b.top && a.bottom <= b.bottom)(['mark.current', '.folded .code'].map((css) => document.querySelector(css).getBoundingClientRect()))"
	until(t, tab, inSight)
	press(t, tab, kb.Enter)
	until(t, tab, "/^2 of /.test(document.querySelector('.found').innerText) && "+inSight)

	click(t, tab, "#tab-changes")
	until(t, tab, "[...document.querySelectorAll('ins')].some((l) => l.innerText.includes('checkout:4.18.0')) && [...document.querySelectorAll('del')].some((l) => l.innerText.includes('checkout:4.17.2'))")
	if sign := eval[string](t, tab, "document.querySelector('ins .sign').innerText + document.querySelector('del .sign').innerText"); sign != "+−" {
		t.Errorf("added and removed lines are marked %q, expected signs beside the colours", sign)
	}
}

func TestTimeline_ZoomsAndFilters(t *testing.T) {
	api, instances := startAPI(t, never, Sample(time.Now()))
	tab := openTab(t)
	visit(t, tab, api.URL+pathOf(instances[Checkout]), "document.querySelectorAll('.event').length >= 50")
	const shown = "document.querySelectorAll('.event').length"
	for range 4 {
		click(t, tab, `.timeline-tools [aria-label="Zoom in"]`)
	}
	until(t, tab, shown+" < 40 && /in view, of/.test(document.querySelector('.event-part h3').innerText)")
	eval[bool](t, tab, "document.querySelector('.plot-area').focus() ?? true")
	press(t, tab, "0")
	until(t, tab, shown+" >= 50")
	if err := tab.Do(chromedp.SendKeys(chromedp.CSS("#event-text"), "exit code 1")); err != nil {
		t.Fatal(err)
	}
	until(t, tab, shown+" === 6 && document.querySelectorAll('.event.warning').length === 6")
}

func TestWorkloadPage_IsLive(t *testing.T) {
	now := time.Now()
	estate := Sample(now)
	api, instances := startAPI(t, never, estate)
	tab := openTab(t)
	visit(t, tab, api.URL+pathOf(instances[Checkout]), workloadShown)
	say(t, api, estate.Clusters[0].Agent, instances[Checkout], status("Healthy", "", "", now, 0))
	until(t, tab, "document.querySelector('.status-word').innerText.startsWith('Healthy') && document.title === 'Healthy: checkout'")
}

func TestPage_HostileText_IsEscaped(t *testing.T) {
	api, instances := startAPI(t, never, Hostile(time.Now()))
	tab := openTab(t)
	visit(t, tab, api.URL+"/", boardShown)
	until(t, tab, rowSays("javascript:alert(3)", "<script>document.title='owned'</script>"))
	until(t, tab, rowSays("right-U+202Eot-tfel", "Down"))
	for name, instance := range instances {
		visit(t, tab, api.URL+pathOf(instance), workloadShown+" && document.querySelectorAll('.line').length > 3 && document.querySelector('.event')")
		until(t, tab, "document.querySelector('.cause-what').innerText.includes('onerror=\"alert(1)\"')")
		if found := eval[int](t, tab, "document.querySelectorAll('main script, main img, main b[onmouseover], svg[onload]').length"); found != 0 {
			t.Errorf("%.20q: %d elements were made of text", name, found)
		}
		until(t, tab, "[...document.querySelectorAll('.line')].some((l) => l.innerText.includes('9007199254740993'))")
	}
	if title := eval[string](t, tab, "document.title"); title == "owned" {
		t.Error("a script of a name ran")
	}
	click(t, tab, ".cause-why .long .link")
	until(t, tab, "document.querySelector('.cause-why .long').innerText.length > 10000")
}

func TestWorkloadPage_States(t *testing.T) {
	api, _ := startAPI(t, never, Estate{})
	between := newBetween(t, api)
	tab := openTab(t)
	tab.Ignore(isNetworkError)
	visit(t, tab, between.URL+"/", stateShown("empty"))
	visit(t, tab, between.URL+"/workloads/WorkloadInstance/1", stateShown("missing"))
	for code, state := range map[int]string{401: "signed-out", 403: "forbidden", 500: "broken", 503: "busy"} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			between.answer(func(string) int { return code })
			visit(t, tab, between.URL+"/?status=Down", stateShown(state))
			if code < 500 {
				until(t, tab, "document.querySelector('[data-login]').getAttribute('href') === '/login?next=%2F%3Fstatus%3DDown'")
				return
			}
			between.answer(nil)
			eval[bool](t, tab, "document.querySelector('.state .primary')?.click() ?? true") // it may heal by itself first
			until(t, tab, stateShown("empty"))
		})
	}
}

func stateShown(name string) string {
	return fmt.Sprintf("document.querySelector('.state[data-state=%q]')", name)
}
