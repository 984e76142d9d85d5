package browser

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// commandTexts is a script that returns the commands of the selected object.
const commandTexts = "[...document.querySelectorAll('.commands code')].map((code) => code.textContent)"

// expectCommands waits for the commands of the selected object.
func expectCommands(t *testing.T, tab *Tab, want ...string) {
	t.Helper()
	encoded, err := json.Marshal(append([]string{}, want...)) // an empty list is not null
	if err != nil {
		t.Fatal(err)
	}
	if err := tab.Until("JSON.stringify(" + commandTexts + ") === JSON.stringify(" + string(encoded) + ")"); err != nil {
		t.Errorf("the commands are %q, want %q", eval[[]string](t, tab, commandTexts), want)
	}
}

// A selected object shows its Events and those of the objects below it, until the user wants all.
func TestWorkloadPage_SelectedPod_ShowsFactsAndFiltersEvents(t *testing.T) {
	api, instances := startAPI(t, neverOffline, Sample(time.Now()))
	tab := openTab(t)
	visit(t, tab, api.URL+pathOf(instances[Checkout])+"?last=all", eventsShown)
	const name = "checkout-7d9c8b6f5-4kq2n"
	const (
		scope  = "document.querySelector('.event-scope')"
		onlyOf = "[...document.querySelectorAll('.event .who')].every((who) => who.innerText === 'Pod " + name + "')"
	)
	if !eval[bool](t, tab, scope+".hidden && !document.querySelector('.pod-facts')") {
		t.Fatal("the page filters the Events before the user selects an object")
	}

	click(t, tab, ".node[data-key='uid-of-Pod-"+name+"']")
	until(t, tab, "location.search === '?last=all&object=uid-of-Pod-"+name+"'")
	until(t, tab, scope+".innerText.replace(/\\s+/g, ' ') === 'Only Events of Pod "+name+" Show all Events' && document.querySelectorAll('.event').length === 9 && "+onlyOf)
	until(t, tab, "document.querySelectorAll('.lane-label:not(.band-label)').length === 1 && document.querySelector('.band [data-status=Down]')")
	until(t, tab, "document.querySelector('.pod-node').innerText === 'On node node-1'")
	rows := eval[[]string](t, tab, "[...document.querySelectorAll('.containers tbody tr')].map((row) => row.innerText.replace(/\\s+/g, ' '))")
	const never = "none" // the container never terminated
	want := []string{
		"migrate init registry.example.com/shop/migrate:4.18.0 Terminated Completed 0 exit 0 Completed, 26 min ago",
		"app registry.example.com/shop/checkout:4.18.0 Waiting CrashLoopBackOff 9 exit 1 Error, 2 min ago",
		"metrics registry.example.com/shop/metrics:1.2.0 Running, not ready 0 " + never,
	}
	if !slices.Equal(rows, want) {
		t.Errorf("the containers are %q, want %q", rows, want)
	}
	expectCommands(t, tab, "kubectl logs -n shop "+name+" -c app --previous", "kubectl logs -n shop "+name+" -c metrics", "kubectl describe pod -n shop "+name)
	expectAccessible(t, tab)

	if err := tab.Do(chromedp.Reload()); err != nil {
		t.Fatal(err)
	}
	until(t, tab, "document.querySelector('.pod-facts') && !"+scope+".hidden && document.querySelectorAll('.event').length === 9 && "+onlyOf)
	click(t, tab, ".event-scope button")
	until(t, tab, "location.search === '?last=all&object=uid-of-Pod-"+name+"&events=all' && "+scope+".hidden && document.querySelectorAll('.event').length >= 50")
	until(t, tab, "document.querySelector('.pod-facts') && document.activeElement.matches('.plot-area')")

	click(t, tab, ".node[data-key='uid-of-Deployment-checkout']")
	until(t, tab, scope+".innerText.startsWith('Only Events of Deployment checkout and the objects below it') && !document.querySelector('.pod-facts')")
	kinds := eval[[]string](t, tab, "[...new Set([...document.querySelectorAll('.lane-label .kind')].map((kind) => kind.innerText))].sort()")
	if want := []string{"Deployment", "Pod", "ReplicaSet"}; !slices.Equal(kinds, want) {
		t.Errorf("the timeline has Events of %q, want %q", kinds, want)
	}
	expectCommands(t, tab, "kubectl rollout history -n shop deployment/checkout", "kubectl rollout undo -n shop deployment/checkout")
	click(t, tab, ".node[data-key='uid-of-Service-checkout']")
	expectCommands(t, tab)
	until(t, tab, "document.querySelectorAll('.event').length === 0 && "+scope+".innerText.startsWith('Only Events of Service checkout')")
}

