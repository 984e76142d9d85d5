package browser

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/threeport/threeport-agent/internal/threeport"
)

func TestWorkloadPage_ShowsReports(t *testing.T) {
	api, instances := startAPI(t, neverOffline, Sample(time.Now()))
	tab := openTab(t)
	visit(t, tab, api.URL+pathOf(instances[Checkout]), workloadShown)

	for name, condition := range map[string]string{
		"the cause at the top":            "document.querySelector('.cause-what').innerText.startsWith('6 pods CrashLoopBackOff: ')",
		"the owner chain below the cause": "document.querySelector('.cause-why').innerText === 'ReplicaSet checkout-7d9c8b6f5 has 0 of 6 pods ready\\nDeployment checkout has 0 of 6 replicas ready'",
		"the number of pending reports":   "document.querySelector('.notice.pending').innerText.includes('14 reports are not delivered yet')",
		"the number of rejected reports":  "document.querySelector('.notice.rejected').innerText.includes('1 report was rejected by the control plane. Its content is missing here. ')",
		"no text that begins with a dot":  "!/^\\s*\\. /m.test([...document.querySelectorAll('.notice *')].flatMap((e) => [...e.childNodes]).map((n) => n.data ?? '').join('\\n'))",
		"the number of dropped Events":    "document.querySelector('.notice.dropped').innerText.includes('212 Events were dropped')",
		"a node of the tree":              "document.querySelector('[role=treeitem][aria-level=\"3\"]').getAttribute('aria-label').startsWith('Pod checkout-7d9c8b6f5-4kq2n, Down')",
		"similar objects in a group":      "[...document.querySelectorAll('.node.group')].some((n) => n.innerText.includes('12 Healthy Pods (grouped)'))",
		"the health over time":            "[...document.querySelectorAll('.band g')].map((g) => g.dataset.status).join() === 'Healthy,Reconciling,Unhealthy,Down'",
		"the range of dropped Events":     "document.querySelector('.gap title').textContent === '212 Events were dropped here'",
		"no range of filtered Events":     "document.querySelectorAll('.gap').length === 1",
		"Events in the timeline":          "document.querySelectorAll('.point.warning').length > 6",
		"Events in the list":              "document.querySelector('.event.warning .message').innerText.startsWith('Back-off restarting')",
		"the worst object's definition":   "document.querySelector('#object-title').innerText.includes('Deployment checkout') && document.querySelectorAll('.line').length > 10",
		"the status in the title":         "document.title === 'Down: checkout'",
	} {
		if err := tab.Until(condition); err != nil {
			t.Errorf("the page does not show %s: %v", name, err)
		}
	}
}

func TestDefinition_SearchAndDiff(t *testing.T) {
	api, instances := startAPI(t, neverOffline, Sample(time.Now()))
	tab := openTab(t)
	visit(t, tab, api.URL+pathOf(instances[Checkout]), "document.querySelectorAll('.line').length > 10")
	if err := tab.Do(chromedp.SendKeys(chromedp.CSS("#find"), "checkout")); err != nil {
		t.Fatal(err)
	}
	until(t, tab, "/^1 of 8$/.test(document.querySelector('.found').innerText) && document.querySelectorAll('mark.current').length === 1")
	const matchVisible = "(([a, b]) => a.top >= b.top && a.bottom <= b.bottom)(['mark.current', '.folded .code'].map((css) => document.querySelector(css).getBoundingClientRect()))"
	until(t, tab, matchVisible)
	press(t, tab, kb.Enter)
	until(t, tab, "/^2 of /.test(document.querySelector('.found').innerText) && "+matchVisible)

	click(t, tab, "#tab-changes")
	until(t, tab, "[...document.querySelectorAll('ins')].some((l) => l.innerText.includes('checkout:4.18.0')) && [...document.querySelectorAll('del')].some((l) => l.innerText.includes('checkout:4.17.2'))")
	if sign := eval[string](t, tab, "document.querySelector('ins .sign').innerText + document.querySelector('del .sign').innerText"); sign != "+−" {
		t.Errorf("added and removed lines have the signs %q, want +−", sign)
	}
}

