package browser

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// failWith503 returns a fault for requests that have all these texts in path and query: status 503.
func failWith503(texts ...string) func(uri string) int {
	return func(uri string) int {
		for _, text := range texts {
			if !strings.Contains(uri, text) {
				return 0
			}
		}
		return http.StatusServiceUnavailable
	}
}

const noteText = "document.querySelector('.note').checkVisibility() && document.querySelector('.note').innerText"

// A list with a failed page has a note that it is incomplete, until a retry succeeds.
func TestWorkloadList_RequestFailsHalfway_IsRetried(t *testing.T) {
	now := time.Now()
	fleet := ManyWorkloads(450, now)
	api, _ := startAPI(t, neverOffline, Fleet{})
	instances := postAndWatch(t, api, fleet)
	proxy := newFaultProxy(t, api)
	tab := openTab(t)
	tab.Ignore(isNetworkError)
	proxy.setFault(failWith503("/v0/workloads?", "cursor="))
	visit(t, tab, proxy.URL+"/", listShown)
	until(t, tab, noteText+" === 'Showing 200 of 450 workloads: Injected fault. Retrying.'")

	sendStatus(t, api, fleet.Clusters[0].Agent, instances["api-00000"], status("Unhealthy", "Reported", "while it failed", now, 0))
	until(t, tab, rowContains("api-00000", "while it failed"))
	proxy.setFault(nil)
	until(t, tab, rowCount+" === 450 && !document.querySelector('.note').checkVisibility()")
	until(t, tab, rowContains("api-00000", "while it failed"))
}

// postAndWatch posts a fleet and waits until a watch has received all workloads. A new watch receives the changes of the
// last half minute unless an earlier watch has received them. So later watches do not receive the fleet, and list it.
func postAndWatch(t *testing.T, api *API, fleet Fleet) map[string]threeport.Instance {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, api.URL+"/v0/workloads/watch", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() }) // the watch stays open during the test
	instances, err := Post(t.Context(), api.URL, fleet)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[threeport.Instance]bool{}
	for lines := bufio.NewScanner(resp.Body); len(seen) < len(instances); {
		if !lines.Scan() {
			t.Fatalf("the watch ended after %d of %d workloads: %v", len(seen), len(instances), lines.Err())
		}
		var row threeport.Workload
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if ok && json.Unmarshal([]byte(data), &row) == nil && row.Since != nil { // the agent reported the workload
			seen[row.Instance] = true
		}
	}
	return instances
}

// The page shows the data of the row at once, and the rest when the control plane answers.
func TestWorkloadPage_OpenedInOutage_ShowsRow(t *testing.T) {
	api, _ := startAPI(t, neverOffline, Sample(time.Now()))
	proxy := newFaultProxy(t, api)
	tab := openTab(t)
	tab.Ignore(isNetworkError)
	visit(t, tab, proxy.URL+"/?text=checkout", listShown)
	until(t, tab, rowCount+" === 1")
	proxy.setFault(failWith503())
	click(t, tab, ".open")
	until(t, tab, "document.querySelector('.verdict[data-status=Down] h1').innerText === 'checkout' && "+stateShown("busy"))
	proxy.setFault(nil)
	until(t, tab, workloadShown+" && document.querySelectorAll('.node').length > 5 && !document.querySelector('.state')")
}

func TestDefinition_RequestFails_IsRetried(t *testing.T) {
	api, instances := startAPI(t, neverOffline, Sample(time.Now()))
	proxy := newFaultProxy(t, api)
	tab := openTab(t)
	tab.Ignore(isNetworkError)
	proxy.setFault(failWith503("/objects/"))
	visit(t, tab, proxy.URL+pathOf(instances[Checkout]), workloadShown)
	until(t, tab, "document.querySelector('.object .code-note').innerText.startsWith('Injected fault. Retrying.')")
	proxy.setFault(nil)
	until(t, tab, "document.querySelectorAll('.object .line').length > 10 && !document.querySelector('.object > div > .code-note')")
}

