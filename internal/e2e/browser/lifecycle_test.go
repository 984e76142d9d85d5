package browser

import (
	"fmt"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// listedObject reports an object that a workload lists: its tree node, and its definition with the time of its creation.
func (w *Workload) listedObject(ref threeport.ObjectRef, created time.Time) Operation {
	w.addListed(ref, "Healthy", "", "")
	return Operation{Version: 1, OperationReport: threeport.OperationReport{Object: ref, Operation: "ADDED", Definition: definition(map[string]any{
		"kind": ref.Kind, "metadata": map[string]any{"name": ref.Name, "creationTimestamp": created.UTC().Format(time.RFC3339)},
	})}}
}

// listedFixture is the workload web. It lists a Deployment web, which is 40 minutes old, and a ConfigMap settings, which is 20
// minutes old.
type listedFixture struct {
	t        *testing.T
	url      string // of the API
	agent    threeport.Agent
	instance threeport.Instance
	web      threeport.TreeObject
	settings threeport.ObjectRef
}

func newListedFixture(t *testing.T, now time.Time) *listedFixture {
	t.Helper()
	w := withStatus("web", status("Healthy", "", "", now, 50*time.Minute))
	settings := object("", "ConfigMap", "settings")
	created := []Operation{
		w.listedObject(object("apps", "Deployment", "web"), now.Add(-40*time.Minute)), w.listedObject(settings, now.Add(-20*time.Minute)),
	}
	cluster := newClusterWith("north", w)
	api, instances := startAPI(t, neverOffline, Fleet{Clusters: []Cluster{cluster}})
	f := &listedFixture{t: t, url: api.URL, agent: cluster.Agent, instance: instances["web"], web: w.Tree[0], settings: settings}
	f.send(created[0].report(f.instance), created[1].report(f.instance))
	return f
}

func (f *listedFixture) send(reports ...threeport.Report) {
	f.t.Helper()
	if err := SendReports(f.t.Context(), f.url, threeport.ReportSet{Agent: f.agent, Reports: reports}); err != nil {
		f.t.Fatal(err)
	}
}

// tree reports the tree.
func (f *listedFixture) tree(objects ...threeport.TreeObject) threeport.Report {
	return threeport.Report{Instance: f.instance, Version: threeport.ID(time.Now().UnixMicro()), Tree: &threeport.TreeReport{Objects: objects}}
}

// The timeline and the list of Events show when listed objects were created and deleted.
func TestTimeline_ListedObjects_CreationsAndDeletionsAreMarked(t *testing.T) {
	now := time.Now()
	f := newListedFixture(t, now)
	instance, settings := f.instance, f.settings

	tab := openTab(t)
	const (
		listed = "[...document.querySelectorAll('.event')].map((e) => ['.reason', '.who'].map((css) => e.querySelector(css).innerText.trim()).join(' ')).join()"
		lines  = "[...document.querySelectorAll('.plot .lifecycle line')]"
	)
	visit(t, tab, f.url+pathOf(instance)+"?last=1h", workloadShown+" && "+listed+" === 'Created ConfigMap settings,Created Deployment web'")
	until(t, tab, lines+".length === 2")

	absent := settings
	absent.UID = ""
	deletion := Operation{Version: 2, OperationReport: threeport.OperationReport{Object: settings, Operation: "DELETED"}}
	f.send(deletion.report(instance), f.tree(f.web, threeport.TreeObject{Object: absent, Listed: true, State: "Absent", Health: "Down", Reason: "Absent"}))
	until(t, tab, listed+" === 'Deleted ConfigMap settings,Created ConfigMap settings,Created Deployment web'")
	until(t, tab, lines+".length === 3 && document.querySelectorAll('.lifecycle.deleted').length === 1")
	if !eval[bool](t, tab, lines+`.every((line) => { const plot = document.querySelector('.plot').getBoundingClientRect(), r = line.getBoundingClientRect();
		return r.left >= plot.left && r.right <= plot.right && r.height >= 30 && r.bottom <= plot.bottom })`) {
		t.Error("a line is not across the rows of the timeline")
	}
	for i, minutes := range []int{0, 20, 40} {
		at := eval[float64](t, tab, fmt.Sprintf("Date.parse(document.querySelectorAll('.event time')[%d].dateTime)", i))
		if want := now.Add(-time.Duration(minutes) * time.Minute); time.UnixMilli(int64(at)).Sub(want).Abs() > time.Minute {
			t.Errorf("item %d is of %s, want %s", i, time.UnixMilli(int64(at)), want)
		}
	}
	click(t, tab, ".lifecycle.deleted .target")
	until(t, tab, "document.querySelector('.event.picked .reason').innerText === 'Deleted' && document.querySelectorAll('.event.picked').length === 1")
	visit(t, tab, f.url+pathOf(instance)+"?last=1h&kind=ConfigMap", lines+".length === 2 && "+listed+" === 'Deleted ConfigMap settings,Created ConfigMap settings'")
	expectAccessible(t, tab)
}

// A change of the spec is marked, and each mark of the timeline has its own symbol and colour.
func TestTimeline_SpecChange_IsMarked(t *testing.T) {
	now := time.Now()
	api, instances := startAPI(t, neverOffline, Sample(now))
	tab := openTab(t)
	visit(t, tab, api.URL+pathOf(instances[Checkout])+"?last=15m", workloadShown+" && document.querySelectorAll('.lifecycle.specChanged line').length === 1")
	until(t, tab, "[...document.querySelectorAll('.event .reason')].some((e) => e.innerText === 'SpecChanged')")
	for _, dark := range []bool{false, true} {
		emulate(t, tab, 1280, 900, Media{Dark: dark})
		for _, of := range []string{"querySelector('use').getAttribute('href')", "outerHTML && getComputedStyle(e).color"} {
			const symbols = "[...document.querySelectorAll('.legend .created .icon, .legend .specChanged .icon, .legend .deleted .icon')]"
			if n := eval[int](t, tab, "new Set("+symbols+".map((e) => e."+of+")).size"); n != 3 {
				t.Errorf("dark %t: the legend has %d different values of %s, want 3", dark, n, of)
			}
		}
	}
	expectAccessible(t, tab)
}

// The page shows one begin of the present cause, beside the start of the status if that is another time.
func TestWorkloadPage_Since_IsStartOfReason(t *testing.T) {
	now := time.Now()
	cluster := newClusterWith("north", withStatus("web", status("Unhealthy", "ImagePullBackOff", "2 pods ImagePullBackOff → Deployment web", now, 20*time.Minute)))
	api, instances := startAPI(t, neverOffline, Fleet{Clusters: []Cluster{cluster}})
	tab := openTab(t)
	const (
		since  = "document.querySelector('.facts [data-key=Since] dd')"
		reason = "document.querySelector('.facts [data-key=Reason] dd').innerText"
		times  = "[..." + since + ".querySelectorAll('time')].map((time) => Date.parse(time.dateTime))"
	)
	visit(t, tab, api.URL+pathOf(instances["web"]), workloadShown+" && "+reason+" === 'ImagePullBackOff' && "+times+".length === 1")
	start := eval[float64](t, tab, times+"[0]")
	if want := now.Add(-20 * time.Minute); time.UnixMilli(int64(start)).Sub(want).Abs() > time.Second {
		t.Errorf("the reason of a new status holds since %s, want the time of the status: %s", time.UnixMilli(int64(start)), want)
	}
	sendStatus(t, api, cluster.Agent, instances["web"], status("Unhealthy", "ImagePullBackOff", "1 pod ImagePullBackOff → Deployment web", now, 20*time.Minute))
	until(t, tab, "document.querySelector('.cause-what').innerText === '1 pod ImagePullBackOff'")
	if got := eval[[]float64](t, tab, times); len(got) != 1 || got[0] != start {
		t.Errorf("with another count the reason holds since %f, want %f", got, start)
	}
	sendStatus(t, api, cluster.Agent, instances["web"], status("Unhealthy", "CrashLoopBackOff", "1 pod CrashLoopBackOff → Deployment web", now, 20*time.Minute))
	until(t, tab, reason+" === 'CrashLoopBackOff' && /^.+ \\(Unhealthy since .+\\)$/.test("+since+".innerText)")
	got := eval[[]float64](t, tab, times)
	if len(got) != 2 || time.UnixMilli(int64(got[0])).Sub(now) < -time.Minute || got[1] != start {
		t.Errorf("another reason holds since %f, want the time of its report, and %f of the status", got, start)
	}
	sendStatus(t, api, cluster.Agent, instances["web"], status("Healthy", "", "", now, time.Minute))
	until(t, tab, "document.querySelector('.status-word').innerText.startsWith('Healthy for ') && "+times+".length === 1")
}
