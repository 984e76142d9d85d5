package browser

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// The server takes any owners from an agent, so also a chain of thousands. Each object is in the tree, not deeper than at level 51.
func TestWorkloadPage_LongChainOfOwners_IsDrawn(t *testing.T) {
	const n = 10_000
	w := Workload{Name: "one", Type: threeport.TypeWorkloadInstance, Status: status("Healthy", "", "", time.Now(), time.Minute)}
	for i := range n {
		ref := threeport.ObjectRef{Version: "v1", Kind: "Pod", Namespace: "shop", Name: fmt.Sprint("p", i), UID: fmt.Sprint("u", i)}
		w.addListed(ref, "Healthy", "", "")
		if o := &w.Tree[i]; i > 0 {
			o.Listed, o.Owner = false, fmt.Sprint("u", i-1)
		}
	}
	c := newCluster("c", time.Now(), 0)
	c.Workloads = []Workload{w}
	api, instances := startAPI(t, neverOffline, Fleet{Clusters: []Cluster{c}})
	tab := openTab(t)
	visit(t, tab, api.URL+pathOf(instances["one"]), "document.querySelectorAll('.node').length > 50")
	until(t, tab, "document.querySelector('.node').ariaLabel.includes('9,999 objects below')")
	until(t, tab, "Math.max(...[...document.querySelectorAll('.node')].map((node) => node.ariaLevel)) === 51")
	until(t, tab, "[...document.querySelectorAll('.node')].at(-1).innerText.includes('9,950 Healthy Pods')")
}

// A definition has as many levels as its author likes.
func TestDefinition_ManyLevels_AreCut(t *testing.T) {
	const levels = 3000
	deep := json.RawMessage(strings.Repeat(`{"a":`, levels) + "1" + strings.Repeat("}", levels))
	lists := json.RawMessage(strings.Repeat(`[`, levels) + strings.Repeat(`]`, levels))
	both := json.RawMessage(strings.Repeat(`[{"a":`, levels/2) + "1" + strings.Repeat(`}]`, levels/2))
	api, instances := startAPI(t, neverOffline, Fleet{Clusters: []Cluster{clusterOfOneObject(
		map[string]any{"kind": "ConfigMap", "end": 0}, map[string]any{"kind": "ConfigMap", "deep": deep, "lists": lists, "both": both, "end": 1},
	)}})
	tab := openTab(t)
	visit(t, tab, api.URL+pathOf(instances["one"]), "document.querySelector('.folded')")
	eval[bool](t, tab, `navigator.clipboard.writeText = async (text) => { window.copied = text; }; true`)
	click(t, tab, "[aria-label='Copy the YAML']")
	until(t, tab, "window.copied?.match(/ null # not shown: deeper than 100 levels\\n/g).length === 3 && window.copied.includes('\\nend: 1\\n')")
	expectYAML(t, eval[string](t, tab, "window.copied"), nil)
	click(t, tab, "#tab-changes")
	until(t, tab, "document.querySelector('ins')")
}
