package browser

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// tabShown is the condition that a tab is shown of an object.
func tabShown(tab, title string) string {
	return fmt.Sprintf("document.querySelector('#tab-%s').getAttribute('aria-selected') === 'true' && document.querySelector('#panel-%[1]s').innerText !== '' && document.querySelector('#object-title').innerText === %s", tab, quote(title))
}

// The address has the selected object and tab, for reloads and links.
func TestObjectPanel_Tab_InAddress(t *testing.T) {
	api, instances := startAPI(t, neverOffline, Sample(time.Now()))
	tab := openTab(t)
	visit(t, tab, api.URL+pathOf(instances[Checkout])+"?tab=toString&other=kept", tabShown("definition", "Deployment checkout"))
	click(t, tab, "#tab-changes")
	until(t, tab, tabShown("changes", "Deployment checkout")+" && location.search === '?tab=changes&other=kept&object=uid-of-Deployment-checkout'")
	if err := tab.Do(chromedp.Reload()); err != nil {
		t.Fatal(err)
	}
	until(t, tab, tabShown("changes", "Deployment checkout")+" && document.querySelector('ins')")
	eval[bool](t, tab, "document.querySelector('#tab-changes').focus() ?? true")
	press(t, tab, kb.ArrowLeft)
	until(t, tab, tabShown("definition", "Deployment checkout")+" && location.search.includes('tab=definition') && document.activeElement.id === 'tab-definition'")
	click(t, tab, ".node[data-key='uid-of-ConfigMap-checkout-config']")
	until(t, tab, "document.querySelector('#object-title').innerText === 'ConfigMap checkout-config' && location.search === '?tab=definition&other=kept&object=uid-of-ConfigMap-checkout-config'")
}

// On a phone the definition is far below the objects.
func TestObjectPanel_OnPhone_ScrollsToDefinition(t *testing.T) {
	api, instances := startAPI(t, neverOffline, Sample(time.Now()))
	tab := openTab(t)
	emulate(t, tab, 390, 844, Media{})
	visit(t, tab, api.URL+pathOf(instances[Checkout]), workloadShown+" && document.querySelector('.line')")
	const visible = "((css) => { const { top, bottom } = document.querySelector(css).getBoundingClientRect(); return top >= document.querySelector('.bar').offsetHeight && bottom <= innerHeight })"
	if !eval[bool](t, tab, "!"+visible+"('#object-title')") {
		t.Fatal("the definition is visible before the click, want it below the window")
	}
	for _, object := range []string{"Service checkout", "Deployment checkout"} { // the page shows the second one first
		selector := fmt.Sprintf("[aria-label^=%q]", object)
		click(t, tab, selector)
		until(t, tab, "document.querySelector('#object-title').innerText === "+quote(object)+" && document.querySelector('#object-title').getBoundingClientRect().top < innerHeight / 4")
		until(t, tab, "document.querySelector('#announce').innerText === "+quote(object+" is shown"))
		click(t, tab, ".to-objects")
		until(t, tab, "document.activeElement.matches("+quote(selector)+") && "+visible+"("+quote(selector)+")")
	}
	emulate(t, tab, 1280, 900, Media{})
	until(t, tab, "!document.querySelector('.to-objects').checkVisibility()")
	eval[bool](t, tab, "scrollTo(0, 100); document.querySelector('[aria-label^=\"Service checkout\"]').click(); true")
	until(t, tab, "document.querySelector('#object-title').innerText === 'Service checkout' && scrollY === 100") // the definition is beside the objects
}

