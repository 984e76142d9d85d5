package browser

import (
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// A listed object that was deleted is one node: the missing resource, with the time of the deletion and the last definition.
func TestWorkloadPage_DeletedListedObject_IsShownOnce(t *testing.T) {
	f := newListedFixture(t, time.Now())
	instance, settings := f.instance, f.settings

	tab := openTab(t)
	const (
		nodes = "[...document.querySelectorAll('.node[aria-label^=\"ConfigMap settings\"]')]"
		panel = "document.querySelector('.object-health').innerText"
		lines = "[...document.querySelectorAll('.object .line')].map((l) => l.innerText).join('\\n')"
	)
	visit(t, tab, f.url+pathOf(instance)+"?object="+settings.UID, workloadShown+" && "+nodes+".length === 1")

	absent := settings
	absent.UID = ""
	missing := threeport.TreeObject{Object: absent, Listed: true, State: "Absent", Health: "Down", Reason: "Absent", Cause: "ConfigMap settings does not exist"}
	f.send(f.tree(f.web, missing)) // the deletion itself may be reported later
	until(t, tab, nodes+".map((n) => n.ariaLabel).join() === 'ConfigMap settings, deleted, listed, Down, ConfigMap settings does not exist'")
	until(t, tab, "/^Down\\s+for .*\\s+deleted \\d\\d:\\d\\d:\\d\\d$/.test("+panel+")")
	deletion := Operation{Version: 2, OperationReport: threeport.OperationReport{Object: settings, Operation: "DELETED"}}
	f.send(deletion.report(instance))
	visit(t, tab, f.url+pathOf(instance)+"?object="+settings.UID, workloadShown)
	until(t, tab, "document.querySelector('.version').innerText.startsWith('Deletion reported ') && "+lines+".includes('name: settings')")
	until(t, tab, nodes+".length === 1 && /deleted \\d\\d:\\d\\d:\\d\\d$/.test("+panel+")")
	expectAccessible(t, tab)

	again := settings
	again.UID = "uid-of-the-second"
	f.send(f.tree(f.web, threeport.TreeObject{Object: again, Listed: true, State: "Present", Health: "Healthy"}))
	until(t, tab, nodes+".map((n) => n.ariaLabel).join('; ') === 'ConfigMap settings, listed, Healthy; ConfigMap settings, deleted, listed'")
	f.send(f.tree(f.web, missing))
	until(t, tab, nodes+".map((n) => n.ariaLabel).join('; ') === 'ConfigMap settings, deleted, listed, Down, ConfigMap settings does not exist; ConfigMap settings, deleted, listed'")
}
