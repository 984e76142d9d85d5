package browser

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/cdproto/security"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/threeport/threeport-agent/internal/e2e/process"
	"github.com/threeport/threeport-agent/internal/server"
	"github.com/threeport/threeport-agent/internal/server/auth"
	"github.com/threeport/threeport-agent/internal/testing/certs"
)

const clientSecret = "the-clients-secret"

// frontProxy is a proxy in front of an API. Its address is known before the API has one.
type frontProxy struct {
	*httptest.Server
	target atomic.Pointer[url.URL]
}

func newFrontProxy(t *testing.T, authority *certs.Authority) *frontProxy {
	t.Helper()
	b := &frontProxy{}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(authority.CertPEM())
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}}
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1, Transport: transport, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(b.target.Load()) },
	}
	b.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { _ = recover() }() // the proxy panics to cut off a watch whose browser has gone
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		b.CloseClientConnections()
		b.Close()
		transport.CloseIdleConnections()
	})
	return b
}

// startProvider starts a real provider. Its user jane is in the group ops, and joe in no group that has a role.
func startProvider(t *testing.T, redirectURL string) (issuer string) {
	t.Helper()
	binary, err := process.Build(t.Context(), filepath.Join("..", "openid"), "./provider", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p, err := process.Start(binary, nil, []string{
		"--client-id=threeport", "--client-secret=" + clientSecret, "--redirect-url=" + redirectURL, "--person=jane=staff,ops", "--person=joe=staff",
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	issuer, err = p.URL(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return issuer
}

// startSignOn starts a control plane with single sign-on, and returns its address.
func startSignOn(t *testing.T) string {
	t.Helper()
	authority, err := certs.NewAuthority("browser")
	if err != nil {
		t.Fatal(err)
	}
	serving, err := authority.Serving("controlplane")
	if err != nil {
		t.Fatal(err)
	}
	proxy := newFrontProxy(t, authority)
	dir := t.TempDir()
	config := server.DefaultConfig()
	config.BindAddress, config.Database, config.CAFile = "127.0.0.1:0", "sqlite:"+filepath.Join(dir, "rows.db"), ""
	config.CertFile, config.KeyFile = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	sso := &config.Access.SingleSignOn
	sso.ClientID, sso.ClientSecretFile, sso.Timeout = "threeport", filepath.Join(dir, "secret"), waitTimeout
	sso.RedirectURL, sso.ViewerGroups = proxy.URL+auth.CallbackPath, []string{"ops"}
	sso.Issuer = startProvider(t, sso.RedirectURL)
	if err := errors.Join(serving.Write(dir, "tls"), os.WriteFile(sso.ClientSecretFile, []byte(clientSecret), 0o600)); err != nil {
		t.Fatal(err)
	}
	api, err := server.New(t.Context(), config, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(api.URL())
	if err != nil {
		t.Fatal(err)
	}
	proxy.target.Store(target)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- api.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return proxy.URL
}

// openWithoutTLSChecks opens a tab that accepts any certificate.
func openWithoutTLSChecks(t *testing.T) *Tab {
	t.Helper()
	tab := openTab(t)
	tab.Ignore(isNetworkError)
	if _, err := chromedp.Call(tab.ctx, security.SetIgnoreCertificateErrors, security.SetIgnoreCertificateErrorsParams{Ignore: true}); err != nil {
		t.Fatal(err)
	}
	return tab
}

// logIn follows the link on the log-in page, and logs in at the provider.
func logIn(t *testing.T, tab *Tab, name string) {
	t.Helper()
	click(t, tab, "#sso")
	until(t, tab, "location.hostname === 'localhost' && document.querySelector('#password')")
	for _, field := range []string{"#username", "#password"} {
		if err := tab.Do(chromedp.SendKeys(chromedp.CSS(field), name)); err != nil {
			t.Fatal(err)
		}
	}
	click(t, tab, "button[type=submit]")
}

// The provider at localhost and the API at 127.0.0.1 are different sites for the browser.
func TestSignOn_OpenIDConnect(t *testing.T) {
	home := startSignOn(t)

	t.Run("an authorized user arrives at the requested page", func(t *testing.T) {
		tab := openWithoutTLSChecks(t)
		visit(t, tab, home+"/?status=Down", "location.pathname === '/login'")
		logIn(t, tab, "jane")
		until(t, tab, "location.host === '"+home[len("https://"):]+"' && location.pathname + location.search === '/?status=Down'")
		until(t, tab, "document.querySelector('#live').dataset.state === 'live'")
		if eval[string](t, tab, "document.cookie") != "" {
			t.Error("scripts can read a cookie, want none")
		}
		visit(t, tab, home+"/", "document.querySelector('#live').dataset.state === 'live'")
	})
	t.Run("an unauthorized user sees the required group", func(t *testing.T) {
		tab := openWithoutTLSChecks(t)
		visit(t, tab, home+"/", "location.pathname === '/login'")
		logIn(t, tab, "joe")
		until(t, tab, "document.querySelector('[role=alert]').innerText.includes('joe joe@example.com') && document.querySelector('[role=alert]').innerText.includes('ops')")
		expectAccessible(t, tab)
		visit(t, tab, home+"/", "location.pathname === '/login'")
	})
	t.Run("the log-in page is accessible, and has the style of the workload list", func(t *testing.T) {
		for _, media := range []Media{{}, {Dark: true}} {
			tab := openWithoutTLSChecks(t)
			emulate(t, tab, 1280, 900, media)
			visit(t, tab, home+"/login", "document.querySelector('#sso')")
			expectAccessible(t, tab)
			here := eval[[]string](t, tab, computedStyles("main", ".hint", "h1", ".mark"))
			logIn(t, tab, "jane")
			until(t, tab, "document.querySelector('#live').dataset.state === 'live'")
			if there := eval[[]string](t, tab, computedStyles(".bar", ".total", "h1", ".mark")); !slices.Equal(here, there) {
				t.Errorf("the log-in page has the styles %q, want those of the workload list: %q", here, there)
			}
		}
	})
	t.Run("wrong tokens are rejected, then limited", func(t *testing.T) {
		tab := openWithoutTLSChecks(t)
		visit(t, tab, home+"/login", "document.querySelector('#token')")
		for attempt := 1; ; attempt++ {
			eval[bool](t, tab, "window.before = true")
			if err := tab.Do(chromedp.SendKeys(chromedp.CSS("#token"), "wrong"+kb.Enter)); err != nil {
				t.Fatal(err)
			}
			until(t, tab, "!window.before && document.querySelector('[role=alert]')?.innerText")
			alert := eval[string](t, tab, "document.querySelector('[role=alert]').innerText")
			if strings.HasPrefix(alert, "Too many attempts failed. Try again in ") {
				break
			}
			if attempt == 1 {
				until(t, tab, "document.activeElement.id === 'token' && document.activeElement.getAttribute('aria-invalid') === 'true'")
				expectAccessible(t, tab)
			}
			if !strings.HasPrefix(alert, "You are not signed in. The token is not valid") || attempt > 20 {
				t.Fatalf("after attempt %d the page shows %q, want that the token is not valid", attempt, alert)
			}
		}
		if eval[bool](t, tab, "document.querySelector('#token').hasAttribute('aria-invalid')") {
			t.Error("the token is marked as invalid, but was not checked")
		}
		expectAccessible(t, tab)
	})
}

// computedStyles returns a script that reads the colours and fonts of a page: body, sheet, muted text, heading and mark.
func computedStyles(sheet, muted, heading, mark string) string {
	return fmt.Sprintf(`(() => {
		const of = (css) => getComputedStyle(document.querySelector(css));
		const [body, sheet, muted, heading, mark] = [of('body'), of('%s'), of('%s'), of('%s'), of('%s')];
		return [body.backgroundColor, body.color, body.fontFamily, sheet.backgroundColor, muted.color, heading.fontSize, heading.fontWeight, mark.color];
	})()`, sheet, muted, heading, mark)
}
