package browser

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// tabIs is the condition that a tab is shown of an object.
func tabIs(tab, title string) string {
	return fmt.Sprintf("document.querySelector('#tab-%s').getAttribute('aria-selected') === 'true' && document.querySelector('#panel-%[1]s').innerText !== '' && document.querySelector('#object-title').innerText === %s", tab, quote(title))
}

// What one looks at is in the address, for reloading it and for links.
func TestTabIsInTheAddress(t *testing.T) {
	api, instances := startAPI(t, never, Sample(time.Now()))
	tab := openTab(t)
	visit(t, tab, api.URL+pathOf(instances[Checkout])+"?tab=toString&other=kept", tabIs("definition", "Deployment checkout"))
	click(t, tab, "#tab-changes")
	until(t, tab, tabIs("changes", "Deployment checkout")+" && location.search === '?tab=changes&other=kept&object=uid-of-Deployment-checkout'")
	if err := tab.Do(chromedp.Reload()); err != nil {
		t.Fatal(err)
	}
	until(t, tab, tabIs("changes", "Deployment checkout")+" && document.querySelector('ins')")
	eval[bool](t, tab, "document.querySelector('#tab-changes').focus() ?? true")
	press(t, tab, kb.ArrowLeft)
	until(t, tab, tabIs("definition", "Deployment checkout")+" && location.search.includes('tab=definition') && document.activeElement.id === 'tab-definition'")
	click(t, tab, ".node[data-key='uid-of-ConfigMap-checkout-config']")
	until(t, tab, "document.querySelector('#object-title').innerText === 'ConfigMap checkout-config' && location.search === '?tab=definition&other=kept&object=uid-of-ConfigMap-checkout-config'")
}

// On a phone the definition is far below the objects.
func TestObjectOnAPhone(t *testing.T) {
	api, instances := startAPI(t, never, Sample(time.Now()))
	tab := openTab(t)
	emulate(t, tab, 390, 844, Media{})
	visit(t, tab, api.URL+pathOf(instances[Checkout]), workloadShown+" && document.querySelector('.line')")
	const inSight = "((css) => { const { top, bottom } = document.querySelector(css).getBoundingClientRect(); return top >= document.querySelector('.bar').offsetHeight && bottom <= innerHeight })"
	if !eval[bool](t, tab, "!"+inSight+"('#object-title')") {
		t.Fatal("the definition is in sight already: the test is for nothing")
	}
	for _, object := range []string{"Service checkout", "Deployment checkout"} { // the second is the one that was shown at first
		selector := fmt.Sprintf("[aria-label^=%q]", object)
		click(t, tab, selector)
		until(t, tab, "document.querySelector('#object-title').innerText === "+quote(object)+" && document.querySelector('#object-title').getBoundingClientRect().top < innerHeight / 4")
		until(t, tab, "document.querySelector('#announce').innerText === "+quote(object+" is shown"))
		click(t, tab, ".to-objects")
		until(t, tab, "document.activeElement.matches("+quote(selector)+") && "+inSight+"("+quote(selector)+")")
	}
	emulate(t, tab, 1280, 900, Media{})
	until(t, tab, "!document.querySelector('.to-objects').checkVisibility()")
	eval[bool](t, tab, "scrollTo(0, 100); document.querySelector('[aria-label^=\"Service checkout\"]').click(); true")
	until(t, tab, "document.querySelector('#object-title').innerText === 'Service checkout' && scrollY === 100") // it is beside them
}
