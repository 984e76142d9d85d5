package browser

import (
	"fmt"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// wholeJS defines whole(element): all of its text is in the window, and no element clips it.
const wholeJS = `window.whole = (element) => {
	const range = document.createRange();
	range.selectNodeContents(element);
	const inside = (r, b) => r.left >= b.left - 1 && r.right <= b.right + 1 && r.top >= b.top - 1 && r.bottom <= b.bottom + 1;
	return range.getClientRects().length > 0 && [...range.getClientRects()].every((r) => {
		if (!inside(r, { left: 0, top: 0, right: innerWidth, bottom: innerHeight })) return false;
		for (let up = element; up !== document.body; up = up.parentElement) {
			const { overflowX, display } = getComputedStyle(up);
			if (overflowX !== 'visible' && display !== 'inline' && !inside(r, up.getBoundingClientRect())) return false;
		}
		return true;
	});
}; true`

// widths are those of windows.
var widths = map[string]int64{"desktop": 1280, "narrow desktop": 1001, "tablet": 820, "phone": 390}

// A cause is a chain of objects. The object at fault is read first, so nothing may cut it.
func TestCause_ObjectAtFault_IsFirstAndWhole(t *testing.T) {
	now := time.Now()
	const (
		fault  = "3 pods ImagePullBackOff: image registry.example.com/shop/storefront:2.41.0-rc1 cannot be pulled: it does not exist, since 2026-01-31T11:42Z"
		old    = "container app: ImagePullBackOff: image registry.example.com/shop/storefront:2.41.0-rc1 does not exist: 3 of 3 Pods"
		owner  = "ReplicaSet storefront-frontend-7d9c8b6f5"
		listed = "Deployment storefront-frontend has 0 of 3 replicas ready; 2 other resources are not Healthy"
	)
	api, instances := startAPI(t, neverOffline, Fleet{Clusters: []Cluster{newClusterWith("frankfurt-prod-1",
		withStatus("web", status("Down", "ImagePullBackOff", fault+" → "+owner+" → "+listed, now, time.Minute)),
		withStatus("earlier", status("Down", "ImagePullBackOff", listed+" ← "+owner+" ← "+old, now, time.Hour)),
	)}})
	for name, width := range widths {
		t.Run(name, func(t *testing.T) {
			tab := openTab(t)
			emulate(t, tab, width, 844, Media{})
			visit(t, tab, api.URL+"/", listShown)
			eval[bool](t, tab, "localStorage.setItem('times', 'utc') ?? true") // the time in the cause stays as reported
			for workload, root := range map[string]string{"web": fault, "earlier": old} {
				row := fmt.Sprintf("[...document.querySelectorAll('.grid-list .row')].find((r) => r.querySelector('.open').innerText === %s)", quote(workload))
				visit(t, tab, api.URL+"/", listShown+" && "+row)
				eval[bool](t, tab, wholeJS)
				expectAll(t, tab, map[string]string{
					"the list begins with the object at fault":  row + ".querySelector('.cell-cause').textContent.startsWith(" + quote(root) + ")",
					"the list shows all of the object at fault": "whole(" + row + ".querySelector('.fault'))",

					"the list has the way to the listed object":    row + ".querySelector('.effect').textContent === " + quote("→ "+owner+" → "+listed),
					"the row does not overflow":                    row + ".scrollHeight <= " + row + ".clientHeight && " + row + ".scrollWidth <= " + row + ".clientWidth",
					"the tooltip has the whole chain in its order": row + ".querySelector('.open').title === " + quote(workload) + " + '\\n' + " + quote(root+" → "+owner+" → "+listed),
				})
				visit(t, tab, api.URL+pathOf(instances[workload]), workloadShown)
				eval[bool](t, tab, wholeJS)
				expectAll(t, tab, map[string]string{
					"the page begins with the object at fault":  "document.querySelector('.cause-what').innerText === " + quote(root),
					"the page shows all of the object at fault": "whole(document.querySelector('.cause-what'))",
					"the page ends with the listed object":      "document.querySelector('.cause-why').innerText === " + quote(owner) + " + '\\n' + " + quote(listed),
					"the page does not scroll sideways":         "document.documentElement.scrollWidth <= innerWidth",
				})
			}
		})
	}
}

// The list shows the Pods and the namespaces of a workload, unless its agent reports no tree.
func TestWorkloadList_PodsAndNamespaces_AreShown(t *testing.T) {
	now := time.Now()
	in := func(namespace string, ref threeport.ObjectRef) threeport.ObjectRef {
		ref.Namespace = namespace
		return ref
	}
	web := withStatus("web", status("Unhealthy", "ImagePullBackOff", "1 pod ImagePullBackOff → Deployment web has 2 of 3 replicas ready", now, time.Minute))
	deployment := object("apps", "Deployment", "web")
	web.addListed(deployment, "Unhealthy", "ImagePullBackOff", "")
	web.addListed(in("monitoring", object("", "ConfigMap", "dashboards")), "Healthy", "", "")
	web.addListed(in("payments", object("", "ConfigMap", "routes")), "Healthy", "", "")
	for i, health := range []string{"Healthy", "Healthy", "Down"} {
		web.addDerived(object("", "Pod", fmt.Sprint("web-", i)), deployment, health, "", "")
	}
	v0 := withStatus("v0", status("Healthy", "", "", now, time.Minute))
	api, _ := startAPI(t, neverOffline, Fleet{Clusters: []Cluster{newClusterWith("north", web, v0)}})
	for name, width := range widths {
		t.Run(name, func(t *testing.T) {
			tab := openTab(t)
			emulate(t, tab, width, 844, Media{})
			visit(t, tab, api.URL+"/", rowContains("web", "Unhealthy")+" && "+rowContains("v0", "Healthy"))
			eval[bool](t, tab, wholeJS)
			eval[bool](t, tab, "window.rowOf = (name) => [...document.querySelectorAll('.grid-list .row')].find((r) => r.querySelector('.open').innerText === name); true")
			expectAll(t, tab, map[string]string{
				"the Healthy Pods and all Pods":     "/^2\\/3( Pods)?$/.test(rowOf('web').querySelector('.cell-pods').innerText) && whole(rowOf('web').querySelector('.cell-pods > span'))",
				"the tooltip counts listed objects": "rowOf('web').querySelector('.cell-pods > span').title === '2 of 3 Pods Healthy\\n2 of 3 listed objects Healthy'",

				"the first namespace":              "rowOf('web').querySelector('.namespaces bdi').innerText === 'monitoring' && whole(rowOf('web').querySelector('.namespaces bdi'))",
				"the number of other namespaces":   "rowOf('web').querySelector('.others').innerText === '+2' && whole(rowOf('web').querySelector('.others'))",
				"the tooltip names the cluster":    "rowOf('web').querySelector('.cell-cluster bdi').title === 'north\\nuid-of-north'",
				"every status has a meaning":       "document.querySelectorAll('.chip[data-status]').length === 6 && [...document.querySelectorAll('.chip[data-status]')].every((e) => e.title)",
				"the tooltip names all namespaces": "rowOf('web').querySelector('.namespaces').title === 'monitoring, payments, shop'",

				"without a tree there are none":    "!rowOf('v0').querySelector('.namespaces').checkVisibility() && rowOf('v0').querySelector('.cell-pods').innerText === ''",
				"the pointer reaches the tooltips": "['.cell-pods > span', '.namespaces bdi'].every((css) => { const r = rowOf('web').querySelector(css).getBoundingClientRect(); return document.elementFromPoint(r.x + 4, r.y + 4).closest('[title]') === rowOf('web').querySelector(css).closest('[title]') })",
			})
			visit(t, tab, api.URL+"/?text=payments", rowCount+" === 1 && "+rowContains("web", "monitoring"))
			expectAccessible(t, tab)
		})
	}
}

// expectAll expects conditions to be true now.
func expectAll(t *testing.T, tab *Tab, conditions map[string]string) {
	t.Helper()
	for name, condition := range conditions {
		if !eval[bool](t, tab, "Boolean("+condition+")") {
			t.Errorf("this is not true on the page: %s", name)
		}
	}
}
