package browser

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// rowCount is the number of workloads in the list.
const rowCount = "Number(document.querySelector('.grid').getAttribute('aria-rowcount')) - 1"

func TestWorkloadList_Filters(t *testing.T) {
	api, _ := startAPI(t, neverOffline, Sample(time.Now()))
	tab := openTab(t)
	visit(t, tab, api.URL+"/", listShown)
	until(t, tab, rowCount+" === 37")
	if worst := eval[string](t, tab, "document.querySelector('.grid-list .row .badge').dataset.status"); worst != "Down" {
		t.Errorf("the status of the first row is %s, want the worst: Down", worst)
	}

	click(t, tab, `.chip[data-status="Unhealthy"]`)
	until(t, tab, rowCount+" === 3 && location.search === '?status=Unhealthy'")
	if count := eval[string](t, tab, `document.querySelector('.chip[data-status="Healthy"] .number').textContent`); count != "29" {
		t.Errorf("with another status selected, the chip Healthy shows %s, want 29", count)
	}
	click(t, tab, `.chip[data-status="Down"]`)
	until(t, tab, rowCount+" === 5 && location.search === '?status=Down&status=Unhealthy'")
	if err := tab.Do(chromedp.NavigateBack()); err != nil {
		t.Fatal(err)
	}
	until(t, tab, rowCount+" === 3 && location.search === '?status=Unhealthy'")

	click(t, tab, ".filters > .link")
	until(t, tab, rowCount+" === 37 && location.search === ''")
	if err := tab.Do(chromedp.SendKeys(chromedp.CSS("#text"), "ledger-0 restarted")); err != nil {
		t.Fatal(err)
	}
	until(t, tab, rowCount+" === 1 && location.search === '?text=ledger-0+restarted'")
	until(t, tab, rowContains("ledger", "Down"))

	visit(t, tab, api.URL+"/?cluster=staging&type=HelmWorkloadInstance", listShown)
	until(t, tab, rowCount+" === 1 && document.querySelector('#cluster').value === 'staging' && document.querySelector('#type').value === 'HelmWorkloadInstance'")
	visit(t, tab, api.URL+"/?text=nothing-has-this-name", "document.querySelector('.none').checkVisibility()")
}

func TestWorkloadList_Headings_Sort(t *testing.T) {
	api, _ := startAPI(t, neverOffline, Sample(time.Now()))
	tab := openTab(t)
	visit(t, tab, api.URL+"/", listShown)
	click(t, tab, ".cell-name .sort")
	until(t, tab, "location.search === '?sort=name' && document.querySelector('.row .open').innerText === 'cart'")
	click(t, tab, ".cell-name .sort")
	until(t, tab, "location.search === '?sort=-name' && document.querySelector('.row .open').innerText === 'thumbnails'")
	if sorted := eval[string](t, tab, "document.querySelector('[role=columnheader].cell-name').getAttribute('aria-sort')"); sorted != "descending" {
		t.Errorf("aria-sort is %q, want descending", sorted)
	}
}

func TestWorkloadList_NewStatus_IsShown(t *testing.T) {
	now := time.Now()
	fleet := Sample(now)
	api, instances := startAPI(t, neverOffline, fleet)
	tab := openTab(t)
	visit(t, tab, api.URL+"/?text=catalog", listShown)
	until(t, tab, rowContains("catalog", "Healthy"))
	eval[bool](t, tab, "window.notReloaded = true")

	sendStatus(t, api, fleet.Clusters[0].Agent, instances["catalog"], status("Down", "Evicted", "Deployment catalog has 0 of 2 replicas ready", now, 0))
	until(t, tab, rowContains("catalog", "0 of 2 replicas ready"))
	until(t, tab, `document.querySelector('.chip[data-status="Down"] .number').textContent === '1'`)
	if !eval[bool](t, tab, "window.notReloaded === true") {
		t.Error("the page was reloaded, want an update in place")
	}
}

func TestWorkloadList_OfflineAgent_ShowsLastReport(t *testing.T) {
	api, _ := startAPI(t, 2*time.Second, Fleet{Clusters: []Cluster{{
		Agent:     threeport.Agent{ClusterUID: "c", ClusterName: "c", Time: time.Now()},
		Workloads: healthy(time.Now(), "web"),
	}}})
	tab := openTab(t)
	visit(t, tab, api.URL+"/", listShown)
	until(t, tab, rowContains("web", "No report since")+" && "+rowContains("web", "Unknown")+" && "+rowContains("web", "(last status: Healthy)")+" && "+rowContains("web", "offline"))
	click(t, tab, ".open")
	until(t, tab, "/^No report since .* \\(last status: Healthy\\)$/.test(document.querySelector('.cause-what').innerText)")
}