// The browser may refuse to copy.
func TestWorkloadPage_Command_IsCopiedOrSelected(t *testing.T) {
	api, instances := startAPI(t, neverOffline, Sample(time.Now()))
	tab := openTab(t)
	visit(t, tab, api.URL+pathOf(instances[Checkout])+"?object=uid-of-Pod-checkout-cache-3", "document.querySelectorAll('.commands li').length === 2")
	const command = "kubectl logs -n shop checkout-cache-3 -c redis"
	eval[bool](t, tab, `navigator.clipboard.writeText = async (text) => { window.copied = text; }; true`)
	click(t, tab, "[aria-label='Copy: Logs of redis']")
	until(t, tab, "window.copied === "+quote(command)+" && document.querySelector('#announce').innerText === 'Copied'")
	eval[bool](t, tab, `navigator.clipboard.writeText = async () => { throw new Error('no'); }; document.execCommand = () => false; true`)
	click(t, tab, "[aria-label='Copy: Logs of redis']")
	until(t, tab, "String(getSelection()) === "+quote(command)+" && document.querySelector('#announce').innerText.endsWith('The command is selected.')")
}

// The server takes any names, from an agent of any kind.
func TestWorkloadPage_Commands_AreSafe(t *testing.T) {
	const spaced, option = "it's; rm -rf ~", "--all"
	w := Workload{Name: "one", Type: threeport.TypeWorkloadInstance, Status: status("Down", "", "", time.Now(), time.Minute)}
	pod := func(uid, name, container string) {
		ref := threeport.ObjectRef{Version: "v1", Kind: "Pod", Namespace: "shop", Name: name, UID: uid}
		w.addListed(ref, "Down", "", "")
		w.Tree[len(w.Tree)-1].Pod = &threeport.PodFacts{Containers: []threeport.ContainerFacts{{Name: container, State: "Running", Restarts: 1}}}
	}
	pod("spaced", spaced, "$(reboot)\u202e")
	pod("option", option, "app")
	pod("option-container", "web", option)
	const otherServer = "--server=http://evil.example.com"
	w.addDerived(threeport.ObjectRef{Version: "v1", Kind: otherServer, Namespace: "shop", Name: "web", UID: "option-kind"}, threeport.ObjectRef{}, "Down", "", "")
	c := newCluster("c", time.Now(), 0)
	c.Workloads = []Workload{w}
	api, instances := startAPI(t, neverOffline, Fleet{Clusters: []Cluster{c}})
	tab := openTab(t)
	show := func(uid string) {
		t.Helper()
		visit(t, tab, api.URL+pathOf(instances["one"])+"?object="+uid, "document.querySelector('.pod-facts')")
	}
	show("spaced")
	quoted := `'` + strings.ReplaceAll(spaced, `'`, `'\''`) + `'`
	logs := `kubectl logs -n shop ` + quoted + ` -c '$(reboot)[U+202E]'`
	expectCommands(t, tab, logs+" --previous", logs, "kubectl describe pod -n shop "+quoted)
	show("option")
	expectCommands(t, tab)
	show("option-container")
	expectCommands(t, tab, "kubectl describe pod -n shop web")
	visit(t, tab, api.URL+pathOf(instances["one"])+"?object=option-kind", "document.querySelector('#object-title').innerText === "+quote(otherServer+" web"))
	expectCommands(t, tab)
}

