package browser

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// Conditions of the rows in the workload list.
const (
	// oneRowReachable requires exactly one row that takes the focus by Tab, and that it is visible.
	oneRowReachable = `(() => {
		const stops = [...document.querySelectorAll('.grid-list .open[tabindex="0"]')];
		const grid = document.querySelector('.grid').getBoundingClientRect();
		const row = stops[0].closest('.row').getBoundingClientRect();
		return stops.length === 1 && row.top >= grid.top && row.bottom <= grid.bottom;
	})()`
	rowFocused     = "document.activeElement.matches('.grid-list .open')"
	scrollPosition = "document.querySelector('.grid').scrollTop"
)

// focusedRow is the condition that the row with this index has the focus, and is visible.
func focusedRow(index int) string {
	return fmt.Sprintf(`document.activeElement.closest('.row')?.getAttribute('aria-rowindex') === '%d' && `, index) + oneRowReachable
}

// scrollRows scrolls the rows without a click, as a mouse wheel does, and waits until they are drawn.
func scrollRows(t *testing.T, tab *Tab, top int) {
	t.Helper()
	eval[bool](t, tab, fmt.Sprintf("(document.querySelector('.grid').scrollTop = %d) >= 0", top))
	until(t, tab, fmt.Sprintf("[...document.querySelectorAll('.grid-list .row')].some((r) => r.style.transform === 'translateY(%dpx)')", top))
}

func goBack(t *testing.T, tab *Tab, condition string) {
	t.Helper()
	if err := tab.Do(chromedp.NavigateBack()); err != nil {
		t.Fatal(err)
	}
	until(t, tab, condition)
}

// At any scroll position and from any element, Tab leads to a visible row.
func TestWorkloadList_Rows_ReachableByKeyboard(t *testing.T) {
	fleet := ManyWorkloads(300, time.Now())
	api, instances := startAPI(t, neverOffline, fleet)
	tab := openTab(t)
	visit(t, tab, api.URL+"/?sort=name", listShown)
	until(t, tab, rowCount+" === 300 && "+oneRowReachable)
	const rowHeight, place = 48, 200

	scrollRows(t, tab, place*rowHeight)
	until(t, tab, oneRowReachable)
	eval[bool](t, tab, "document.querySelector('.cell-delay .sort').focus() ?? true")
	press(t, tab, kb.Tab)
	until(t, tab, focusedRow(place+2))
	press(t, tab, kb.ArrowDown)
	until(t, tab, focusedRow(place+3))

	// The focused row keeps the focus while rows around it come and go.
	scrollRows(t, tab, (place+1)*rowHeight)
	until(t, tab, focusedRow(place+3))
	scrollRows(t, tab, 0)
	until(t, tab, rowFocused)
	press(t, tab, kb.ArrowDown)
	until(t, tab, focusedRow(place+4))

	before := eval[float64](t, tab, scrollPosition)
	name := eval[string](t, tab, "document.activeElement.innerText")
	press(t, tab, kb.Enter)
	until(t, tab, workloadShown)
	goBack(t, tab, listShown)
	until(t, tab, focusedRow(place+4)+" && document.activeElement.innerText === "+quote(name))
	if after := eval[float64](t, tab, scrollPosition); after != before {
		t.Errorf("after Back the scroll position is %g, want that before: %g", after, before)
	}

	// A row that the mouse opened also has the focus after Back.
	click(t, tab, fmt.Sprintf(`.row[aria-rowindex="%d"] .open`, place+1))
	until(t, tab, workloadShown)
	press(t, tab, "b")
	until(t, tab, listShown+" && "+focusedRow(place+1))

	// If the focused row is removed, the row that takes its place gets the focus.
	visit(t, tab, api.URL+"/?status=Down", listShown)
	press(t, tab, "b")
	until(t, tab, focusedRow(2))
	first := eval[string](t, tab, "document.activeElement.innerText")
	sendStatus(t, api, fleet.Clusters[0].Agent, instances[first], status("Healthy", "", "", time.Now(), 0))
	until(t, tab, focusedRow(2)+" && document.activeElement.innerText !== "+quote(first))
}

// Every way back to the workload list restores its filters, order and focus.
func TestWorkloadList_Back_RestoresState(t *testing.T) {
	api, instances := startAPI(t, neverOffline, Sample(time.Now()))
	tab := openTab(t)
	const query = "?status=Down&sort=name"
	left := "location.pathname + location.search === '/" + query + "' && " + listShown + " && " + rowCount + " === 2"
	visit(t, tab, api.URL+"/"+query, left)
	for name, leave := range map[string]func(){
		"crumb": func() { click(t, tab, "#crumbs a") },
		"logo":  func() { click(t, tab, ".brand") },
		"key":   func() { press(t, tab, "b") },
		"crumb of a reloaded page": func() {
			visit(t, tab, api.URL+pathOf(instances[Checkout]), workloadShown)
			click(t, tab, "#crumbs a")
		},
	} {
		click(t, tab, ".row .open")
		until(t, tab, workloadShown)
		leave()
		if err := tab.Until(left); err != nil {
			t.Fatalf("back by %s does not restore the list: %v", name, err)
		}
	}
	press(t, tab, "b")
	until(t, tab, rowFocused)

	// The restored state has a text that was typed just before the page changed.
	visit(t, tab, api.URL+"/", listShown+" && "+rowCount+" === 37")
	if err := tab.Do(chromedp.SendKeys(chromedp.CSS("#text"), "ledger"+kb.ArrowDown+kb.Enter)); err != nil {
		t.Fatal(err)
	}
	until(t, tab, workloadShown)
	goBack(t, tab, "location.search === '?text=ledger' && "+rowCount+" === 1")

	tab.Ignore(isNetworkError)
	eval[bool](t, tab, "history.pushState(null, '', '/workloads/WorkloadInstance/1') ?? dispatchEvent(new PopStateEvent('popstate'))")
	until(t, tab, stateShown("missing"))
	click(t, tab, ".state .actions a")
	until(t, tab, "location.search === '?text=ledger' && "+listShown)
}

