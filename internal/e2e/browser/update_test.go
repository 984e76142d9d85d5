package browser

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// changingWorkload is a workload that changes with each update: its cause, its objects, and the definition of the object at fault.
// The definition has so many lines that it has to be scrolled.
type changingWorkload struct {
	t        *testing.T
	api      *API
	agent    threeport.Agent
	instance threeport.Instance
	updates  int
}

const changingName = "changing"

// definitionKeys is the number of keys of its definition; each has a value of its own.
const definitionKeys = 300

func newChangingWorkload(t *testing.T) *changingWorkload {
	t.Helper()
	r := &changingWorkload{t: t, agent: newCluster("c", time.Now(), 0).Agent}
	w := Workload{Name: changingName, Type: threeport.TypeWorkloadInstance}
	w.Status, w.Tree, w.Operations = r.state()
	api, instances := startAPI(t, neverOffline, Fleet{Clusters: []Cluster{{Agent: r.agent, Workloads: []Workload{w}}}})
	r.api, r.instance = api, instances[changingName]
	return r
}

func (r *changingWorkload) url() string { return r.api.URL + pathOf(r.instance) }

// state returns the reports after the updates so far. Each update changes the first lines of the definition and the order of
// the objects.
func (r *changingWorkload) state() (threeport.StatusReport, []threeport.TreeObject, []Operation) {
	n := r.updates
	cause := fmt.Sprintf("restarted %d times: %s end %d", n, strings.Repeat("because it said so ", 30), n)
	w := Workload{}
	main := object("apps", "Deployment", "main")
	w.addListed(main, "Down", "CrashLoopBackOff", cause)
	for i, health := range []string{"Healthy", "Unhealthy", "Reconciling"} {
		w.addListed(object("", "Service", fmt.Sprintf("side-%d", (n+i)%3)), health, "Reason", "")
	}
	data, labels := map[string]any{}, map[string]any{}
	for i := range definitionKeys {
		data[fmt.Sprintf("key-%03d", i)] = map[string]any{"name": fmt.Sprintf("value-%03d", i), "other": "x"}
	}
	data["key-000"] = map[string]any{"name": fmt.Sprintf("value of update %d", n)}
	for i := range n % 7 {
		labels[fmt.Sprintf("label-%d", i)] = "here"
	}
	return status("Down", "CrashLoopBackOff", "Deployment main is down ← "+cause, time.Now(), time.Minute), w.Tree, []Operation{{
		Version: threeport.ID(n + 1), OperationReport: threeport.OperationReport{Object: main, Operation: "MODIFIED", Definition: definition(map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment", "data": data,
			"metadata": map[string]any{"name": "main", "labels": labels, "resourceVersion": fmt.Sprint(n + 1), "generation": n + 1},
		})},
	}}
}

// update changes all reports, and waits until the page shows them.
func (r *changingWorkload) update(tab *Tab) {
	r.t.Helper()
	r.updates++
	r.agent.Time = time.Now()
	s, tree, operations := r.state()
	w := Workload{Status: s, Tree: tree, Operations: operations}
	reports := w.Reports(r.instance, threeport.ID(r.agent.Time.UnixMicro()))
	// The status comes last: the page watches statuses, and reads the rest after one.
	if err := SendReports(r.t.Context(), r.api.URL, threeport.ReportSet{Agent: r.agent, Reports: append(reports[1:], reports[0])}); err != nil {
		r.t.Fatal(err)
	}
	until(r.t, tab, r.shownCondition())
}

func (r *changingWorkload) shownCondition() string {
	return fmt.Sprintf("document.querySelector('.cause-what').innerText.startsWith('restarted %[1]d times') && "+
		"(document.querySelector('#object-title').innerText.startsWith('Service') || document.querySelector('.object-cause').innerText.startsWith('restarted %[1]d times') && "+
		"document.querySelector('.object-body').dataset.version === '%[2]d')", r.updates, r.updates+1)
}