// A workload that cannot be read again is shown as old, though the connection is live.
func TestWorkloadPage_RefreshFails_IsMarkedOld(t *testing.T) {
	now := time.Now()
	fleet := Sample(now)
	api, instances := startAPI(t, neverOffline, fleet)
	proxy := newFaultProxy(t, api)
	tab := openTab(t)
	tab.Ignore(isNetworkError)
	path := pathOf(instances["catalog"])
	visit(t, tab, proxy.URL+path, workloadShown)
	proxy.setFault(func(uri string) int {
		if uri == "/v0"+path {
			return http.StatusInternalServerError
		}
		return 0
	})
	sendStatus(t, api, fleet.Clusters[0].Agent, instances["catalog"], status("Down", "Reported", "while it failed", now, 0))
	until(t, tab, "/^Showing data from .* The current state could not be read: Injected fault. Retrying./.test("+noteText+") && document.querySelector('#live').dataset.state === 'live'")
	proxy.setFault(nil)
	until(t, tab, "document.querySelector('.cause-what').innerText === 'while it failed' && !document.querySelector('.note').checkVisibility()")
}

// A list of Events with a failed page has a note too, until a retry succeeds.
func TestTimeline_RequestFailsHalfway_IsRetried(t *testing.T) {
	now := time.Now()
	fleet := Fleet{Clusters: []Cluster{newCluster("c", now, 0)}}
	web := healthy(now, "web")[0]
	for i := range 620 {
		web.Events = append(web.Events, eventOf(fmt.Sprintf("event-%d", i), now.Add(-time.Duration(i)*time.Second)))
	}
	fleet.Clusters[0].Workloads = []Workload{web}
	api, instances := startAPI(t, neverOffline, fleet)
	proxy := newFaultProxy(t, api)
	tab := openTab(t)
	tab.Ignore(isNetworkError)
	const note = "document.querySelector('.happened .code-note')"
	proxy.setFault(failWith503("/events?", "cursor="))
	visit(t, tab, proxy.URL+pathOf(instances["web"]), workloadShown)
	until(t, tab, note+".innerText === 'Older Events could not be read: Injected fault. Retrying.'")
	proxy.setFault(nil)
	until(t, tab, "document.querySelector('.event-part h3').innerText === '620 Events' && !"+note+".checkVisibility()")

	// 120 new Events have three pages. The second page fails. After its retry succeeds, the third page follows.
	proxy.setFault(failWith503("/events?", "cursor="))
	var reports []threeport.Report
	for i := range 120 {
		event := eventOf(fmt.Sprintf("fresh-%d", i), now.Add(time.Duration(i)*time.Millisecond))
		reports = append(reports, threeport.Report{Instance: instances["web"], Version: 1, Event: &event})
	}
	agent := fleet.Clusters[0].Agent
	agent.Time = time.Now()
	if err := SendReports(t.Context(), api.URL, threeport.ReportSet{Agent: agent, Reports: reports}); err != nil {
		t.Fatal(err)
	}
	until(t, tab, note+".innerText === 'Newer Events could not be read: Injected fault. Retrying.' && document.querySelector('.event-part h3').innerText === '670 Events'")
	proxy.setFault(nil)
	until(t, tab, "document.querySelector('.event-part h3').innerText === '740 Events' && !"+note+".checkVisibility()")
}

func eventOf(uid string, at time.Time) threeport.EventReport {
	return threeport.EventReport{
		UID: uid, Involved: object("apps", "Deployment", "web"), Type: "Normal", Reason: "Reported", Message: "of " + uid, Time: at, Count: 1,
	}
}

// A page that is open for days keeps only the newest Events, up to its limit.
func TestTimeline_EventsOfManyDays_AreLimited(t *testing.T) {
	api, _ := startAPI(t, neverOffline, Fleet{})
	tab := openTab(t)
	visit(t, tab, api.URL+"/", stateShown("empty"))
	held := eval[[]any](t, tab, `(async () => {
		const { Events } = await import(document.querySelector('script[type=module]').src.replace('main.js', 'events.js'));
		let newest = 0;
		globalThis.fetch = async (url) => {
			const { searchParams } = new URL(url, location);
			const from = Number(searchParams.get('cursor') || newest), to = from - Number(searchParams.get('size'));
			const items = [];
			for (let i = from; i > Math.max(to, 0); i--) items.push({ id: String(i), time: new Date(i * 1000).toISOString(), reason: 'Reported', message: '', count: 1 });
			return new Response(JSON.stringify({ items, next: to > 0 ? String(to) : '' }));
		};
		const events = new Events('/events');
		newest = 4000;
		await events.load();
		const first = [events.items.length, events.complete, events.cut];
		for (newest = 6000; newest <= 12000; newest += 2000) await events.refresh();
		return [...first, events.items.length, events.items[0].id, events.items.at(-1).id, events.cut];
	})()`)
	if got, want := fmt.Sprint(held), "[4000 true false 5000 12000 7001 true]"; got != want {
		t.Errorf("the page keeps %s, want %s", got, want)
	}
}
