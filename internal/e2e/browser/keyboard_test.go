package browser

import (
	"testing"
	"time"
)

func TestTheThemesButtonSaysWhichIsInForce(t *testing.T) {
	api, _ := startAPI(t, never, Estate{})
	tab := openTab(t)
	const label = "document.querySelector('#theme').getAttribute('aria-label')"
	visit(t, tab, api.URL+"/", label+" === 'Colours: as the system has them'")
	click(t, tab, "#theme")
	until(t, tab, label+" === 'Colours: dark'")
	visit(t, tab, api.URL+"/", stateShown("empty"))
	until(t, tab, label+" === 'Colours: dark'")
}

// Who has signed in again elsewhere need not do so here, or load the page anew.
func TestSignedInAgainElsewhere(t *testing.T) {
	api, _ := startAPI(t, never, Sample(time.Now()))
	between := newBetweenTLS(t, api)
	tab := openTrusting(t)
	const leaving = "document.querySelector('#leave').checkVisibility()"
	visit(t, tab, between.URL+"/", boardShown+" && "+leaving)
	between.answer(func(string) int { return 401 })
	between.CloseClientConnections()
	until(t, tab, "document.querySelector('#live').innerText === 'Signed out' && document.querySelector('#banner').innerText.includes('You are signed out') && !"+leaving)
	between.answer(nil)
	eval[bool](t, tab, "document.dispatchEvent(new Event('visibilitychange'))")
	until(t, tab, boardShown+" && !document.querySelector('#banner').checkVisibility() && "+leaving)

	between.answer(func(string) int { return 403 })
	between.CloseClientConnections()
	until(t, tab, "document.querySelector('#live').innerText === 'No access' && !document.querySelector('#banner').innerText.includes('signed out') && "+leaving)
}
