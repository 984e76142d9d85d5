package browser

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// offlineTimeout is the agent timeout of tests whose agents are offline.
const offlineTimeout = time.Second

// names is a JavaScript expression: the names of the rows in the list.
const names = "[...document.querySelectorAll('.grid-list .row .open')].map((a) => a.innerText).join()"

// chipNumber is a JavaScript expression: the number of the chip of a status.
func chipNumber(status string) string {
	return fmt.Sprintf(`document.querySelector('.chip[data-status="%s"] .number').innerText`, status)
}

func newClusterWith(name string, workloads ...Workload) Cluster {
	c := newCluster(name, time.Now(), 0)
	c.Workloads = workloads
	return c
}

// Workloads of offline agents are all Unknown. The last status orders them.
func TestWorkloadList_OfflineClusters_SortByLastStatus(t *testing.T) {
	now := time.Now()
	api, _ := startAPI(t, offlineTimeout, Fleet{Clusters: []Cluster{
		newClusterWith("a", withStatus("was-healthy", status("Healthy", "", "", now, time.Minute))),
		newClusterWith("b", withStatus("was-down", status("Down", "Reason", "cause", now, time.Hour))),
		newClusterWith("c", withStatus("was-unhealthy", status("Unhealthy", "Reason", "cause", now, time.Minute))),
	}})
	tab := openTab(t)
	visit(t, tab, api.URL+"/", listShown+" && "+chipNumber("Unknown")+" === '3'")
	until(t, tab, names+" === 'was-down,was-unhealthy,was-healthy'")
	visit(t, tab, api.URL+"/?sort=-worst", listShown+" && "+names+" === 'was-healthy,was-unhealthy,was-down'")
}

// The workloads of an offline cluster are one line, which a click or the keyboard unfolds.
func TestWorkloadList_OfflineCluster_IsFolded(t *testing.T) {
	now := time.Now()
	api, _ := startAPI(t, offlineTimeout, Fleet{Clusters: []Cluster{
		newClusterWith("north", append(healthy(now, "web", "shop"), withStatus("db", status("Down", "Reason", "cause", now, time.Hour)))...),
		newClusterWith("south", healthy(now, "alone")...),
	}})
	tab := openTab(t)
	emulate(t, tab, 1280, 900, Media{ReducedMotion: true})
	visit(t, tab, api.URL+"/", listShown+" && "+chipNumber("Unknown")+" === '4'")
	const (
		folded   = names + " === 'north,alone' && " + rowCount + " === 2"
		unfolded = names + " === 'north,db,shop,web,alone' && " + rowCount + " === 5"
		line     = "document.querySelector('.row [aria-expanded]')"
	)
	until(t, tab, folded+" && "+line+".ariaExpanded === 'false'")
	until(t, tab, "/^Agent offline since \\d\\d:\\d\\d: 3 workloads, last 1 Down, 2 Healthy$/.test("+line+".closest('.row').querySelector('.fault').innerText)")
	until(t, tab, rowContains("north", "Unknown")+" && "+rowContains("north", "offline")+" && document.querySelector('.total').innerText === '4'")
	expectAccessible(t, tab)

	click(t, tab, ".row [aria-expanded]")
	until(t, tab, unfolded+" && "+line+".ariaExpanded === 'true' && document.activeElement === "+line)
	expectAccessible(t, tab)
	press(t, tab, kb.ArrowDown)
	until(t, tab, "document.activeElement.innerText === 'db'")
	press(t, tab, kb.Enter)
	until(t, tab, workloadShown)
	goBack(t, tab, unfolded+" && document.activeElement.innerText === 'db'")
	press(t, tab, kb.ArrowUp, kb.Enter)
	until(t, tab, folded+" && document.activeElement === "+line+" && location.pathname === '/'")
	press(t, tab, kb.ArrowRight)
	until(t, tab, unfolded)
	press(t, tab, kb.ArrowLeft)
	until(t, tab, folded)
	press(t, tab, " ")
	until(t, tab, unfolded)
	click(t, tab, ".row [aria-expanded]")
	until(t, tab, folded)

	// Filters and other orders show the workloads.
	for query, want := range map[string]string{
		"?text=north": "db,web,shop", "?status=Unknown": "db,web,shop,alone", "?only=silent": "db,web,shop,alone", "?cluster=north": "db,web,shop", "?sort=name": "alone,db,shop,web",
	} {
		visit(t, tab, api.URL+"/"+query, listShown)
		if err := tab.Until(names + ".split(',').sort().join() === " + quote(want) + ".split(',').sort().join()"); err != nil {
			t.Errorf("%s does not show each workload: %v", query, err)
		}
	}
}

