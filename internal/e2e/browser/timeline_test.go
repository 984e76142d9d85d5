package browser

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// eventsShown is the condition that the page shows the Events of [Sample]'s checkout.
const eventsShown = "document.querySelectorAll('.event').length >= 50 && document.querySelector('.point')"

// The list and the timeline show the same number of Events.
func TestTimeline_Filters_InAddress(t *testing.T) {
	api, instances := startAPI(t, neverOffline, Sample(time.Now()))
	tab := openTab(t)
	visit(t, tab, api.URL+pathOf(instances[Checkout])+"?object=none", eventsShown)
	const (
		listed   = "Number(/^\\d+/.exec(document.querySelector('.event-part h3').innerText)[0])"
		drawn    = "Number(/: (\\d+) Event/.exec(document.querySelector('.plot-area').getAttribute('aria-label'))[1])"
		asListed = drawn + " === " + listed
	)
	until(t, tab, asListed)

	click(t, tab, `.timeline-tools [aria-label="The last 24 h"]`)
	until(t, tab, "location.search === '?object=none&last=1d' && "+listed+" > 60 && "+asListed)
	if err := tab.Do(chromedp.SendKeys(chromedp.CSS("#event-text"), "back-off 2n")); err != nil {
		t.Fatal(err)
	}
	until(t, tab, "location.search === '?object=none&last=1d&text=back-off+2n' && "+listed+" === 1")
	eval[bool](t, tab, "Object.assign(document.querySelector('[aria-label=\"Kind of object\"]'), { value: 'Pod' }).dispatchEvent(new Event('change'))")
	until(t, tab, "location.search === '?object=none&last=1d&text=back-off+2n&kind=Pod'")

	for name, do := range map[string]chromedp.Action[chromedp.Void]{"reload": chromedp.Reload(), "link": chromedp.Navigate(eval[string](t, tab, "location.href"))} {
		if err := tab.Do(do); err != nil {
			t.Fatal(err)
		}
		const same = "document.querySelector('#event-text').value === 'back-off 2n' && document.querySelector('[aria-label=\"Kind of object\"]').value === 'Pod' && location.search === '?object=none&last=1d&text=back-off+2n&kind=Pod'"
		if err := tab.Until(same + " && document.querySelectorAll('.event').length === 1 && /^Timeline from \\d+ \\w+, /.test(document.querySelector('.plot-area').getAttribute('aria-label'))"); err != nil {
			t.Errorf("after a %s the filters are not restored: %v", name, err)
		}
	}
	click(t, tab, ".node[aria-level=\"1\"]")
	until(t, tab, "!location.search.includes('object=none') && location.search.includes('object=') && location.search.includes('last=1d&text=back-off+2n&kind=Pod')")

	// A link to a range of the past shows the same range to every reader at any time.
	const past = "?from=2026-01-05T10:00:00Z&to=2026-01-05T11:00:00Z&level=Warning&kind=Kraken"
	visit(t, tab, api.URL+pathOf(instances[Checkout])+past, "document.querySelector('.plot-area').getAttribute('aria-label').startsWith('Timeline from 5 Jan')")
	until(t, tab, "document.querySelector('[aria-label=Level]').value === 'Warning' && document.querySelector('[aria-label=\"Kind of object\"]').value === 'Kraken' && "+listed+" === 0")
	visit(t, tab, api.URL+pathOf(instances[Checkout])+"?last=all", eventsShown+" && "+listed+" > 60")
	visit(t, tab, api.URL+pathOf(instances[Checkout])+"?last=soon&from=never&to=now&level=Loud", eventsShown) // unknown values are ignored
}