// A workload without reports is Unknown, with another message than a workload that its agent reports as Unknown.
func TestWorkloadPage_NeverReported_IsUnknown(t *testing.T) {
	api, _ := startAPI(t, neverOffline, Fleet{})
	if _, err := register(t.Context(), api.URL, Workload{Name: "web", Type: threeport.TypeWorkloadInstance}); err != nil {
		t.Fatal(err)
	}
	tab := openTab(t)
	visit(t, tab, api.URL+"/", listShown)
	until(t, tab, rowContains("web", "No agent has reported this workload yet.")+" && "+rowContains("web", "Unknown"))
	click(t, tab, ".open")
	until(t, tab, "document.querySelector('.cause-what').innerText === 'No agent has reported this workload yet.'")
}

// connectionSays returns the condition that the bar shows a state of the connection, with a meaning for pointers and screen
// readers.
func connectionSays(word, meaning string) string {
	return fmt.Sprintf("(({ innerText, title, ariaLabel }) => innerText === %[1]s && title === %[2]s && ariaLabel === %[1]s + '. ' + %[2]s)(document.querySelector('#live'))", quote(word), quote(meaning))
}

func TestConnection_LostAndRestored_KeepsRows(t *testing.T) {
	now := time.Now()
	fleet := Sample(now)
	api, instances := startAPI(t, neverOffline, fleet)
	tab := openTab(t)
	tab.Ignore(isNetworkError)
	visit(t, tab, api.URL+"/?text=catalog", listShown)
	until(t, tab, rowContains("catalog", "Healthy"))

	if err := api.Stop(); err != nil {
		t.Fatal(err)
	}
	until(t, tab, "document.querySelector('#banner').checkVisibility() && /Connection lost.*Showing data from .* old\\)/s.test(document.querySelector('#banner').innerText)")
	until(t, tab, "document.querySelector('#live').dataset.state === 'lost' && "+rowContains("catalog", "Healthy")) // the rows stay
	until(t, tab, connectionSays("Not connected", "This page is not connected to the control plane"))

	if err := api.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	until(t, tab, "!document.querySelector('#banner').checkVisibility() && document.querySelector('#live').dataset.state === 'live'")
	until(t, tab, connectionSays("Connected", "This page is connected to the control plane"))
	sendStatus(t, api, fleet.Clusters[0].Agent, instances["catalog"], status("Down", "Evicted", "after the outage", now, 0))
	until(t, tab, rowContains("catalog", "after the outage"))
}

func TestConnection_ChangesDuringOutage_AreShown(t *testing.T) {
	now := time.Now()
	fleet := Sample(now)
	api, instances := startAPI(t, neverOffline, fleet)
	proxy := newFaultProxy(t, api)
	tab := openTab(t)
	tab.Ignore(isNetworkError)
	visit(t, tab, proxy.URL+"/?text=catalog", listShown)
	until(t, tab, rowContains("catalog", "Healthy"))

	proxy.setFault(func(string) int { return 503 })
	proxy.CloseClientConnections()
	until(t, tab, "document.querySelector('#live').dataset.state === 'lost'")
	sendStatus(t, api, fleet.Clusters[0].Agent, instances["catalog"], status("Down", "Evicted", "during the outage", now, 0))
	proxy.setFault(nil)
	until(t, tab, rowContains("catalog", "during the outage"))
}

// A server that is frozen keeps its connections open.
func TestConnection_Silent_IsLost(t *testing.T) {
	api, _ := startAPI(t, neverOffline, Sample(time.Now()))
	proxy := newFaultProxy(t, api)
	proxy.setFault(func(uri string) int {
		if strings.HasPrefix(uri, "/v0/workloads/watch") {
			return silentStream
		}
		return 0
	})
	tab := openTab(t)
	visit(t, tab, proxy.URL+"/", listShown)
	shown := time.Now()
	until(t, tab, "document.querySelector('#live').dataset.state === 'lost'")
	if after := time.Since(shown); after > 40*time.Second {
		t.Errorf("the page took %s to notice that the server is silent, want at most 40 s", after)
	}
}