func TestTimeline_ZoomsAndFilters(t *testing.T) {
	api, instances := startAPI(t, neverOffline, Sample(time.Now()))
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

func TestWorkloadPage_NewStatus_IsShown(t *testing.T) {
	now := time.Now()
	fleet := Sample(now)
	api, instances := startAPI(t, neverOffline, fleet)
	tab := openTab(t)
	visit(t, tab, api.URL+pathOf(instances[Checkout]), workloadShown)
	sendStatus(t, api, fleet.Clusters[0].Agent, instances[Checkout], status("Healthy", "", "", now, 0))
	until(t, tab, "document.querySelector('.status-word').innerText.startsWith('Healthy') && document.title === 'Healthy: checkout'")
}

func TestPages_HostileText_IsEscaped(t *testing.T) {
	api, instances := startAPI(t, neverOffline, Hostile(time.Now()))
	tab := openTab(t)
	visit(t, tab, api.URL+"/", listShown)
	until(t, tab, rowContains("javascript:alert(3)", "<script>document.title='owned'</script>"))
	until(t, tab, rowContains("right-U+202Eot-tfel", "Down"))
	for name, instance := range instances {
		visit(t, tab, api.URL+pathOf(instance), workloadShown+" && document.querySelectorAll('.line').length > 3 && document.querySelector('.event')")
		until(t, tab, "document.querySelector('.cause').innerText.includes('onerror=\"alert(1)\"')")
		if found := eval[int](t, tab, "document.querySelectorAll('main script, main img, main b[onmouseover], svg[onload]').length"); found != 0 {
			t.Errorf("the page of %.20q has %d elements that a text created, want none", name, found)
		}
		until(t, tab, "[...document.querySelectorAll('.line')].some((l) => l.innerText.includes('9007199254740993'))")
	}
	if title := eval[string](t, tab, "document.title"); title == "owned" {
		t.Error("a script in a name was executed")
	}
	click(t, tab, ".cause-why .long .link")
	until(t, tab, "document.querySelector('.cause-why .long').innerText.length > 10000")
}

func TestPages_FailedRequests_ShowState(t *testing.T) {
	api, _ := startAPI(t, neverOffline, Fleet{})
	proxy := newFaultProxy(t, api)
	tab := openTab(t)
	tab.Ignore(isNetworkError)
	visit(t, tab, proxy.URL+"/", stateShown("empty"))
	visit(t, tab, proxy.URL+"/workloads/WorkloadInstance/1", stateShown("missing"))
	for code, state := range map[int]string{401: "signed-out", 403: "forbidden", 500: "broken", 503: "busy"} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			proxy.setFault(func(string) int { return code })
			visit(t, tab, proxy.URL+"/?status=Down", stateShown(state))
			if code < 500 {
				until(t, tab, "document.querySelector('[data-login]').getAttribute('href') === '/login?next=%2F%3Fstatus%3DDown'")
				return
			}
			proxy.setFault(nil)
			eval[bool](t, tab, "document.querySelector('.state .primary')?.click() ?? true") // the page may retry first
			until(t, tab, stateShown("empty"))
		})
	}
}

func stateShown(name string) string {
	return fmt.Sprintf("document.querySelector('.state[data-state=%q]')", name)
}

// A Deployment that is scaled to 0 says so, and the line to its deleted ReplicaSet is not in the colour of a fault.
func TestWorkloadPage_ScaledToZero_IsShown(t *testing.T) {
	now := time.Now()
	const cause = "Deployment web is scaled to 0"
	w := withStatus("web", status("Healthy", "ScaledToZero", cause, now, time.Minute))
	deployment := object("apps", "Deployment", "web")
	w.addListed(deployment, "Healthy", "ScaledToZero", cause)
	remaining := w.Tree
	w.addDerived(object("apps", "ReplicaSet", "web-1"), deployment, "Down", "CrashLoopBackOff", "it crashes")
	cluster := newClusterWith("north", w)
	api, instances := startAPI(t, time.Hour, Fleet{Clusters: []Cluster{cluster}})
	tab := openTab(t)
	const line = "document.querySelector('.edges path').dataset.status"
	visit(t, tab, api.URL+pathOf(instances["web"]), workloadShown+" && "+line+" === 'Down'")
	err := SendReports(t.Context(), api.URL, threeport.ReportSet{Agent: cluster.Agent, Reports: []threeport.Report{
		{Instance: instances["web"], Version: threeport.ID(time.Now().UnixMicro()), Tree: &threeport.TreeReport{Objects: remaining}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	until(t, tab, line+" === 'Gone'")
	until(t, tab, "document.querySelector('.cause-what').innerText === '"+cause+"'")
	until(t, tab, "document.querySelector('.node em').innerText === 'scaled to 0'")
	expectAccessible(t, tab)
}

// Agents leave ReplicaSets without Pods out of the tree, although they exist.
func TestWorkloadPage_UnusedReplicaSets_AreNotDeleted(t *testing.T) {
	now := time.Now()
	w := withStatus("web", status("Healthy", "", "", now, time.Minute))
	deployment := object("apps", "Deployment", "web")
	w.addListed(deployment, "Healthy", "", "")
	remaining := w.Tree
	w.addDerived(object("apps", "ReplicaSet", "web-1"), deployment, "Healthy", "", "")
	w.addDerived(object("apps", "ReplicaSet", "web-2"), deployment, "Healthy", "", "")
	w.addDerived(object("", "Pod", "web-1-a"), deployment, "Healthy", "", "")
	cluster := newClusterWith("north", w)
	api, instances := startAPI(t, neverOffline, Fleet{Clusters: []Cluster{cluster}})
	err := SendReports(t.Context(), api.URL, threeport.ReportSet{Agent: cluster.Agent, Reports: []threeport.Report{
		{Instance: instances["web"], Version: threeport.ID(time.Now().UnixMicro()), Tree: &threeport.TreeReport{Objects: remaining}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	tab := openTab(t)
	visit(t, tab, api.URL+pathOf(instances["web"]), "document.querySelector('.node.group')?.innerText.trim() === '2 unused ReplicaSets (grouped)'")
	until(t, tab, "document.querySelector('[aria-label^=\"Pod web-1-a, deleted\"]')")
	click(t, tab, ".node.group")
	click(t, tab, "[aria-label^=\"ReplicaSet web-1, unused\"]")
	until(t, tab, "/^was Healthy\\s*unused since /.test(document.querySelector('.object-health').innerText) && document.querySelector('.object .code-note').innerText === 'The ReplicaSet has no Pods. It may still exist.'")
}
