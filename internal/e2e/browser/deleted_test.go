package browser

import (
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// A listed object that was deleted is one node: the missing resource, with the time of the deletion and the last definition.
func TestWorkloadPage_DeletedListedObject_IsShownOnce(t *testing.T) {
	now := time.Now()
	w := withStatus("web", status("Healthy", "", "", now, 50*time.Minute))
	web, settings := object("apps", "Deployment", "web"), object("", "ConfigMap", "settings")
	created := []Operation{w.listedObject(web, now.Add(-40*time.Minute)), w.listedObject(settings, now.Add(-20*time.Minute))}
	cluster := newClusterWith("north", w)
	api, instances := startAPI(t, neverOffline, Fleet{Clusters: []Cluster{cluster}})
	instance := instances["web"]
	send := func(reports ...threeport.Report) {
		t.Helper()
		if err := SendReports(t.Context(), api.URL, threeport.ReportSet{Agent: cluster.Agent, Reports: reports}); err != nil {
			t.Fatal(err)
		}
	}
	tree := func(objects ...threeport.TreeObject) threeport.Report {
		return threeport.Report{Instance: instance, Version: threeport.ID(time.Now().UnixMicro()), Tree: &threeport.TreeReport{Objects: objects}}
	}
	send(created[0].report(instance), created[1].report(instance))

	tab := openTab(t)
	const (
		nodes = "[...document.querySelectorAll('.node[aria-label^=\"ConfigMap settings\"]')]"
		panel = "document.querySelector('.object-health').innerText"
		lines = "[...document.querySelectorAll('.object .line')].map((l) => l.innerText).join('\\n')"
	)
	visit(t, tab, api.URL+pathOf(instance)+"?object="+settings.UID, workloadShown+" && "+nodes+".length === 1")

	absent := settings
	absent.UID = ""
	missing := threeport.TreeObject{Object: absent, Listed: true, State: "Absent", Health: "Down", Reason: "Absent", Cause: "ConfigMap settings does not exist"}
	send(tree(w.Tree[0], missing)) // the deletion itself may be reported later
	until(t, tab, nodes+".map((n) => n.ariaLabel).join() === 'ConfigMap settings, deleted, listed, Down, ConfigMap settings does not exist'")
	until(t, tab, "/^Down\\s+for .*\\s+deleted \\d\\d:\\d\\d:\\d\\d$/.test("+panel+")")
	deletion := Operation{Version: 2, OperationReport: threeport.OperationReport{Object: settings, Operation: "DELETED"}}
	send(deletion.report(instance))
	visit(t, tab, api.URL+pathOf(instance)+"?object="+settings.UID, workloadShown)
	until(t, tab, "document.querySelector('.version').innerText.startsWith('Deleted ') && "+lines+".includes('name: settings')")
	until(t, tab, nodes+".length === 1 && /deleted \\d\\d:\\d\\d:\\d\\d$/.test("+panel+")")
	expectAccessible(t, tab)

	again := settings
	again.UID = "uid-of-the-second"
	send(tree(w.Tree[0], threeport.TreeObject{Object: again, Listed: true, State: "Present", Health: "Healthy"}))
	until(t, tab, nodes+".map((n) => n.ariaLabel).join('; ') === 'ConfigMap settings, listed, Healthy; ConfigMap settings, deleted, listed'")
	send(tree(w.Tree[0], missing))
	until(t, tab, nodes+".map((n) => n.ariaLabel).join('; ') === 'ConfigMap settings, deleted, listed, Down, ConfigMap settings does not exist; ConfigMap settings, deleted, listed'")
}