// The page moves nothing while a pointer is down, and draws only after a change of position.
func TestTimeline_Updates_KeepPosition(t *testing.T) {
	now := time.Now()
	fleet := Sample(now)
	api, instances := startAPI(t, neverOffline, fleet)
	tab := openTab(t)
	visit(t, tab, api.URL+pathOf(instances[Checkout]), eventsShown)
	const seconds = "document.querySelector('.facts [data-ago]').textContent"
	tick := func() {
		before := eval[string](t, tab, seconds)
		until(t, tab, seconds+" !== "+quote(before))
	}
	click(t, tab, `.timeline-tools [aria-label="The last 24 h"]`)
	tick()
	eval[bool](t, tab, "Boolean(window.mark = document.querySelector('.point'))")
	tick()
	tick()
	if !eval[bool](t, tab, "window.mark.isConnected") {
		t.Error("the timeline of a day was drawn again after a second, want the same elements")
	}

	click(t, tab, `.timeline-tools [aria-label="The last 15 min"]`)
	eval[bool](t, tab, "(document.querySelector('.timeline').scrollIntoView({ block: 'center' }), true)")
	tick()
	at := eval[[]float64](t, tab, "(() => { const r = [...document.querySelectorAll('.point .target')].at(-1).getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2] })()")
	dispatchMouse(t, tab, input.DispatchMouseEventTypeMousePressed, at)
	sendStatus(t, api, fleet.Clusters[0].Agent, instances[Checkout], status("Error", "Changed", "while a pointer is down", time.Now(), 0))
	until(t, tab, "document.querySelector('.status-word').innerText.startsWith('Error')")
	tick()
	dispatchMouse(t, tab, input.DispatchMouseEventTypeMouseReleased, at)
	until(t, tab, "document.querySelector('.event.picked')")
	until(t, tab, "document.querySelector('.band [data-status=Error]')") // the delayed drawing follows
}

// The workload is Down for 23 minutes. It was last Healthy 27 minutes ago, according to its Events.
func TestWorkloadPage_NotHealthySince_IsFirstTransitionFromHealthy(t *testing.T) {
	now := time.Now()
	api, instances := startAPI(t, neverOffline, Sample(now))
	tab := openTab(t)
	visit(t, tab, api.URL+pathOf(instances[Checkout]), eventsShown)
	const fact = "document.querySelector('.facts [data-key=Since] dd')"
	until(t, tab, fact+".innerText.includes(' (not Healthy since ')")
	for i, minutes := range []int{23, 27} {
		at := eval[float64](t, tab, fmt.Sprintf("Date.parse(%s.querySelectorAll('time')[%d].dateTime)", fact, i))
		if want := now.Add(-time.Duration(minutes) * time.Minute); time.UnixMilli(int64(at)).Sub(want).Abs() > time.Second {
			t.Errorf("time %d is %s, want %s", i, time.UnixMilli(int64(at)), want)
		}
	}
	until(t, tab, "/^Down · not Healthy for 27 min$/.test(document.querySelector('.status-word').innerText)")
	visit(t, tab, api.URL+pathOf(instances["ledger"]), "document.querySelector('.event-list, .happened .code-note')?.innerText && "+fact)
	if text := eval[string](t, tab, fact+".innerText"); strings.Contains(text, "not Healthy") {
		t.Errorf("a workload without Events shows %q", text)
	}
}

