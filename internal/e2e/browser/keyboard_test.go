package browser

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// rowFocused is that a row of the board has the focus.
const rowFocused = "document.activeElement.matches('.grid-list .open')"

func goBack(t *testing.T, tab *Tab, condition string) {
	t.Helper()
	if err := tab.Do(chromedp.NavigateBack()); err != nil {
		t.Fatal(err)
	}
	until(t, tab, condition)
}

// Everything that leads back to the board leads to the board as it was left.
func TestTheBoardIsLeftAsItWas(t *testing.T) {
	api, instances := startAPI(t, never, Sample(time.Now()))
	tab := openTab(t)
	const query = "?status=Down&sort=name"
	left := "location.pathname + location.search === '/" + query + "' && " + boardShown + " && " + rowCount + " === 2"
	visit(t, tab, api.URL+"/"+query, left)
	for name, leave := range map[string]func(){
		"crumb": func() { click(t, tab, "#crumbs a") },
		"logo":  func() { click(t, tab, ".brand") },
		"key":   func() { press(t, tab, "b") },
		"crumb of a page that was loaded anew": func() {
			visit(t, tab, api.URL+pathOf(instances[Checkout]), workloadShown)
			click(t, tab, "#crumbs a")
		},
	} {
		click(t, tab, ".row .open")
		until(t, tab, workloadShown)
		leave()
		if err := tab.Until(left); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	press(t, tab, "b")
	until(t, tab, rowFocused)

	// What was typed last is part of it, however soon one goes on.
	visit(t, tab, api.URL+"/", boardShown+" && "+rowCount+" === 37")
	if err := tab.Do(chromedp.SendKeys(chromedp.CSS("#text"), "ledger"+kb.ArrowDown+kb.Enter)); err != nil {
		t.Fatal(err)
	}
	until(t, tab, workloadShown)
	goBack(t, tab, "location.search === '?text=ledger' && "+rowCount+" === 1")

	tab.Ignore(isNetworkError)
	eval[bool](t, tab, "history.pushState(null, '', '/workloads/WorkloadInstance/1') ?? dispatchEvent(new PopStateEvent('popstate'))")
	until(t, tab, stateShown("missing"))
	click(t, tab, ".state .actions a")
	until(t, tab, "location.search === '?text=ledger' && "+boardShown)
}

func TestClearFilters(t *testing.T) {
	api, _ := startAPI(t, never, Sample(time.Now()))
	tab := openTab(t)
	visit(t, tab, api.URL+"/?status=Down&text=ledger&sort=-name", boardShown)
	until(t, tab, rowCount+" === 1")
	eval[bool](t, tab, "document.querySelector('.filters > .link').focus() ?? true")
	press(t, tab, kb.Enter)
	until(t, tab, rowCount+" === 37 && location.search === '?sort=-name'")
	until(t, tab, rowFocused)
}

func TestTheThemesButtonSaysWhichIsInForce(t *testing.T) {
	api, _ := startAPI(t, never, Estate{})
	tab := openTab(t)
	const label = "document.querySelector('#theme').getAttribute('aria-label')"
	visit(t, tab, api.URL+"/", label+" === 'Colours: as the system has them'")
	click(t, tab, "#theme")
	until(t, tab, label+" === 'Colours: dark'")
	visit(t, tab, api.URL+"/", stateShown("empty"))
	until(t, tab, label+" === 'Colours: dark'")
}

// Who has signed in again elsewhere need not do so here, or load the page anew.
func TestSignedInAgainElsewhere(t *testing.T) {
	api, _ := startAPI(t, never, Sample(time.Now()))
	between := newBetweenTLS(t, api)
	tab := openTrusting(t)
	const leaving = "document.querySelector('#leave').checkVisibility()"
	visit(t, tab, between.URL+"/", boardShown+" && "+leaving)
	between.answer(func(string) int { return 401 })
	between.CloseClientConnections()
	until(t, tab, "document.querySelector('#live').innerText === 'Signed out' && document.querySelector('#banner').innerText.includes('You are signed out') && !"+leaving)
	between.answer(nil)
	eval[bool](t, tab, "document.dispatchEvent(new Event('visibilitychange'))")
	until(t, tab, boardShown+" && !document.querySelector('#banner').checkVisibility() && "+leaving)

	between.answer(func(string) int { return 403 })
	between.CloseClientConnections()
	until(t, tab, "document.querySelector('#live').innerText === 'No access' && !document.querySelector('#banner').innerText.includes('signed out') && "+leaving)
}