// The definition has thousands of values. Half of them differ, and so do fields that every version changes, which are not shown.
// The status changes once more.
func TestDefinition_LargeDiff_IsCorrect(t *testing.T) {
	var versions []map[string]any
	for v := range 2 {
		data := map[string]any{}
		for i := range 4100 {
			data[fmt.Sprintf("key-%04d", i)] = fmt.Sprintf("value-%d", i+v*(i%2)*10_000)
		}
		for state := range 1 + v {
			versions = append(versions, map[string]any{"kind": "ConfigMap", "data": data, "metadata": map[string]any{
				"name": "one", "resourceVersion": fmt.Sprint(v + state), "generation": v,
				"annotations": map[string]any{"deployment.kubernetes.io/revision": fmt.Sprint(v + state)},
			}, "status": map[string]any{"observedGeneration": v, "state": state}})
		}
	}
	same := map[string]any{"kind": "ConfigMap", "metadata": map[string]any{"name": "one", "generation": 7}}
	later := map[string]any{"kind": "ConfigMap", "metadata": map[string]any{"name": "one", "generation": 8}}
	other := clusterOfOneObject(same, later)
	other.Workloads[0].Name = "other"
	cluster := clusterOfOneObject(versions...)
	other.Agent.ClusterUID += "-other"
	api, instances := startAPI(t, neverOffline, Fleet{Clusters: []Cluster{cluster, other}})
	tab := openTab(t)
	visit(t, tab, api.URL+pathOf(instances["one"])+"?tab=changes", "document.querySelector('.diff')")
	until(t, tab, "document.querySelector('.diff .code-note').innerText.replace(/\\s+/g, ' ') === '+ 2,050 lines added − 2,050 lines removed "+
		"Not shown: the status, and metadata of controllers'")
	until(t, tab, "!/status|metadata/.test(document.querySelector('.diff-lines').innerText)")
	until(t, tab, "/^Spec change reported [\\d:]+ · Definition reported [\\d:]+$/.test(document.querySelector('.version').innerText)")

	visit(t, tab, api.URL+pathOf(instances["other"])+"?tab=changes", "document.querySelector('#panel-changes').innerText.startsWith('The spec has not changed since the first report, ')")
	until(t, tab, "/^Definition reported [\\d:]+$/.test(document.querySelector('.version').innerText)")

	// A diff of random lists turns one into the other, and a diff of short lists is minimal.
	wrong := eval[string](t, tab, `(async () => {
		const { diff } = await import(document.querySelector('link[href$="/diff.js"]').href);
		let seed = 1;
		const random = (n) => { seed = (seed * 16807) % 2147483647; return seed % n; };
		const list = (most, words) => Array.from({ length: random(most) }, () => 'line ' + random(words));
		const common = (a, b) => {
			let row = new Array(b.length + 1).fill(0);
			for (const x of a) row = row.reduce((next, up, j) => { next.push(j === 0 ? 0 : x === b[j - 1] ? row[j - 1] + 1 : Math.max(up, next[j - 1])); return next; }, []);
			return row.at(-1);
		};
		for (let n = 0; n < 3000; n++) {
			const [most, words] = n < 2995 ? [14, n % 6 + 1] : [20000, 10 ** (n - 2994)];
			const [a, b] = [list(most, words), list(most, words)];
			const changes = diff(a, b);
			const [from, to, both] = ['+', '-', ''].map((sign) => changes.filter((c) => sign ? c.sign !== sign : c.sign === ' ').map((c) => c.line));
			if (from.join() !== a.join() || to.join() !== b.join() || (most < 100 && both.length !== common(a, b))) return JSON.stringify([n, a, b, changes]).slice(0, 1000);
		}
		return '';
	})()`)
	if wrong != "" {
		t.Errorf("the diff is wrong for the lists and changes %s", wrong)
	}
}

// clusterOfOneObject returns a cluster with a workload "one" of one object, with the versions of its definition in order.
func clusterOfOneObject(definitions ...map[string]any) Cluster {
	c := newCluster("c", time.Now(), 0)
	w := Workload{Name: "one", Type: threeport.TypeWorkloadInstance, Status: status("Healthy", "", "", time.Now(), time.Minute)}
	ref := object("apps", "Deployment", "one")
	w.addListed(ref, "Healthy", "", "")
	for i, d := range definitions {
		w.Operations = append(w.Operations, Operation{Version: threeport.ID(i + 1), OperationReport: threeport.OperationReport{
			Object: ref, Operation: "MODIFIED", Definition: definition(d),
		}})
	}
	c.Workloads = []Workload{w}
	return c
}