// A rollout can be undone if it fails and there is an earlier revision.
func TestWorkloadPage_RolloutUndo_OnlyOfFailedRollout(t *testing.T) {
	deployment := func(revision, reason string, limit int) map[string]any {
		return map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{"deployment.kubernetes.io/revision": revision}},
			"spec":     map[string]any{"revisionHistoryLimit": limit},
			"status":   map[string]any{"conditions": []any{map[string]any{"type": "Progressing", "reason": reason}}},
		}
	}
	statefulSet := func(current, update string) map[string]any {
		return map[string]any{"status": map[string]any{"currentRevision": current, "updateRevision": update}}
	}
	daemonSet := func(generation string, updated int) map[string]any {
		return map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{"deprecated.daemonset.template.generation": generation}},
			"status":   map[string]any{"updatedNumberScheduled": updated, "desiredNumberScheduled": 3},
		}
	}
	cases := []struct {
		reason, kind, health string
		definition           map[string]any
		applies              bool
	}{
		{"missed its deadline", "Deployment", "Down", deployment("2", "ProgressDeadlineExceeded", 10), true},
		{"fails before its deadline", "Deployment", "Unhealthy", deployment("10", "ReplicaSetUpdated", 10), true},
		{"is in progress", "Deployment", "Reconciling", deployment("2", "ReplicaSetUpdated", 10), false},
		{"is the first", "Deployment", "Down", deployment("1", "ProgressDeadlineExceeded", 10), false},
		{"keeps no revisions", "Deployment", "Down", deployment("2", "ProgressDeadlineExceeded", 0), false},
		{"was complete before the fault", "Deployment", "Down", deployment("2", "NewReplicaSetAvailable", 10), false},
		{"has no conditions", "Deployment", "Down", map[string]any{"status": map[string]any{"conditions": "none"}}, false},
		{"of a StatefulSet fails", "StatefulSet", "Down", statefulSet("db-1", "db-2"), true},
		{"was complete in a StatefulSet", "StatefulSet", "Down", statefulSet("db-1", "db-1"), false},
		{"of a DaemonSet fails", "DaemonSet", "Unhealthy", daemonSet("2", 1), true},
		{"was complete in a DaemonSet", "DaemonSet", "Unhealthy", daemonSet("2", 3), false},
		{"of a DaemonSet is the first", "DaemonSet", "Unhealthy", daemonSet("1", 1), false},
		{"of another kind", "Widget", "Down", deployment("2", "ProgressDeadlineExceeded", 10), false},
	}
	api, _ := startAPI(t, neverOffline, Fleet{})
	tab := openTab(t)
	visit(t, tab, api.URL+"/", "document.querySelector('link[href$=\"/rollout.js\"]')")
	for _, c := range cases {
		object, err := json.Marshal(threeport.TreeObject{Object: object("apps", c.kind, "web"), Health: c.health})
		if err != nil {
			t.Fatal(err)
		}
		got := eval[bool](t, tab, "(async () => (await import(document.querySelector('link[href$=\"/rollout.js\"]').href)).rolloutFails("+
			string(object)+", { current: "+string(definition(c.definition))+" }))()")
		if got != c.applies {
			t.Errorf("a rollout that %s can be undone: %t, want %t", c.reason, got, c.applies)
		}
	}
}

// Without current data, no command that changes the cluster is shown, and the title does not claim the status.
func TestWorkloadPage_ConnectionLost_ShowsNoCurrentState(t *testing.T) {
	api, instances := startAPI(t, neverOffline, Sample(time.Now()))
	proxy := newFaultProxy(t, api)
	tab := openTab(t)
	tab.Ignore(isNetworkError)
	const (
		history = "kubectl rollout history -n shop deployment/checkout"
		undo    = "kubectl rollout undo -n shop deployment/checkout"
	)
	visit(t, tab, proxy.URL+pathOf(instances[Checkout]), workloadShown)
	expectCommands(t, tab, history, undo)
	proxy.setFault(failWith503())
	proxy.CloseClientConnections()
	until(t, tab, "document.querySelector('#live').dataset.state === 'lost'")
	until(t, tab, "document.title === 'Not connected: checkout, was Down'")
	expectCommands(t, tab, history)
	proxy.setFault(nil)
	until(t, tab, "document.querySelector('#live').dataset.state === 'live' && document.title === 'Down: checkout'")
	expectCommands(t, tab, history, undo)
}
