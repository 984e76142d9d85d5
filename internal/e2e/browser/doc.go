// Package browser tests the control plane's page in a real browser: headless chromium, driven by chromedp. The tests need
// chromium (hack/packages.sh browser) and, for accessibility, axe-core (npm ci in hack/browser).
//
// A [Fleet] is the content of the page: workloads with all reports of their agents. [Post] sends it to a control plane in
// report sets, as agents do.
package browser