func TestWorkloadList_ClearFilters_KeepsOrder(t *testing.T) {
	api, _ := startAPI(t, neverOffline, Sample(time.Now()))
	tab := openTab(t)
	visit(t, tab, api.URL+"/?status=Down&text=ledger&sort=-name", listShown)
	until(t, tab, rowCount+" === 1")
	eval[bool](t, tab, "document.querySelector('.filters > .link').focus() ?? true")
	press(t, tab, kb.Enter)
	until(t, tab, rowCount+" === 37 && location.search === '?sort=-name'")
	until(t, tab, rowFocused)
}

func TestTheme_ButtonNamesCurrentTheme(t *testing.T) {
	api, _ := startAPI(t, neverOffline, Fleet{})
	tab := openTab(t)
	const label = "document.querySelector('#theme').getAttribute('aria-label')"
	visit(t, tab, api.URL+"/", label+" === 'Colours: as the system'")
	click(t, tab, "#theme")
	until(t, tab, label+" === 'Colours: dark'")
	visit(t, tab, api.URL+"/", stateShown("empty"))
	until(t, tab, label+" === 'Colours: dark'")
}

// After a sign-on in another tab, the page continues without a reload.
func TestSignOn_InAnotherTab_Reconnects(t *testing.T) {
	api, _ := startAPI(t, neverOffline, Sample(time.Now()))
	proxy := newFaultProxyTLS(t, api)
	tab := openWithoutTLSChecks(t)
	const leaving = "document.querySelector('#leave').checkVisibility()"
	visit(t, tab, proxy.URL+"/", listShown+" && "+leaving)
	proxy.setFault(func(string) int { return 401 })
	proxy.CloseClientConnections()
	until(t, tab, "document.querySelector('#live').innerText === 'Signed out' && document.querySelector('#banner').innerText.includes('You are signed out') && !"+leaving)
	proxy.setFault(nil)
	eval[bool](t, tab, "document.dispatchEvent(new Event('visibilitychange'))")
	until(t, tab, listShown+" && !document.querySelector('#banner').checkVisibility() && "+leaving)

	proxy.setFault(func(string) int { return 403 })
	proxy.CloseClientConnections()
	until(t, tab, "document.querySelector('#live').innerText === 'No access' && !document.querySelector('#banner').innerText.includes('signed out') && "+leaving)
}

func TestWorkloadList_OnPhone(t *testing.T) {
	api, _ := startAPI(t, neverOffline, Sample(time.Now()))
	tab := openTab(t)
	emulate(t, tab, 390, 844, Media{})
	visit(t, tab, api.URL+"/", listShown)
	until(t, tab, rowCount+" === 37")
	for reason, holds := range map[string]string{
		"only visible elements take the focus": `[...document.querySelectorAll('.sort')].every((b) => !b.checkVisibility())`,
		"the cluster is beside the name": `[...document.querySelectorAll('.grid-list .row')].every((r) => {
			const [name, cluster] = ['name', 'cluster'].map((c) => r.querySelector('.cell-' + c).getBoundingClientRect());
			return cluster.width > 20 && Math.abs(name.y - cluster.y) < 8 && cluster.right <= 390;
		})`,
		"the order can be chosen": "document.querySelector('#sort').checkVisibility() && document.querySelector('#sort').value === 'worst'",
	} {
		if !eval[bool](t, tab, holds) {
			t.Errorf("this is not true on the page: %s", reason)
		}
	}
	eval[bool](t, tab, "(() => { const s = document.querySelector('#sort'); s.value = '-name'; return s.dispatchEvent(new Event('change')); })()")
	until(t, tab, "location.search === '?sort=-name' && document.querySelector('.row .open').innerText === 'thumbnails'")
	visit(t, tab, api.URL+"/?sort=delay", listShown+" && document.querySelector('#sort').value === 'delay'")
	expectAccessible(t, tab)
	emulate(t, tab, 1280, 900, Media{})
	until(t, tab, "!document.querySelector('#sort').checkVisibility()")
}