// The page of an offline agent's workload does not claim that an object has a health now.
func TestWorkloadPage_OfflineAgent_ObjectsInPastTense(t *testing.T) {
	now := time.Now()
	w := withStatus("web", status("Unhealthy", "Unschedulable", "Deployment web has 1 of 2 replicas ready", now, 10*time.Minute))
	w.Status.Pending = 1
	deployment := object("apps", "Deployment", "web")
	w.addListed(deployment, "Unhealthy", "Unschedulable", "1 of 2 replicas ready")
	before := now.Add(-time.Hour)
	w.Tree[0].Since = &before
	w.addListed(object("", "ConfigMap", "config"), "Healthy", "", "")
	w.Tree = append(w.Tree, threeport.TreeObject{Object: object("", "Secret", "missing"), Listed: true, State: "Absent", Health: "Down", Reason: "Absent"})
	for i := range 5 {
		w.addDerived(object("", "Pod", fmt.Sprintf("web-%d", i)), deployment, "Healthy", "", "")
	}
	cluster := newClusterWith("north", w)
	api, instances := startAPI(t, 3*time.Second, Fleet{Clusters: []Cluster{cluster}})
	tab := openTab(t)
	const (
		panel = "document.querySelector('.object-facts').innerText"
		node  = "[...document.querySelectorAll('.node')]"
	)
	visit(t, tab, api.URL+pathOf(instances["web"]), "document.querySelector('.status-word').innerText.startsWith('Unknown')")
	click(t, tab, ".node[aria-label^='ConfigMap']")
	for name, condition := range map[string]string{
		"the panel's health":         panel + ".includes('was Healthy') && !/^Healthy/m.test(" + panel + ")",
		"the labels of the tree":     node + ".every((n) => /, was (Healthy|Unhealthy|Down)|were Healthy/.test(n.ariaLabel))",
		"the visible text of a node": node + ".every((n) => [...n.querySelectorAll('em')].every((e) => e.innerText.startsWith('was') && e.scrollWidth <= e.clientWidth || e.innerText === 'did not exist')) && document.querySelectorAll('.node em').length === 3",
		"an absent object":           node + ".some((n) => n.innerText.includes('did not exist')) && !" + node + ".some((n) => n.innerText.includes('does not exist'))",
		"a group":                    node + ".some((n) => n.innerText.includes('5 Pods were Healthy (grouped)'))",
		"no colour of a health":      "new Set([...document.querySelectorAll('.node .icon, .object-health .badge')].map((e) => getComputedStyle(e).color)).size <= 2",
		"the undelivered reports":    "document.querySelector('.notice.pending').innerText.startsWith('1 report was not delivered')",
	} {
		if err := tab.Until(condition); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	expectAccessible(t, tab)
	click(t, tab, ".node[aria-label^='Deployment']")
	until(t, tab, panel+".includes('Last reported cause: 1 of 2 replicas ready')")

	// The agent reports again. It must not be offline a second time on a slow machine.
	returned := time.Now()
	sendStatus(t, api, cluster.Agent, instances["web"], status("Healthy", "", "", now, 0))
	keepReporting(t, api, cluster.Agent)
	until(t, tab, "document.querySelector('.status-word').innerText.startsWith('Healthy') && "+node+".every((n) => !/was|were/.test(n.ariaLabel))")

	// The health that it sees first after its return may have begun before. The API keeps the start of a health that is the same as before.
	w.Tree[0].Health, w.Tree[0].Since = "Down", &returned
	sendReport(t, api, cluster.Agent, threeport.Report{Instance: instances["web"], Tree: &threeport.TreeReport{Objects: w.Tree}})
	if err := tab.Until("/^Down\\s+for at least \\d/.test(document.querySelector('.object-health').innerText)"); err != nil {
		detail := eval[string](t, tab, "fetch("+quote("/v0"+pathOf(instances["web"]))+").then((answer) => answer.text())")
		t.Fatalf("%v; the agent returned at %s, and the API shows %.600s", err, returned.UTC(), detail)
	}
	for since, want := range map[time.Time]bool{returned.Add(-time.Minute): false, returned.Add(-5 * time.Second): true, returned.Add(time.Minute): false} {
		call := fmt.Sprintf(`import(document.querySelector('link[href$="/objects.js"]').href).then(({ isFirstSeenAfterSilence }) => isFirstSeenAfterSilence({ since: %q }, [{ to: %q }]))`,
			since.Format(time.RFC3339Nano), returned.Format(time.RFC3339Nano))
		if got := eval[bool](t, tab, call); got != want {
			t.Errorf("a health since %s was seen first after the silence until %s: %t, want %t", since, returned, got, want)
		}
	}
}

// keepReporting sends a report set without reports each second until the test ends.
func keepReporting(t *testing.T, api *API, agent threeport.Agent) {
	t.Helper()
	stopped := make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				stopped <- nil
				return
			case agent.Time = <-ticker.C:
			}
			if err := SendReports(ctx, api.URL, threeport.ReportSet{Agent: agent, Reports: []threeport.Report{}}); err != nil && ctx.Err() == nil {
				stopped <- err
				return
			}
		}
	}()
	t.Cleanup(func() {
		stop()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
}

// The objects of a workload that is no longer watched are the last known ones, although its agent reports.
func TestWorkloadPage_NotWatched_ObjectsInPastTense(t *testing.T) {
	now := time.Now()
	w := withStatus("web", status("Unknown", "NotWatched", "ThreeportWorkload web was deleted", now, time.Minute))
	w.addListed(object("", "ConfigMap", "config"), "Healthy", "", "")
	api, instances := startAPI(t, time.Hour, Fleet{Clusters: []Cluster{newClusterWith("north", w)}})
	tab := openTab(t)
	visit(t, tab, api.URL+pathOf(instances["web"]), "document.querySelector('.cause-what').innerText === 'ThreeportWorkload web was deleted'")
	until(t, tab, "document.querySelector('.node').ariaLabel.includes(', was Healthy') && document.querySelector('.object-facts').innerText.includes('was Healthy')")
}

// Each screen has times of one zone: the viewer's, or UTC.
func TestTimes_OneZone(t *testing.T) {
	now := time.Now()
	const ahead = 14 // hours of the viewer's zone before UTC
	cluster := newClusterWith("north", withStatus("web", status("Down", "Reason", "cause", now, 10*time.Minute)), withStatus("db", status("Down", "Reason", "cause", now, 20*time.Minute)))
	cluster.Workloads[0].addListed(object("apps", "Deployment", "web"), "Down", "Reason", "cause")
	cluster.Workloads[0].Events = []threeport.EventReport{eventOf("e", now.Add(-5*time.Minute))}
	api, instances := startAPI(t, offlineTimeout, Fleet{Clusters: []Cluster{cluster}})
	tab := openTab(t)
	if _, err := chromedp.Call(tab.ctx, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Pacific/Kiritimati"}); err != nil {
		t.Fatal(err)
	}
	// otherZone has the texts and tooltips with a time that is hours from now in this zone. Without times it fails.
	otherZone := func(hours int) string {
		return fmt.Sprintf(`(() => {
			const now = Math.floor(Date.now() / 60000) + %d * 60;
			const texts = [...document.querySelectorAll('body *')].flatMap((e) => [e.title, e.ariaLabel, ...[...e.childNodes].map((n) => n.data)]).filter((text) => typeof text === 'string');
			const times = texts.flatMap((text) => [...text.matchAll(/(?<![+:\d])(\d\d):(\d\d)(?!\d)/g)].map(([, h, m]) => ({ text, from: Math.abs((now - h * 60 - m + 720) %% 1440 - 720) })));
			if (times.length < 3) throw new Error('too few times');
			return times.filter(({ from }) => from > 180).map(({ text }) => text);
		})()`, hours)
	}
	expectZone := func(screen string, hours int) {
		t.Helper()
		if err := tab.Until(otherZone(hours) + ".length === 0"); err != nil {
			t.Errorf("%s has times that are not of the zone UTC+%d: %q", screen, hours, eval[[]string](t, tab, otherZone(hours)))
		}
	}
	const pressed = "document.querySelector('#utc').ariaPressed"
	visit(t, tab, api.URL+"/", listShown+" && "+chipNumber("Unknown")+" === '2' && "+pressed+" === 'false'")
	click(t, tab, ".row [aria-expanded]")
	until(t, tab, rowCount+" === 3")
	expectZone("the list", ahead)
	click(t, tab, "#utc")
	until(t, tab, pressed+" === 'true'")
	expectZone("the list", 0)

	visit(t, tab, api.URL+pathOf(instances["web"]), "document.querySelector('.event') && document.querySelector('.axis text') && "+pressed+" === 'true'") // the browser stores the choice
	expectZone("the workload", 0)
	click(t, tab, "#utc")
	until(t, tab, pressed+" === 'false'")
	expectZone("the workload", ahead)
	eval[bool](t, tab, "document.querySelector('.facts .stamp').dispatchEvent(new MouseEvent('mouseover', { bubbles: true }))")
	until(t, tab, "/^\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d(\\.\\d+)? \\+14:00$/.test(document.querySelector('.tip').innerText)")
	expectZone("the workload with a tooltip", ahead)
}
