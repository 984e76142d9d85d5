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

// retryPeriod is how often a provider that does not answer is asked at most.
const retryInterval = 5 * time.Second

// Provider is a provider of OpenID Connect. Make one with [New] and end it with [Provider.Close]. It is safe for
// concurrent use.
type Provider struct {
	config Config
	client *http.Client
	now    func() time.Time
	log    *slog.Logger

	unavailable   atomic.Bool
	cancel context.CancelFunc
	discovery sync.WaitGroup // one goroutine

	mu    sync.Mutex
	metadata *metadata // nil until it has answered
	err   error     // why there is none
	failedAt time.Time // when it did not answer last
}

// metadata are what the provider says of itself.
type metadata struct {
	*oidc.Provider
	KeysURL string `json:"jwks_uri"`
	// AuthMethods are how it takes a client's secret; if it says none, in a header (OpenID Connect Discovery 1.0, section 3).
	AuthMethods []string `json:"token_endpoint_auth_methods_supported"`
}

// New reads the files of the configuration, and starts a goroutine that asks the provider for the first time, so that it
// shows early if that is away. [Provider.Close] ends it.
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
	p.cancel = cancel
	p.discovery.Go(func() { _ = p.Discover(ctx) }) // it logs what it cannot do
	return p, nil
}

// Close ends what New began, and closes idle connections. Nobody may be logging in any more.
func (p *Provider) Close() {
	p.cancel()
	p.discovery.Wait()
	p.client.CloseIdleConnections()
}

// IsAway tells whether the provider did not answer when it was asked last.
func (p *Provider) IsUnavailable() bool { return p.unavailable.Load() }

// Discover asks the provider for its endpoints, unless it has told them, or was asked within [retryPeriod].
func (p *Provider) Discover(ctx context.Context) error {
	_, err := p.discovered(ctx)
	return err
}

// discovered are the provider's metadata. Those who ask at once wait for one answer.
func (p *Provider) discovered(ctx context.Context) (*metadata, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.metadata != nil {
		return p.metadata, nil
	}
	if p.err != nil && p.now().Sub(p.failedAt) < retryInterval {
		return nil, p.err
	}
	found, err := p.fetchMetadata(ctx)
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil, ctx.Err() // who asked has gone: that tells nothing of the provider
	}
	if err != nil {
		p.err, p.failedAt = fmt.Errorf("discover identity provider: %w", truncateError(err)), p.now()
		p.unavailable.Store(true)
		p.log.Warn("Nobody can log in by single sign-on: the identity provider does not answer as it should", "issuer", p.config.Issuer, "error", p.err)
		return nil, p.err
	}
	p.metadata, p.err = found, nil
	p.unavailable.Store(false)
	p.log.Info("The identity provider answers", "issuer", p.config.Issuer)
	return found, nil
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

// AuthURL is where a browser has to go to log in.
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

// secret is the client's; empty for a public client.
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

// brief cuts an error, since some repeat what the provider sent.
func truncateError(err error) error {
	const longest = 400
	if text := err.Error(); len(text) > longest {
		return errors.New(strings.ToValidUTF8(text[:longest], "") + "…")
	}
	return err
}
