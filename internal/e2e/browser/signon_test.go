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

// balancer is where browsers find an API. Its address is known before that has one.
type balancer struct {
	*httptest.Server
	target atomic.Pointer[url.URL]
}

func newBalancer(t *testing.T, authority *certs.Authority) *balancer {
	t.Helper()
	b := &balancer{}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(authority.CertPEM())
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}}
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1, Transport: transport, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(b.target.Load()) },
	}
	b.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { _ = recover() }() // the proxy panics to cut off a watch whose browser is gone
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		b.CloseClientConnections()
		b.Close()
		transport.CloseIdleConnections()
	})
	return b
}

// startProvider starts a real provider, where jane is in the group ops, and joe is in none that counts.
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
	ctx, cancel := context.WithTimeout(t.Context(), patience)
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
	front := newBalancer(t, authority)
	dir := t.TempDir()
	config := server.DefaultConfig()
	config.BindAddress, config.Database, config.CAFile = "127.0.0.1:0", "sqlite:"+filepath.Join(dir, "rows.db"), ""
	config.CertFile, config.KeyFile = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	sso := &config.Access.SingleSignOn
	sso.ClientID, sso.ClientSecretFile, sso.Timeout = "threeport", filepath.Join(dir, "secret"), patience
	sso.RedirectURL, sso.ViewerGroups = front.URL+auth.CallbackPath, []string{"ops"}
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
	front.target.Store(target)
	ctx, end := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- api.Run(ctx) }()
	t.Cleanup(func() {
		end()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return front.URL
}

// openTrusting opens a tab that takes any certificate.
func openTrusting(t *testing.T) *Tab {
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

// The provider is another site to the browser: it is at localhost, and the API at 127.0.0.1.
func TestSignOn_OpenIDConnect(t *testing.T) {
	home := startSignOn(t)

	t.Run("an authorized user arrives at the requested page", func(t *testing.T) {
		tab := openTrusting(t)
		visit(t, tab, home+"/?status=Down", "location.pathname === '/login'")
		logIn(t, tab, "jane")
		until(t, tab, "location.host === '"+home[len("https://"):]+"' && location.pathname + location.search === '/?status=Down'")
		until(t, tab, "document.querySelector('#live').dataset.state === 'live'")
		if eval[string](t, tab, "document.cookie") != "" {
			t.Error("scripts see a cookie")
		}
		visit(t, tab, home+"/", "document.querySelector('#live').dataset.state === 'live'")
	})
	t.Run("an unauthorized user sees the required group", func(t *testing.T) {
		tab := openTrusting(t)
		visit(t, tab, home+"/", "location.pathname === '/login'")
		logIn(t, tab, "joe")
		until(t, tab, "document.querySelector('[role=alert]').innerText.includes('joe joe@example.com') && document.querySelector('[role=alert]').innerText.includes('ops')")
		expectAccessible(t, tab)
		visit(t, tab, home+"/", "location.pathname === '/login'")
	})
	t.Run("the log-in page is accessible, and looks like the others", func(t *testing.T) {
		for _, media := range []Media{{}, {Dark: true}} {
			tab := openTrusting(t)
			emulate(t, tab, 1280, 900, media)
			visit(t, tab, home+"/login", "document.querySelector('#sso')")
			expectAccessible(t, tab)
			here := eval[[]string](t, tab, looks("main", ".hint", "h1", ".mark"))
			logIn(t, tab, "jane")
			until(t, tab, "document.querySelector('#live').dataset.state === 'live'")
			if there := eval[[]string](t, tab, looks(".bar", ".total", "h1", ".mark")); !slices.Equal(here, there) {
				t.Errorf("it looks as %q, expected as the workload list: %q", here, there)
			}
		}
	})
	t.Run("a token that is wrong, and too many of them", func(t *testing.T) {
		tab := openTrusting(t)
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
				t.Fatalf("attempt %d: %q", attempt, alert)
			}
		}
		if eval[bool](t, tab, "document.querySelector('#token').hasAttribute('aria-invalid')") {
			t.Error("the token is marked as wrong, though it was not checked")
		}
		expectAccessible(t, tab)
	})
}

// looks evaluates to the grounds, colours and letters of a page: of the body, of a sheet, a quiet text, a heading and the mark.
func looks(sheet, quiet, heading, mark string) string {
	return fmt.Sprintf(`(() => {
		const of = (css) => getComputedStyle(document.querySelector(css));
		const [body, sheet, quiet, heading, mark] = [of('body'), of('%s'), of('%s'), of('%s'), of('%s')];
		return [body.backgroundColor, body.color, body.fontFamily, sheet.backgroundColor, quiet.color, heading.fontSize, heading.fontWeight, mark.color];
	})()`, sheet, quiet, heading, mark)
}