// A workload that has recovered has only the begin of its present status, in whatever order its Events arrive. One that was never
// Healthy has the begin of its first status.
func TestWorkloadPage_NotHealthySince(t *testing.T) {
	type change struct {
		status  string
		minutes time.Duration // ago
	}
	now := time.Now()
	var cluster []Workload
	for _, w := range []struct {
		name, status string
		changes      []change
	}{
		{"recovered", "Healthy", []change{{"Healthy", 1}, {"Down", 20}, {"Healthy", 40}, {"Unhealthy", 21}}},
		{"never-healthy", "Unhealthy", []change{{"Unhealthy", 1}, {"Down", 2}, {"Unhealthy", 19}, {"Down", 20}}},
	} {
		row := withStatus(w.name, status(w.status, "", "", now, time.Minute))
		ref := threeport.ObjectRef{Group: "control-plane.threeport.io", Version: "v1alpha1", Kind: "ThreeportWorkload", Name: w.name, UID: "uid-of-" + w.name}
		for i, c := range w.changes {
			row.Events = append(row.Events, threeport.EventReport{
				UID: fmt.Sprint(w.name, "-change-", i), Involved: ref, Type: "Normal", Reason: "Workload" + c.status,
				Message: "the health has changed", Time: now.Add(-c.minutes * time.Minute),
			})
		}
		cluster = append(cluster, row)
	}
	api, instances := startAPI(t, neverOffline, Fleet{Clusters: []Cluster{newClusterWith("north", cluster...)}})
	tab := openTab(t)
	const fourEvents = workloadShown + " && document.querySelectorAll('.event').length === 4"
	visit(t, tab, api.URL+pathOf(instances["recovered"]), fourEvents)
	expectAll(t, tab, map[string]string{
		"the status has its own duration": "/^Healthy for 1 min$/.test(document.querySelector('.status-word').innerText)",
		"Since has one time":              "document.querySelectorAll('.facts [data-key=Since] time').length === 1",
	})
	visit(t, tab, api.URL+pathOf(instances["never-healthy"]), fourEvents)
	until(t, tab, "/^Unhealthy · not Healthy for 20 min$/.test(document.querySelector('.status-word').innerText)")
}

// The pointer shows one exact time, and a button shows all. So times need not take the focus by Tab.
func TestTimeline_ExactTimes_AreShown(t *testing.T) {
	api, instances := startAPI(t, neverOffline, Sample(time.Now()))
	tab := openTab(t)
	visit(t, tab, api.URL+pathOf(instances[Checkout]), eventsShown)
	if stops := eval[int](t, tab, "document.querySelectorAll('main time[tabindex]').length"); stops > 0 {
		t.Errorf("%d times take the focus by Tab, want none", stops)
	}
	eval[bool](t, tab, "new Promise((done) => { addEventListener('scroll', () => done(true), { once: true }); document.querySelector('.event:nth-child(9)').scrollIntoView({ block: 'center' }) })")
	centre := func(css string) []float64 {
		return eval[[]float64](t, tab, "(() => { const r = document.querySelector("+quote(css)+").getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2] })()")
	}
	const exact = ".event:nth-child(9) .when time"
	dispatchMouse(t, tab, input.DispatchMouseEventTypeMouseMoved, centre(exact))
	const shown = "document.querySelector('.tip').matches(':popover-open')"
	until(t, tab, shown+" && document.querySelector('.tip').innerText.includes(document.querySelector("+quote(exact)+").textContent.split(' ').at(-1))")
	at := centre(".tip")
	if !eval[bool](t, tab, fmt.Sprintf("document.elementFromPoint(%f, %f).matches('.tip')", at[0], at[1])) {
		t.Error("another element covers the exact time")
	}
	dispatchMouse(t, tab, input.DispatchMouseEventTypeMouseMoved, at) // users of a screen magnifier point at the tooltip
	until(t, tab, shown)
	press(t, tab, kb.Escape)
	until(t, tab, "!"+shown)

	eval[bool](t, tab, "document.querySelector('#utc').focus() ?? true")
	press(t, tab, kb.Enter)
	const allExact = "[...document.querySelectorAll('main time.stamp')].every((time) => /\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d(\\.\\d+)? UTC/.test(time.textContent))"
	until(t, tab, allExact+" && document.querySelector('#utc').ariaPressed === 'true'")
	visit(t, tab, api.URL+pathOf(instances[Checkout]), eventsShown+" && "+allExact) // the browser stores the choice
	if wide := eval[int](t, tab, "document.documentElement.scrollWidth"); wide > 1280 {
		t.Errorf("with exact times the page is %d pixels wide, want at most 1280", wide)
	}
	expectAccessible(t, tab)
	click(t, tab, "#utc")
	until(t, tab, "[...document.querySelectorAll('.event time')].every((time) => !time.textContent.includes('UTC'))")
}

