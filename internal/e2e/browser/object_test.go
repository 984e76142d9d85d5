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
