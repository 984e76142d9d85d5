package browser

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// eventsShown is the condition that the Events of [Sample]'s checkout are there.
const eventsShown = "document.querySelectorAll('.event').length >= 50 && document.querySelector('.point')"

// An exact time is for the pointer at once, and for everybody at the press of one button: there is no stop for the
// tabulator at each.
func TestExactTimes(t *testing.T) {
	api, instances := startAPI(t, never, Sample(time.Now()))
	tab := openTab(t)
	visit(t, tab, api.URL+pathOf(instances[Checkout]), eventsShown)
	if stops := eval[int](t, tab, "document.querySelectorAll('main time[tabindex]').length"); stops > 0 {
		t.Errorf("the tabulator stops at %d times", stops)
	}
	eval[bool](t, tab, "new Promise((done) => { addEventListener('scroll', () => done(true), { once: true }); document.querySelector('.event:nth-child(9)').scrollIntoView({ block: 'center' }) })")
	centre := func(css string) []float64 {
		return eval[[]float64](t, tab, "(() => { const r = document.querySelector("+quote(css)+").getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2] })()")
	}
	const exact = ".event:nth-child(9) .when time"
	mouse(t, tab, input.DispatchMouseEventTypeMouseMoved, centre(exact))
	const shown = "document.querySelector('.tip').matches(':popover-open')"
	until(t, tab, shown+" && document.querySelector('.tip').innerText === document.querySelector("+quote(exact)+").dataset.utc")
	at := centre(".tip")
	if !eval[bool](t, tab, fmt.Sprintf("document.elementFromPoint(%f, %f).matches('.tip')", at[0], at[1])) {
		t.Error("the exact time is hidden by something")
	}
	mouse(t, tab, input.DispatchMouseEventTypeMouseMoved, at) // one may read it with a magnifier
	until(t, tab, shown)
	press(t, tab, kb.Escape)
	until(t, tab, "!"+shown)

	eval[bool](t, tab, "document.querySelector('.timeline-tools [aria-pressed]').focus() ?? true")
	press(t, tab, kb.Enter)
	const allExact = "[...document.querySelectorAll('main time.stamp')].every((time) => time.textContent.includes(time.dataset.utc))"
	until(t, tab, allExact+" && document.querySelector('.timeline-tools [aria-pressed]').ariaPressed === 'true'")
	visit(t, tab, api.URL+pathOf(instances[Checkout]), eventsShown+" && "+allExact) // it is remembered
	if wide := eval[int](t, tab, "document.documentElement.scrollWidth"); wide > 1280 {
		t.Errorf("with exact times the page is %d pixels wide", wide)
	}
	expectAccessible(t, tab)
	click(t, tab, ".timeline-tools [aria-pressed]")
	until(t, tab, "[...document.querySelectorAll('.event time')].every((time) => !time.textContent.includes('UTC'))")
}

// mouse does what a pointer does, at a place in the window.
func mouse(t *testing.T, tab *Tab, kind input.DispatchMouseEventType, at []float64) {
	t.Helper()
	event := input.DispatchMouseEventParams{Type: kind, X: at[0], Y: at[1]}
	if kind != input.DispatchMouseEventTypeMouseMoved {
		event.Button, event.ClickCount = input.MouseButtonLeft, 1
	}
	if _, err := chromedp.Call(tab.ctx, input.DispatchMouseEvent, event); err != nil {
		t.Fatal(err)
	}
}
