package openid

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// retryInterval is the minimal time between two requests for metadata that is not available.
const retryInterval = 5 * time.Second

// Provider is a client of an OpenID Connect provider. Create it with [New] and end it with [Provider.Close]. It is safe
// for concurrent use.
type Provider struct {
	config Config
	client *http.Client
	now    func() time.Time
	log    *slog.Logger

	unavailable atomic.Bool
	fetch       func() (*metadata, error) // until Close
	cancel      context.CancelFunc
	discovery   sync.WaitGroup // one goroutine

	mu       sync.Mutex
	latest   *discovery // nil before the first attempt
	failedAt time.Time  // time of the last failed attempt
}

// discovery is an attempt to fetch the metadata. Its results are set when it is done.
type discovery struct {
	done     chan struct{}
	metadata *metadata
	err      error
}

// metadata is the provider's discovery document.
type metadata struct {
	*oidc.Provider
	KeysURL string `json:"jwks_uri"`
	// AuthMethods are the accepted ways to send the client secret; empty means client_secret_basic (OpenID Connect
	// Discovery 1.0, section 3).
	AuthMethods []string `json:"token_endpoint_auth_methods_supported"`
}

// New reads the files of the configuration. It starts a goroutine that fetches the metadata, so that an unavailable
// provider is logged early; [Provider.Close] ends it.
func New(config Config, now func() time.Time, log *slog.Logger) (*Provider, error) {
	client, err := newClient(config)
	if err != nil {
		return nil, err
	}
	p := &Provider{config: config, client: client, now: now, log: log}
	if _, err := p.secret(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel, p.fetch = cancel, func() (*metadata, error) { return p.fetchMetadata(ctx) }
	p.attempt()
	return p, nil
}

// Close ends the goroutine and closes idle connections. No log-in may be running.
func (p *Provider) Close() {
	p.cancel()
	p.discovery.Wait()
	p.client.CloseIdleConnections()
}

// IsUnavailable reports whether the last request for metadata failed.
func (p *Provider) IsUnavailable() bool { return p.unavailable.Load() }

// Discover fetches the metadata unless they are known, or an attempt failed within [retryInterval].
func (p *Provider) Discover(ctx context.Context) error {
	_, err := p.discovered(ctx)
	return err
}

// discovered returns the metadata. Concurrent callers wait for one request, each until its context ends.
func (p *Provider) discovered(ctx context.Context) (*metadata, error) {
	attempt := p.attempt()
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-attempt.done:
		return attempt.metadata, attempt.err
	}
}

// attempt returns the latest attempt to fetch the metadata. It begins another one if the latest has failed, and not just now.
func (p *Provider) attempt() *discovery {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.latest != nil && (p.failedAt.IsZero() || p.now().Sub(p.failedAt) < retryInterval) {
		return p.latest
	}
	attempt := &discovery{done: make(chan struct{})}
	p.latest, p.failedAt = attempt, time.Time{}
	p.discovery.Go(func() {
		defer close(attempt.done)
		p.discover(attempt)
	})
	return attempt
}

// discover sets the results of an attempt.
func (p *Provider) discover(attempt *discovery) {
	found, err := p.fetch()
	if err == nil {
		attempt.metadata = found
		p.unavailable.Store(false)
		p.log.Info("Single sign-on is available", "issuer", p.config.Issuer)
		return
	}
	attempt.err = fmt.Errorf("discover identity provider: %w", truncateError(err))
	p.mu.Lock()
	p.failedAt = p.now()
	p.mu.Unlock()
	if !errors.Is(err, context.Canceled) { // by Close
		p.unavailable.Store(true)
		p.log.Warn("Single sign-on is unavailable: the metadata of the identity provider cannot be fetched",
			"issuer", p.config.Issuer, "error", attempt.err)
	}
}

func (p *Provider) fetchMetadata(ctx context.Context) (*metadata, error) {
	found, err := oidc.NewProvider(oidc.ClientContext(ctx, p.client), p.config.Issuer)
	if err != nil {
		return nil, err
	}
	m := &metadata{Provider: found}
	if err := found.Claims(m); err != nil {
		return nil, err
	}
	for _, endpoint := range []string{found.Endpoint().AuthURL, found.Endpoint().TokenURL, m.KeysURL} {
		if err := checkEndpoint(endpoint); err != nil {
			return nil, fmt.Errorf("endpoint %q: %w", endpoint, err)
		}
	}
	return m, nil
}

// AuthURL returns the URL at which a browser logs in.
func (p *Provider) AuthURL(ctx context.Context, f Flow) (string, error) {
	found, err := p.discovered(ctx)
	if err != nil {
		return "", err
	}
	return p.oauth2(found, "").AuthCodeURL(f.state(), oidc.Nonce(f.nonce()), oauth2.S256ChallengeOption(f.verifier())), nil
}

func (p *Provider) oauth2(found *metadata, secret string) *oauth2.Config {
	at := found.Endpoint()
	at.AuthStyle = oauth2.AuthStyleInHeader
	if secret == "" || len(found.AuthMethods) > 0 && !slices.Contains(found.AuthMethods, "client_secret_basic") {
		at.AuthStyle = oauth2.AuthStyleInParams
	}
	return &oauth2.Config{
		ClientID: p.config.ClientID, ClientSecret: secret, Endpoint: at, RedirectURL: p.config.RedirectURL, Scopes: p.config.Scopes,
	}
}

// secret returns the client secret; empty for a public client.
func (p *Provider) secret() (string, error) {
	if p.config.ClientSecretFile == "" {
		return "", nil
	}
	text, err := os.ReadFile(p.config.ClientSecretFile)
	if err != nil {
		return "", fmt.Errorf("read client secret: %w", err)
	}
	secret := strings.TrimSpace(string(text))
	if secret == "" {
		return "", fmt.Errorf("read client secret: %s is empty", p.config.ClientSecretFile)
	}
	return secret, nil
}

// truncateError limits an error, since some repeat the provider's response.
func truncateError(err error) error {
	const longest = 400
	if text := err.Error(); len(text) > longest {
		return errors.New(strings.ToValidUTF8(text[:longest], "") + "…")
	}
	return err
}