func TestWorkloadList_KeyboardOnly(t *testing.T) {
	api, _ := startAPI(t, neverOffline, Sample(time.Now()))
	tab := openTab(t)
	visit(t, tab, api.URL+"/", listShown)
	press(t, tab, "/")
	until(t, tab, "document.activeElement.id === 'text'")
	eval[string](t, tab, "document.activeElement.value = ''") // chromedp types the slash although the page handled the key
	press(t, tab, "c", "h", "e", "c", "k", "o", "u", "t")
	until(t, tab, rowCount+" === 1")
	press(t, tab, kb.Escape)
	until(t, tab, rowCount+" === 37")
	press(t, tab, kb.ArrowDown)
	until(t, tab, "document.activeElement.matches('.row[aria-rowindex=\"2\"] .open')")
	press(t, tab, kb.ArrowDown, kb.End)
	until(t, tab, "document.activeElement.matches('.row[aria-rowindex=\"38\"] .open')")
	press(t, tab, kb.Home)
	until(t, tab, "document.activeElement.innerText === 'checkout'") // the newest of the workloads that are Down
	press(t, tab, kb.Enter)
	until(t, tab, workloadShown)

	until(t, tab, "document.querySelector('.node[tabindex=\"0\"]') !== null")
	eval[bool](t, tab, "document.querySelector('.node[tabindex=\"0\"]').focus() ?? true")
	press(t, tab, kb.ArrowRight)
	until(t, tab, "document.activeElement.getAttribute('aria-label').startsWith('ReplicaSet checkout-7d9c8b6f5, Down')")
	press(t, tab, kb.ArrowLeft)
	until(t, tab, "document.activeElement.getAttribute('aria-expanded') === 'false'")
	press(t, tab, "?")
	until(t, tab, "document.querySelector('#keys').open")
	press(t, tab, kb.Escape)
	until(t, tab, "!document.querySelector('#keys').open")
	press(t, tab, "b")
	until(t, tab, "location.pathname === '/' && "+listShown)
}

func TestPages_OnPhone_NoHorizontalScroll(t *testing.T) {
	api, instances := startAPI(t, neverOffline, Sample(time.Now()))
	hostile, err := Post(t.Context(), api.URL, Hostile(time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	paths := map[string]string{"workload list": "/", "workload": pathOf(instances[Checkout]), "hostile workload": ""}
	for _, i := range hostile {
		paths["hostile workload"] = pathOf(i)
	}
	tab := openTab(t)
	emulate(t, tab, 360, 740, Media{})
	for name, path := range paths {
		t.Run(name, func(t *testing.T) {
			shown := workloadShown
			if path == "/" {
				shown = listShown
			}
			visit(t, tab, api.URL+path, shown)
			if wide := eval[int](t, tab, "document.documentElement.scrollWidth"); wide > 360 {
				t.Errorf("the page is %d pixels wide on a phone, want at most 360", wide)
			}
		})
	}
}

// The chip of a status without workloads is as high as the others, at any width of the window.
func TestWorkloadList_Chips_AreOneLineHigh(t *testing.T) {
	now := time.Now()
	api, _ := startAPI(t, neverOffline, Fleet{Clusters: []Cluster{{
		Agent:     threeport.Agent{ClusterUID: "c", ClusterName: "c", Time: now},
		Workloads: healthy(now, "web"),
	}}})
	tab := openTab(t)
	const highest = 36
	for name, width := range map[string]int64{"phone": 390, "desktop": 1280} {
		t.Run(name, func(t *testing.T) {
			emulate(t, tab, width, 844, Media{})
			visit(t, tab, api.URL+"/", listShown)
			until(t, tab, `document.querySelector('.chip[data-status="Down"] .number').textContent === '0'`)
			for _, height := range eval[[]float64](t, tab, "[...document.querySelectorAll('.chip')].map((chip) => chip.getBoundingClientRect().height)") {
				if height > highest {
					t.Errorf("a chip is %g pixels high, want one line: at most %d", height, highest)
				}
			}
			if wide := eval[int64](t, tab, "document.documentElement.scrollWidth"); wide > width {
				t.Errorf("the page is %d pixels wide, want at most the window's %d", wide, width)
			}
		})
	}
}

func TestTheme_FollowsSystemAndButton(t *testing.T) {
	api, _ := startAPI(t, neverOffline, Sample(time.Now()))
	tab := openTab(t)
	const ground = "getComputedStyle(document.body).backgroundColor"
	visit(t, tab, api.URL+"/", listShown)
	light := eval[string](t, tab, ground)
	emulate(t, tab, 1280, 900, Media{Dark: true})
	until(t, tab, fmt.Sprintf("%s !== %s", ground, quote(light)))
	dark := eval[string](t, tab, ground)
	click(t, tab, "#theme")
	until(t, tab, fmt.Sprintf("%s === %s && localStorage.theme === 'light'", ground, quote(light)))
	visit(t, tab, api.URL+"/", listShown+fmt.Sprintf(" && %s === %s", ground, quote(light))) // the browser stores the choice
	click(t, tab, "#theme")
	until(t, tab, fmt.Sprintf("%s === %s", ground, quote(dark)))
}

// sendStatus reports a status. Its version is the current time.
func sendStatus(t *testing.T, api *API, agent threeport.Agent, instance threeport.Instance, s threeport.StatusReport) {
	t.Helper()
	sendReport(t, api, agent, threeport.Report{Instance: instance, Status: &s})
}

func sendReport(t *testing.T, api *API, agent threeport.Agent, report threeport.Report) {
	t.Helper()
	agent.Time = time.Now()
	report.Version = threeport.ID(agent.Time.UnixMicro())
	err := SendReports(t.Context(), api.URL, threeport.ReportSet{Agent: agent, Reports: []threeport.Report{report}})
	if err != nil {
		t.Fatal(err)
	}
}