// The heading shows the order of the rows. An arrow points up where values grow from top to bottom.
func TestWorkloadList_Order_MatchesHeading(t *testing.T) {
	api, _ := startAPI(t, neverOffline, Sample(time.Now()))
	tab := openTab(t)
	for _, c := range []struct{ sort, column, direction, arrow, first string }{
		{column: "worst", direction: "descending", arrow: "↓", first: "checkout"}, // the newest of the workloads that are Down
		{sort: "name", column: "name", direction: "ascending", arrow: "↑", first: "cart"},
		{sort: "delay", column: "delay", direction: "descending", arrow: "↓", first: "cart"}, // in Singapore, whose agent has the longest delay
		{sort: "-delay", column: "delay", direction: "ascending", arrow: "↑", first: "storefront"},
		{sort: "since", column: "since", direction: "ascending", arrow: "↑", first: "fraud-model"},
	} {
		visit(t, tab, api.URL+"/?sort="+c.sort, listShown)
		until(t, tab, rowCount+" === 37")
		got := eval[[]string](t, tab, fmt.Sprintf(`(() => {
			const heading = document.querySelector('[role=columnheader].cell-%s');
			return [heading.getAttribute('aria-sort'), getComputedStyle(heading.querySelector('.arrow'), '::after').content.replaceAll(/[" ]/g, ''), document.querySelector('.row .open').innerText];
		})()`, c.column))
		if got[0] != c.direction || got[1] != c.arrow || got[2] != c.first {
			t.Errorf("sorted by %q the page shows %q, want %s %s, %s first", c.sort, got, c.direction, c.arrow, c.first)
		}
	}
}

// Sorted by cluster, the rows of a cluster begin with a line, and with its worst workload.
func TestWorkloadList_SortedByCluster_SeparatesClusters(t *testing.T) {
	api, _ := startAPI(t, neverOffline, Sample(time.Now()))
	tab := openTab(t)
	for sort, first := range map[string]string{"cluster": "checkout", "-cluster": "ledger"} {
		visit(t, tab, api.URL+"/?sort="+sort, listShown+" && "+rowCount+" === 37 && document.querySelector('.row .open').innerText === "+quote(first))
		until(t, tab, `[...document.querySelectorAll('.grid-list .row')].every((row, i, rows) => {
			const cluster = (row) => row?.querySelector('.cell-cluster').innerText;
			return row.matches('.begins') === (cluster(row) !== cluster(rows[i - 1]));
		}) && document.querySelectorAll('.row.begins').length > 1`)
	}
	click(t, tab, ".cell-name .sort")
	until(t, tab, "location.search === '?sort=name' && !document.querySelector('.row.begins')")
}

func TestWorkloadList_OnlyFilter(t *testing.T) {
	now := time.Now()
	delayed, rejecting := newCluster("late", now, 2*time.Minute), newCluster("rejecting", now, 0)
	delayed.Workloads = healthy(now, "a", "b")
	rejecting.Workloads = healthy(now, "c", "d", "e")
	rejecting.Workloads[0].Status.Rejected = 3
	api, _ := startAPI(t, neverOffline, Fleet{Clusters: []Cluster{delayed, rejecting}})
	tab := openTab(t)
	visit(t, tab, api.URL+"/", listShown+" && "+rowCount+" === 5")
	const numbers = "[...document.querySelectorAll('.chip[data-only]')].map((c) => c.dataset.only + c.querySelector('.number').innerText).join()"
	until(t, tab, numbers+" === 'silent0,rejected1,late2'")
	click(t, tab, `.chip[data-only="late"]`)
	until(t, tab, rowCount+" === 2 && location.search === '?only=late' && "+numbers+" === 'silent0,rejected1,late2'")
	until(t, tab, `document.querySelector('.chip[data-status="Healthy"] .number').innerText === '2'`)
	click(t, tab, `.chip[data-only="rejected"]`)
	until(t, tab, rowCount+" === 3 && location.search === '?only=rejected&only=late'")
	visit(t, tab, api.URL+"/?only=silent&only=nonsense", "document.querySelector('.none').checkVisibility()")
	visit(t, tab, api.URL+"/?only=rejected&status=Healthy", listShown+" && "+rowCount+" === 1")
	until(t, tab, rowContains("c", "Healthy"))
	expectAccessible(t, tab)
	visit(t, tab, api.URL+"/?text=healthy+late", listShown+" && "+rowCount+" === 2") // the text filter matches statuses too
}

func TestWorkloadList_OfflineClusters_AreFound(t *testing.T) {
	api, _ := startAPI(t, 2*time.Second, Fleet{Clusters: []Cluster{newHealthyCluster("c", "web", "shop")}})
	tab := openTab(t)
	visit(t, tab, api.URL+"/?only=silent", "document.querySelector('#live').dataset.state === 'live'")
	until(t, tab, rowCount+" === 2 && document.querySelector('.chip[data-only=\"silent\"] .number').innerText === '2'")
	visit(t, tab, api.URL+"/?text=silent+web", listShown+" && "+rowCount+" === 1")
}

func newHealthyCluster(name string, workloads ...string) Cluster {
	c := newCluster(name, time.Now(), 0)
	c.Workloads = healthy(time.Now(), workloads...)
	return c
}
