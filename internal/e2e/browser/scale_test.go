package browser

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"
)

// Limits of the processor time of the workload list, in seconds. Wall-clock time depends on the load of the machine.
const (
	maxScripting = 0.2  // until the first rows are drawn
	maxPerScroll = 0.05 // to draw a screen of new rows; a longer task is a long task (W3C Long Tasks API)
)

// machineFactor is the factor by which a machine may be slower than those in docs/measurements.md, which need half of the limits.
// Work that grows with all workloads rather than with the visible ones takes a hundred times as long.
const machineFactor = 4

// workloads is the number of workloads in the list.
var workloads = flag.Int("workloads", 5000, "number of workloads of TestWorkloadList_ThousandsOfWorkloads_IsFast")

func TestWorkloadList_ThousandsOfWorkloads_IsFast(t *testing.T) {
	api, _ := startAPI(t, neverOffline, ManyWorkloads(*workloads, time.Now()))
	tab := openTab(t)
	if _, err := chromedp.Call(tab.ctx, performance.Enable, performance.EnableParams{TimeDomain: performance.EnableTimeDomainThreadTicks}); err != nil {
		t.Fatal(err)
	}
	visit(t, tab, api.URL+"/", listShown)
	first := browserMetric(t, tab, "ScriptDuration")
	until(t, tab, fmt.Sprintf("%s === %d", rowCount, *workloads))
	all := browserMetric(t, tab, "ScriptDuration")
	t.Logf("scripting: %.0f ms until the first rows, %.0f ms until all %d", first*1000, all*1000, *workloads)
	if first > machineFactor*maxScripting {
		t.Errorf("the first rows took %.0f ms of scripting, want at most %.0f", first*1000, machineFactor*maxScripting*1000)
	}
	if rows := eval[int](t, tab, "document.querySelectorAll('.grid-list .row').length"); rows > 60 {
		t.Errorf("%d rows have elements, want at most 60: only the visible ones", rows)
	}

	before := browserMetric(t, tab, "TaskDuration")
	longest := eval[float64](t, tab, `(async () => {
		let longest = 0;
		new PerformanceObserver((list) => { for (const e of list.getEntries()) longest = Math.max(longest, e.duration); }).observe({ type: 'longtask' });
		const grid = document.querySelector('.grid');
		for (let i = 0; i < 40; i++) {
			grid.scrollTop = grid.scrollHeight * (i % 2 ? i / 40 : i / 41);
			await new Promise(requestAnimationFrame);
		}
		grid.scrollTop = grid.scrollHeight;
		await new Promise((resolve) => setTimeout(resolve, 100));
		return longest / 1000;
	})()`)
	each := (browserMetric(t, tab, "TaskDuration") - before) / 41
	t.Logf("scrolling: %.1f ms for each scroll to other rows; the longest task took %.0f ms of wall-clock time (0: none over 50)", each*1000, longest*1000)
	if each > machineFactor*maxPerScroll {
		t.Errorf("a scroll to other rows took %.1f ms, want at most %.0f", each*1000, machineFactor*maxPerScroll*1000)
	}
	until(t, tab, fmt.Sprintf("document.querySelector('.row[aria-rowindex=%q]')", fmt.Sprint(*workloads+1)))

	took := eval[float64](t, tab, `(async () => {
		const text = document.querySelector('#text');
		const start = performance.now();
		text.value = 'ledger-0499';
		text.dispatchEvent(new Event('input'));
		return performance.now() - start;
	})()`)
	t.Logf("a filter took %.0f ms", took)
	until(t, tab, rowCount+" < 12")
}

// browserMetric returns a metric of the browser about the current page. Durations are seconds of processor time.
func browserMetric(t *testing.T, tab *Tab, name string) float64 {
	t.Helper()
	got, err := chromedp.Call(tab.ctx, performance.GetMetrics, cdp.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	for _, metric := range got.Metrics {
		if metric.Name == name {
			return metric.Value
		}
	}
	t.Fatalf("the browser has no metric %s", name)
	return 0
}