// Updates of the page keep the reader's focus, scroll position and opened parts.
func TestWorkloadPage_Updates_KeepScrollAndFocus(t *testing.T) {
	r := newChangingWorkload(t)
	tab := openTab(t)
	emulate(t, tab, 1280, 500, Media{})
	visit(t, tab, r.url(), r.shownCondition()+" && document.querySelectorAll('.line').length > 20 && "+workloadShown)
	eval[bool](t, tab, `window.frames = async () => { for (let i = 0; i < 2; i++) await new Promise(requestAnimationFrame) };
		window.at = (css) => document.querySelector(css);
		window.topOf = (e) => e.getBoundingClientRect().top;
		window.lineAtTop = () => { const code = at('.folded .code'); return [...code.querySelectorAll('.line')].find((l) => topOf(l) >= topOf(code) - 10).innerText };
		true`)
	for _, c := range []struct{ name, arrange, state string }{
		{name: "a link has the focus", arrange: "at('#crumbs a').focus()"},
		{name: "a time has the focus", arrange: "at('.facts time').focus()"},
		{name: "the time of the last report has the focus", arrange: "[...document.querySelectorAll('.facts time')].at(-1).focus()"},
		{name: "an invisible object has the focus", arrange: "at('.node[tabindex=\"0\"]').focus(); scrollTo(0, document.body.scrollHeight)"},

		{name: "an object that changes its place has the focus", arrange: "[...document.querySelectorAll('.node')].at(-1).click(); scrollTo(0, 100)", state: "document.activeElement.dataset.key"},
		{name: "a tab has the focus", arrange: "at('.node[data-key$=main]').click(); at('#tab-definition').focus()"},
		{
			name: "a text of the cause was opened", arrange: "at('.cause-what button').click(); at('.cause-what button').focus()",
			state: "/end \\d+ Show less$/.test(at('.cause-what').innerText) + at('.cause-what button').getAttribute('aria-expanded')",
		},
		{name: "the text of the cause was closed again", arrange: "at('.cause-what button').click()", state: "at('.cause-what').innerText.endsWith('characters')"},
		{
			name: "a text of the object was opened", arrange: "at('.object-cause button').click()",
			state: "/end \\d+ Show less$/.test(at('.object-cause').innerText)",
		},
		{name: "the name is selected", arrange: "getSelection().selectAllChildren(at('#name'))", state: "getSelection().toString()"},
		{name: "a part of a cause that changes is selected", arrange: "getSelection().setBaseAndExtent(at('.cause-what bdi').firstChild, 20, at('.cause-what bdi').firstChild, 40)", state: "getSelection().toString()"},
		{name: "a line is selected", arrange: "getSelection().selectAllChildren([...document.querySelectorAll('.line')].find((l) => l.innerText.includes('key-002')))", state: "getSelection().toString()"},
		{
			name: "the caret is in the search", arrange: "at('#find').value = 'value-'; at('#find').dispatchEvent(new Event('input')); at('#find').focus(); at('#find').setSelectionRange(2, 4); at('.folded .code').scrollTop = 100",
			state: "[at('#find').value, at('#find').selectionStart, at('#find').selectionEnd, at('.found').innerText, at('mark.current').innerText].join()",
		},
		{
			name: "another match is selected", arrange: "for (let i = 0; i < 60; i++) at('[aria-label=\"Next match\"]').click(); at('#find').focus()",
			state: "[at('.found').innerText, at('mark.current').parentNode.innerText, lineAtTop()].join()",
		},
		{name: "the definition is scrolled", arrange: "at('#find').value = ''; at('#find').dispatchEvent(new Event('input')); at('.folded .code').scrollTop = 5007; at('.folded .code').focus()", state: "[lineAtTop(), topOf(at('.folded .code .line')) % 20].join()"},
		{
			name: "a part is folded", arrange: "at('.folded .code').scrollTop = 0; await frames(); [...document.querySelectorAll('.fold')].find((f) => f.getAttribute('aria-label') === 'key-001').click()",
			state: "[...document.querySelectorAll('.line')].find((l) => l.innerText.includes('key-001')).innerText",
		},
		{
			name: "a fold has the focus", arrange: "[...document.querySelectorAll('.fold')].find((f) => f.getAttribute('aria-label') === 'key-001').focus()",
			state: "document.activeElement.getAttribute('aria-label')",
		},
		{name: "the changes are shown", arrange: "at('#tab-changes').focus(); at('#tab-changes').click()", state: "at('#tab-changes').getAttribute('aria-selected') + at('.diff').checkVisibility()"},
		{name: "the definition is shown again", arrange: "at('#tab-definition').click(); at('.folded .code').scrollTop = 3000", state: "lineAtTop()"},
		{name: "the page is scrolled", arrange: "document.activeElement.blur(); scrollTo(0, 333)"},
	} {
		if c.state == "" {
			c.state = "null"
		}
		// The browser adjusts the scroll position when content above grows, so the visible part keeps its place.
		eval[bool](t, tab, "(async () => {"+c.arrange+"; await frames(); window.focused = document.activeElement; window.scrolled = scrollY; return true })()")
		state := "String(" + c.state + ")"
		before := eval[string](t, tab, state)
		for range 2 {
			r.update(tab)
			if after := eval[string](t, tab, state); after != before {
				t.Errorf("%s: after an update the state is\n%s, want\n%s", c.name, after, before)
			}
			if !eval[bool](t, tab, "focused.isConnected && document.activeElement === focused") {
				t.Errorf("%s: after an update another element has the focus", c.name)
			}
			if by := eval[float64](t, tab, "scrollY - scrolled"); by != 0 {
				t.Errorf("%s: an update scrolled the page by %g pixels, want 0", c.name, by)
			}
			if t.Failed() {
				break
			}
		}
	}
	if err := tab.Do(chromedp.SendKeys(chromedp.CSS("#find"), "no such thing")); err != nil {
		t.Fatal(err)
	}
	until(t, tab, "document.querySelector('.found').innerText === 'No match'")
	r.update(tab)
	until(t, tab, "document.querySelector('.found').innerText === 'No match'")
}