func TestTimeline_Labels_AreNotCut(t *testing.T) {
	now := time.Now()
	fleet := Sample(now)
	hostile := Hostile(now)
	names := []string{"right-\u202eot-tfel-with-a-tail", "שלום-עולם-ארוך-מאוד", "zero\u200bwidth-abcdef", strings.Repeat("very-long-", 25) + "end", `<img src=x onerror="alert(1)">`}
	for i, name := range names {
		ref := threeport.ObjectRef{Version: "v1", Kind: "Pod\u202e", Namespace: "x", Name: name, UID: fmt.Sprint("lane-", i)}
		w := &hostile.Clusters[0].Workloads[0]
		w.Events = append(w.Events, threeport.EventReport{UID: fmt.Sprint("lane-event-", i), Involved: ref, Type: "Warning", Reason: "R", Message: "m", Time: now.Add(-time.Minute)})
	}
	var chain []string
	for i := range 40 {
		chain = append(chain, fmt.Sprintf("link %d", i))
	}
	fleet.Clusters[0].Workloads = append(fleet.Clusters[0].Workloads, withStatus("chained", status("Down", "Chain", strings.Join(chain, " ← "), now, 5*time.Hour)))
	api, instances := startAPI(t, neverOffline, fleet)
	hostiles, err := Post(t.Context(), api.URL, hostile)
	if err != nil {
		t.Fatal(err)
	}
	tab := openTab(t)
	for _, width := range []int64{1280, 360} {
		emulate(t, tab, width, 800, Media{})
		visit(t, tab, api.URL+pathOf(instances[Checkout]), eventsShown)
		for _, span := range []string{"All Events", "The last 15 min", "The last 24 h", "Zoom in", "Zoom in", "Zoom in"} {
			if err := tab.Do(discard("document.querySelector('.timeline-tools [aria-label=\"" + span + "\"]').click()")); err != nil {
				t.Fatal(err)
			}
			const cut = `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done([...document.querySelectorAll('.axis text')].filter((text) => {
				const box = text.getBBox();
				return box.x < 0 || box.x + box.width > document.querySelector('.plot').clientWidth;
			}).map((text) => text.textContent)))))`
			if labels := eval[[]string](t, tab, cut); len(labels) > 0 {
				t.Errorf("in a window of %d pixels the axis cuts off the labels %q (%s)", width, labels, span)
			}
		}
		until(t, tab, "[...document.querySelectorAll('.lane-label')].some((l) => l.innerText.includes('4kq2n') && l.lastElementChild.lastElementChild.getBoundingClientRect().right <= l.getBoundingClientRect().right)") // pods differ at the end of their names
	}

	emulate(t, tab, 1280, 800, Media{})
	visit(t, tab, api.URL+pathOf(hostiles[hostile.Clusters[0].Workloads[0].Name]), "document.querySelectorAll('.lane-label').length === 7")
	for name, holds := range map[string]string{
		"names create no elements":                 "!document.querySelector('.lane-labels img, .plot img')",
		"control characters of names are removed":  "!/[\\u202e\\u200b]/.test(document.querySelector('.timeline').innerHTML)",
		"control characters are written as U+XXXX": "document.querySelector('.lane-labels').innerText.includes('U+202E')",
		"each label is one line high":              "[...document.querySelectorAll('.lane-label')].every((l) => l.offsetHeight <= 30 && l.offsetWidth <= 230)",
		"each name is isolated (bdi)":              "[...document.querySelectorAll('.lane-label')].slice(1).every((l) => l.querySelectorAll('bdi').length === 2)",
	} {
		if !eval[bool](t, tab, holds) {
			t.Errorf("this is not true on the page: %s", name)
		}
	}

	visit(t, tab, api.URL+pathOf(instances["chained"]), workloadShown)
	until(t, tab, "document.querySelector('.cause-what').innerText === 'link 39' && document.querySelector('.cause-why > li:last-child').innerText === 'link 0' && document.querySelectorAll('.cause-why > li').length === 13")
	click(t, tab, ".cause-why summary")
	const whole = "[...document.querySelectorAll('.cause-why li:not(.between)')].map((li) => li.innerText).join() === Array.from({ length: 39 }, (_, i) => `link ${38 - i}`).join()"
	until(t, tab, whole)
	sendStatus(t, api, fleet.Clusters[0].Agent, instances["chained"], status("Down", "Reported again", strings.Join(chain, " ← "), now, 5*time.Hour))
	until(t, tab, "document.querySelector('.facts').innerText.includes('Reported again') && document.querySelector('.cause-why details').open && "+whole)
	// Without Events the band shows the start of the status.
	until(t, tab, "document.querySelector('.band rect').x.baseVal.value > 5 && document.querySelector('.band rect').width.baseVal.value > 200")
	click(t, tab, `.timeline-tools [aria-label="All Events"]`)
	until(t, tab, "document.querySelector('.band rect').x.baseVal.value > 5 && document.querySelector('.band rect').width.baseVal.value > 200")
}

