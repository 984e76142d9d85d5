package browser

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// rowCount is the number of workloads in the list.
const rowCount = "Number(document.querySelector('.grid').getAttribute('aria-rowcount')) - 1"

func TestBoard_Filters(t *testing.T) {
	api, _ := startAPI(t, never, Sample(time.Now()))
	tab := openTab(t)
	visit(t, tab, api.URL+"/", boardShown)
	until(t, tab, rowCount+" === 37")
	if worst := eval[string](t, tab, "document.querySelector('.grid-list .row .badge').dataset.status"); worst != "Down" {
		t.Errorf("the first row is %s, expected the worst first: Down", worst)
	}

	click(t, tab, `.chip[data-status="Unhealthy"]`)
	until(t, tab, rowCount+" === 3 && location.search === '?status=Unhealthy'")
	if count := eval[string](t, tab, `document.querySelector('.chip[data-status="Healthy"] .number').textContent`); count != "28" {
		t.Errorf("while a status is chosen the chip Healthy counts %s, expected 28", count)
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
	until(t, tab, rowSays("ledger", "Down"))

	visit(t, tab, api.URL+"/?cluster=staging&type=HelmWorkloadInstance", boardShown)
	until(t, tab, rowCount+" === 1 && document.querySelector('#cluster').value === 'staging' && document.querySelector('#type').value === 'HelmWorkloadInstance'")
	visit(t, tab, api.URL+"/?text=nothing-has-this-name", "document.querySelector('.none').checkVisibility()")
}

func TestBoard_Sorts(t *testing.T) {
	api, _ := startAPI(t, never, Sample(time.Now()))
	tab := openTab(t)
	visit(t, tab, api.URL+"/", boardShown)
	click(t, tab, ".cell-name .sort")
	until(t, tab, "location.search === '?sort=name' && document.querySelector('.row .open').innerText === 'cart'")
	click(t, tab, ".cell-name .sort")
	until(t, tab, "location.search === '?sort=-name' && document.querySelector('.row .open').innerText === 'thumbnails'")
	if sorted := eval[string](t, tab, "document.querySelector('[role=columnheader].cell-name').getAttribute('aria-sort')"); sorted != "descending" {
		t.Errorf("aria-sort is %q, expected descending", sorted)
	}
}

// A cause is a chain of objects. Its end is the fault, so a narrow row must not cut it off.
func TestBoard_ShowsFaultyObject(t *testing.T) {
	api, _ := startAPI(t, never, Sample(time.Now()))
	tab := openTab(t)
	visit(t, tab, api.URL+"/?text=checkout-7d9c8b6f5", boardShown)
	until(t, tab, rowSays("checkout", "← 6 pods CrashLoopBackOff"))
	for reason, holds := range map[string]string{
		"the middle of the chain is only on the workload's page": "!fault.parentNode.innerText.includes('ReplicaSet')",
		"the tooltip shows the whole chain":                      "at(fault).title.includes(' ← ReplicaSet checkout-7d9c8b6f5 has 0 of 6 pods ready ← ')",

		"most of a long end is visible":      "fault.offsetWidth > fault.parentNode.offsetWidth / 2",
		"the deployed object is visible too": "document.querySelector('.symptom').offsetWidth > 100",
		"a cause without a chain is alone":   "[...document.querySelectorAll('.fault')].every((e) => e.hidden === (e.innerText === ''))",
	} {
		if !eval[bool](t, tab, "(() => { const fault = document.querySelector('.fault'); const at = (e) => { const r = e.getBoundingClientRect(); return document.elementFromPoint(r.x + 9, r.y + 9) }; return "+holds+" })()") {
			t.Errorf("%s: not so", reason)
		}
	}
}

func TestBoard_IsLive(t *testing.T) {
	now := time.Now()
	estate := Sample(now)
	api, instances := startAPI(t, never, estate)
	tab := openTab(t)
	visit(t, tab, api.URL+"/?text=catalog", boardShown)
	until(t, tab, rowSays("catalog", "Healthy"))
	eval[bool](t, tab, "window.notReloaded = true")

	say(t, api, estate.Clusters[0].Agent, instances["catalog"], status("Down", "Evicted", "Deployment catalog has 0 of 2 replicas ready", now, 0))
	until(t, tab, rowSays("catalog", "0 of 2 replicas ready"))
	until(t, tab, `document.querySelector('.chip[data-status="Down"] .number').textContent === '1'`)
	if !eval[bool](t, tab, "window.notReloaded === true") {
		t.Error("the page was reloaded")
	}
}

func TestBoard_OfflineAgent(t *testing.T) {
	api, _ := startAPI(t, 2*time.Second, Estate{Clusters: []Cluster{{
		Agent:     threeport.Agent{ClusterUID: "c", ClusterName: "c", Time: time.Now()},
		Workloads: healthy(time.Now(), "web"),
	}}})
	tab := openTab(t)
	visit(t, tab, api.URL+"/", boardShown)
	until(t, tab, rowSays("web", "No report since")+" && "+rowSays("web", "Unknown")+" && "+rowSays("web", "(last status: Healthy)")+" && "+rowSays("web", "offline"))
	click(t, tab, ".open")
	until(t, tab, "/^No report since .* \\(last status: Healthy\\)$/.test(document.querySelector('.cause-what').innerText)")
}

// A workload without reports is Unknown, with another message than a workload that its agent reports as Unknown.
func TestWorkloadPage_NeverReported(t *testing.T) {
	api, _ := startAPI(t, never, Estate{})
	if _, err := register(t.Context(), api.URL, Workload{Name: "web", Type: threeport.TypeWorkloadInstance}); err != nil {
		t.Fatal(err)
	}
	tab := openTab(t)
	visit(t, tab, api.URL+"/", boardShown)
	until(t, tab, rowSays("web", "No agent has reported this workload yet.")+" && "+rowSays("web", "Unknown"))
	click(t, tab, ".open")
	until(t, tab, "document.querySelector('.cause-what').innerText === 'No agent has reported this workload yet.'")
}

func TestConnection_LostAndRestored(t *testing.T) {
	now := time.Now()
	estate := Sample(now)
	api, instances := startAPI(t, never, estate)
	tab := openTab(t)
	tab.Ignore(isNetworkError)
	visit(t, tab, api.URL+"/?text=catalog", boardShown)
	until(t, tab, rowSays("catalog", "Healthy"))

	if err := api.Stop(); err != nil {
		t.Fatal(err)
	}
	until(t, tab, "document.querySelector('#banner').checkVisibility() && /Connection lost.*Showing data from .* old\\)/s.test(document.querySelector('#banner').innerText)")
	until(t, tab, "document.querySelector('#live').dataset.state === 'lost' && "+rowSays("catalog", "Healthy")) // the rows stay

	if err := api.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	until(t, tab, "!document.querySelector('#banner').checkVisibility() && document.querySelector('#live').dataset.state === 'live'")
	say(t, api, estate.Clusters[0].Agent, instances["catalog"], status("Down", "Evicted", "after the outage", now, 0))
	until(t, tab, rowSays("catalog", "after the outage"))
}

func TestConnection_ChangesDuringOutage_AreShown(t *testing.T) {
	now := time.Now()
	estate := Sample(now)
	api, instances := startAPI(t, never, estate)
	between := newBetween(t, api)
	tab := openTab(t)
	tab.Ignore(isNetworkError)
	visit(t, tab, between.URL+"/?text=catalog", boardShown)
	until(t, tab, rowSays("catalog", "Healthy"))

	between.answer(func(string) int { return 503 })
	between.CloseClientConnections()
	until(t, tab, "document.querySelector('#live').dataset.state === 'lost'")
	say(t, api, estate.Clusters[0].Agent, instances["catalog"], status("Down", "Evicted", "during the outage", now, 0))
	between.answer(nil)
	until(t, tab, rowSays("catalog", "during the outage"))
}

func TestBoard_KeyboardOnly(t *testing.T) {
	api, _ := startAPI(t, never, Sample(time.Now()))
	tab := openTab(t)
	visit(t, tab, api.URL+"/", boardShown)
	press(t, tab, "/")
	until(t, tab, "document.activeElement.id === 'text'")
	eval[string](t, tab, "document.activeElement.value = ''") // chromedp types the slash although the page took the key
	press(t, tab, "c", "h", "e", "c", "k", "o", "u", "t")
	until(t, tab, rowCount+" === 1")
	press(t, tab, kb.Escape)
	until(t, tab, rowCount+" === 37")
	press(t, tab, kb.ArrowDown)
	until(t, tab, "document.activeElement.matches('.row[aria-rowindex=\"2\"] .open')")
	press(t, tab, kb.ArrowDown, kb.End)
	until(t, tab, "document.activeElement.matches('.row[aria-rowindex=\"38\"] .open')")
	press(t, tab, kb.Home, kb.ArrowDown)
	until(t, tab, "document.activeElement.innerText === 'checkout'")
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
	until(t, tab, "location.pathname === '/' && "+boardShown)
}

func TestPage_OnPhone_NoHorizontalScroll(t *testing.T) {
	api, instances := startAPI(t, never, Sample(time.Now()))
	hostile, err := Post(t.Context(), api.URL, Hostile(time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	paths := map[string]string{"board": "/", "workload": pathOf(instances[Checkout]), "hostile workload": ""}
	for _, i := range hostile {
		paths["hostile workload"] = pathOf(i)
	}
	tab := openTab(t)
	emulate(t, tab, 360, 740, Media{})
	for name, path := range paths {
		t.Run(name, func(t *testing.T) {
			shown := workloadShown
			if path == "/" {
				shown = boardShown
			}
			visit(t, tab, api.URL+path, shown)
			if wide := eval[int](t, tab, "document.documentElement.scrollWidth"); wide > 360 {
				t.Errorf("the page is %d pixels wide on a phone of 360", wide)
			}
		})
	}
}

// A status that no workload has is as high as the others, in a window of any width.
func TestBoard_Chips_AreOneLineHigh(t *testing.T) {
	now := time.Now()
	api, _ := startAPI(t, never, Estate{Clusters: []Cluster{{
		Agent:     threeport.Agent{ClusterUID: "c", ClusterName: "c", Time: now},
		Workloads: healthy(now, "web"),
	}}})
	tab := openTab(t)
	const highest = 36
	for name, width := range map[string]int64{"phone": 390, "desktop": 1280} {
		t.Run(name, func(t *testing.T) {
			emulate(t, tab, width, 844, Media{})
			visit(t, tab, api.URL+"/", boardShown)
			until(t, tab, `document.querySelector('.chip[data-status="Down"] .number').textContent === '0'`)
			for _, height := range eval[[]float64](t, tab, "[...document.querySelectorAll('.chip')].map((chip) => chip.getBoundingClientRect().height)") {
				if height > highest {
					t.Errorf("a chip is %g pixels high, expected one line: at most %d", height, highest)
				}
			}
			if wide := eval[int64](t, tab, "document.documentElement.scrollWidth"); wide > width {
				t.Errorf("the page is %d pixels wide in a window of %d", wide, width)
			}
		})
	}
}

func TestTheme_Dark(t *testing.T) {
	api, _ := startAPI(t, never, Sample(time.Now()))
	tab := openTab(t)
	const ground = "getComputedStyle(document.body).backgroundColor"
	visit(t, tab, api.URL+"/", boardShown)
	light := eval[string](t, tab, ground)
	emulate(t, tab, 1280, 900, Media{Dark: true})
	until(t, tab, fmt.Sprintf("%s !== %s", ground, quote(light)))
	dark := eval[string](t, tab, ground)
	click(t, tab, "#theme")
	until(t, tab, fmt.Sprintf("%s === %s && localStorage.theme === 'light'", ground, quote(light)))
	visit(t, tab, api.URL+"/", boardShown+fmt.Sprintf(" && %s === %s", ground, quote(light))) // it is remembered
	click(t, tab, "#theme")
	until(t, tab, fmt.Sprintf("%s === %s", ground, quote(dark)))
}

// say reports a status, in a version of now.
func say(t *testing.T, api *API, agent threeport.Agent, instance threeport.Instance, s threeport.StatusReport) {
	t.Helper()
	agent.Time = time.Now()
	err := SendReports(t.Context(), api.URL, threeport.ReportSet{Agent: agent, Reports: []threeport.Report{
		{Instance: instance, Version: threeport.ID(agent.Time.UnixMicro()), Status: &s},
	}})
	if err != nil {
		t.Fatal(err)
	}
}
