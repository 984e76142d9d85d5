// Package browser looks at the control plane's page through a real browser: Debian's chromium, without a head, driven by
// chromedp. Its tests need a chromium (hack/browser-packages.sh) and, for what they say of accessibility, axe-core
// (npm ci in hack/browser).
//
// An [Estate] is what the page is to show: workloads with all that agents say of them. [Post] tells a control plane of
// it as agents do, by report sets.
package browser