// The page of an offline agent's workload shows the last report and its time.
func TestWorkloadPage_OfflineAgent_ShowsLastReport(t *testing.T) {
	now := time.Now()
	w := withStatus("web", status("Unhealthy", "Unschedulable", "Deployment web has 1 of 2 replicas ready ← 1 pod Unschedulable", now, 10*time.Minute))
	agent := threeport.Agent{ClusterUID: "c", ClusterName: "c", Time: now}
	api, instances := startAPI(t, 3*time.Second, Fleet{Clusters: []Cluster{{Agent: agent, Workloads: []Workload{w}}}})
	tab := openTab(t)
	visit(t, tab, api.URL+pathOf(instances["web"]), "/^Unknown for \\d+ s/.test(document.querySelector('.status-word').innerText)")
	for name, condition := range map[string]string{
		"last report":                   "/^No report since .* \\(last status: Unhealthy\\)$/.test(document.querySelector('.cause-what').innerText)",
		"cause":                         "document.querySelector('.cause').innerText.includes('Last reported cause: 1 pod Unschedulable') && document.querySelector('.cause-why').innerText === 'Deployment web has 1 of 2 replicas ready'",
		"start of both statuses":        "/Unknown since/.test(document.querySelector('.facts').innerText) && /Was Unhealthy since/.test(document.querySelector('.facts').innerText)",
		"no other start time":           "![...document.querySelectorAll('.facts dt')].some((dt) => dt.innerText === 'Since' || dt.innerText === 'Reason')",
		"the health before the outage":  "[...document.querySelectorAll('.band g')].map((g) => g.dataset.status).join() === 'Unhealthy,Unknown'",
		"most of the band is Unhealthy": "(([was, is]) => was.width.baseVal.value > 10 * is.width.baseVal.value)(document.querySelectorAll('.band rect'))",
	} {
		if err := tab.Until(condition); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	// It reports again: the time without reports stays Unknown. It must not be offline a second time on a slow machine.
	sendStatus(t, api, agent, instances["web"], status("Unhealthy", "Unschedulable", "1 pod Unschedulable", time.Now(), 10*time.Minute))
	keepReporting(t, api, agent)
	until(t, tab, "[...document.querySelectorAll('.band g')].map((g) => g.dataset.status).join().startsWith('Unhealthy,Unknown,Unhealthy')")
}

// dispatchMouse sends a mouse event at a position in the window.
func dispatchMouse(t *testing.T, tab *Tab, kind input.DispatchMouseEventType, at []float64) {
	t.Helper()
	event := input.DispatchMouseEventParams{Type: kind, X: at[0], Y: at[1]}
	if kind != input.DispatchMouseEventTypeMouseMoved {
		event.Button, event.ClickCount = input.MouseButtonLeft, 1
	}
	if _, err := chromedp.Call(tab.ctx, input.DispatchMouseEvent, event); err != nil {
		t.Fatal(err)
	}
}
