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

// Nodes of the tree show what happened to an object as a whole, beside its kind. The tooltip has the whole name.
func TestTree_StateOfNode_IsNotCut(t *testing.T) {
	now := time.Now()
	w := withStatus("web", status("Unhealthy", "Unschedulable", "Deployment web has 1 of 2 replicas ready", now, 10*time.Minute))
	absent := func(kind, name, state string) {
		ref := object("", kind, name)
		ref.UID = ""
		w.Tree = append(w.Tree, threeport.TreeObject{Object: ref, Listed: true, State: state, Health: "Unknown", Reason: state})
	}
	idle, replicas := object("apps", "Deployment", "web-frontend-with-a-long-name"), object("apps", "ReplicaSet", "web-frontend-with-a-long-name-5f6d7c4b9")
	w.addListed(idle, "Healthy", "ScaledToZero", "")
	w.addDerived(replicas, idle, "Healthy", "ScaledToZero", "")
	w.addDerived(object("", "Pod", "web-frontend-with-a-long-name-5f6d7c4b9-x2x9k"), replicas, "Healthy", "", "")
	w.addListed(object("", "ConfigMap", "settings"), "Healthy", "", "")
	claims := object("apps", "StatefulSet", "db")
	w.addListed(claims, "Healthy", "", "")
	for i := range 12 {
		w.addDerived(object("", "PersistentVolumeClaim", fmt.Sprint("data-db-", i)), claims, "Healthy", "", "")
	}
	absent("Secret", "missing", "Absent")
	absent("Secret", "forbidden", "Forbidden")
	absent("Certificate", "web", "KindNotInstalled")
	var gone []threeport.TreeObject
	for i := range 3 {
		w.addDerived(object("", "Pod", fmt.Sprint("db-", i)), claims, "Healthy", "", "")
		gone = append(gone, w.Tree[len(w.Tree)-1])
	}
	for _, test := range []struct {
		agent   string
		timeout time.Duration
		shown   string
	}{
		{"reports", neverOffline, "document.querySelector('.tree').innerText.includes('3 deleted Pods')"},
		{"is offline", 5 * time.Second, "document.querySelector('.status-word').innerText.startsWith('Unknown')"},
	} {
		t.Run("the agent "+test.agent, func(t *testing.T) {
			cluster := newClusterWith("north", w)
			api, instances := startAPI(t, test.timeout, Fleet{Clusters: []Cluster{cluster}})
			rest := w.Tree[:len(w.Tree)-len(gone)]
			report := threeport.Report{
				Instance: instances["web"], Version: threeport.ID(time.Now().UnixMicro()), Tree: &threeport.TreeReport{Objects: rest},
			}
			if err := SendReports(t.Context(), api.URL, threeport.ReportSet{Agent: cluster.Agent, Reports: []threeport.Report{report}}); err != nil {
				t.Fatal(err)
			}
			tab := openTab(t)
			for name, width := range widths {
				emulate(t, tab, width, 3000, Media{})
				visit(t, tab, api.URL+pathOf(instances["web"]), workloadShown+" && document.querySelectorAll('.node').length > 8 && "+test.shown)
				eval[bool](t, tab, wholeJS)
				eval[bool](t, tab, "(document.querySelector('.tree').style.maxHeight = 'none') !== ''") // a long tree scrolls
				const cut = `[...document.querySelectorAll('.node em, .node.group .name, .node .kind bdi, .pin')].filter((e) => {
					const text = e.getBoundingClientRect(), node = e.closest('.node').getBoundingClientRect();
					return !(whole(e) && text.top >= node.top && text.bottom <= node.bottom && text.right <= node.right);
				}).map((e) => e.innerText)`
				if texts := eval[[]string](t, tab, cut); len(texts) > 0 {
					t.Errorf("%s: the tree cuts %q", name, texts)
				}
				if n := eval[int](t, tab, "[...document.querySelectorAll('.node em')].length"); n < 4 {
					t.Errorf("%s: %d nodes have a state, want at least 4", name, n)
				}
				expectAll(t, tab, map[string]string{
					name + ": the tooltip of a node has its name": "[...document.querySelectorAll('.node')].every((n) => n.title)",
					name + ": no node covers another one": `(() => {
						const boxes = [...document.querySelectorAll('.node')].map((n) => n.getBoundingClientRect());
						return boxes.every((a, i) => boxes.every((b, j) => i === j || a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top));
					})()`,
				})
			}
			expectAccessible(t, tab)
		})
	}
}
