package credential

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/threeport/threeport-agent/internal/threeport"
)

const (
	// checkInterval is how often the state of the token is read while no renewal is due. A person may revoke the token.
	checkInterval = time.Hour
	// fileInterval is how often the agent checks whether a person has replaced the token. That sends no request.
	fileInterval = time.Minute
	// A failed attempt is repeated after firstRetry, and then after twice as long each time, up to maxRetry.
	firstRetry = time.Second
	maxRetry   = 5 * time.Minute
	// The renewal is delayed by a random part of the rest of the token's life, up to 1/jitterParts. So the agents of many clusters renew
	// at different times.
	jitterParts = 10
	// In the last 1/urgentParts between the due renewal and the end of the token, it is renewed even if the Secret cannot be written.
	urgentParts = 4
)

// API is the control plane with the token that is sent to it. It is a [threeport.Client].
type API interface {
	OwnToken(ctx context.Context) (threeport.OwnToken, error)
	RenewToken(ctx context.Context) (threeport.RenewedToken, error)
	Token() (string, error)
	UseToken(token string) error
}

// Storage keeps the token for the next start. It is a [Secret].
type Storage interface {
	CheckReplace(ctx context.Context, old string) error
	Replace(ctx context.Context, old, renewed string) error
}

// Renewer renews the token.
type Renewer struct {
	api     API
	storage Storage
	metrics *Metrics
	log     logr.Logger

	// spread is the random part of the delay of renewals, from 0 to 1.
	spread float64
	retry  wait.Backoff
	// state is the state of the token as last read; zero before.
	state threeport.OwnToken
	// unstored is the token that is in use and not in the storage, which has the token stored; empty if the storage has it.
	unstored, stored string
	// seen is the token of the last step.
	seen string
	// said is the last logged reason not to renew; empty if renewals work.
	said string
}

// New returns a renewer.
func New(api API, storage Storage, metrics *Metrics, log logr.Logger) *Renewer {
	r := &Renewer{api: api, storage: storage, metrics: metrics, log: log, spread: rand.Float64()} //nolint:gosec // no secret
	r.resetRetry()
	return r
}

// Run renews the token whenever that is due, until the context ends.
func (r *Renewer) Run(ctx context.Context) {
	timer, ticker := time.NewTimer(0), time.NewTicker(fileInterval)
	defer timer.Stop()
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if r.replaced() {
				r.resetRetry()
				timer.Reset(0)
			}
		case <-timer.C:
			timer.Reset(r.step(ctx))
		}
	}
}

// replaced reports whether the token differs from that of the last step. It is false if the file is unreadable.
func (r *Renewer) replaced() bool {
	token, err := r.api.Token()
	return err == nil && token != r.seen
}

// step does the next step, and returns the time until the following one.
func (r *Renewer) step(ctx context.Context) time.Duration {
	r.seen, _ = r.api.Token() // the requests report the error
	if r.unstored != "" {
		if err := r.store(ctx); err != nil && time.Now().Before(r.renewAt()) {
			return r.failed(ctx, "The new token could not be written and is kept in memory: a restarted agent would send the old one", err)
		}
	}
	state, err := r.api.OwnToken(ctx)
	switch {
	case errors.Is(err, threeport.ErrNoRenewal):
		r.metrics.expires(nil)
		return r.cannotRenew("The token is not renewed: the control plane does not support it", err)
	case err != nil:
		return r.unread(ctx, err)
	}
	r.state = state
	r.metrics.expires(state.ExpiresAt)
	if !state.Renewable || state.RenewalDueAt == nil || state.ExpiresAt == nil {
		return r.cannotRenew("The token is not renewed: it is not renewable", nil)
	}
	if until := time.Until(r.renewAt()); until > 0 {
		r.succeeded()
		return min(until, checkInterval)
	}
	return r.renew(ctx)
}

// renewAt is the time of the next renewal: when it is due, and a part of the rest of the token's life.
func (r *Renewer) renewAt() time.Time {
	if r.state.RenewalDueAt == nil || r.state.ExpiresAt == nil {
		return time.Time{}
	}
	due := *r.state.RenewalDueAt
	return due.Add(time.Duration(r.spread * float64(r.state.ExpiresAt.Sub(due)/jitterParts)))
}

// isUrgent reports whether the token ends so soon that a token in memory only is better.
func (r *Renewer) isUrgent() bool {
	return time.Until(*r.state.ExpiresAt) < r.state.ExpiresAt.Sub(*r.state.RenewalDueAt)/urgentParts
}

// renew replaces the token, after a check that the new one can be stored: a replaced token is valid for a day at most, and the agent may
// restart.
func (r *Renewer) renew(ctx context.Context) time.Duration {
	current, err := r.api.Token()
	if err != nil {
		return r.failed(ctx, "The token is not renewed: it cannot be read", err)
	}
	if r.unstored == "" {
		r.stored = current
	}
	if err := r.storage.CheckReplace(ctx, r.stored); err != nil && !r.isUrgent() {
		return r.failed(ctx, "The token is not renewed: its Secret cannot be written", err)
	}
	renewed, err := r.api.RenewToken(ctx)
	switch {
	case threeport.StatusOf(err) == http.StatusConflict:
		r.log.V(1).Info("The control plane says that the renewal is not due", "error", err.Error()) // the clocks differ
		return max(r.retry.Step(), threeport.RetryAfter(err))
	case err != nil:
		return r.failed(ctx, "The token is not renewed", err)
	}
	r.state, r.unstored = renewed.OwnToken, renewed.Token
	r.metrics.expires(renewed.ExpiresAt)
	if err := r.api.UseToken(renewed.Token); err != nil {
		return r.failed(ctx, "The new token is not used until it is in the file: the file cannot be read", err)
	}
	r.seen = renewed.Token
	r.log.Info("The token is renewed", "name", renewed.Name, "expires", renewed.ExpiresAt)
	if err := r.store(ctx); err != nil {
		return r.failed(ctx, "The new token could not be written and is kept in memory: a restarted agent would send the old one", err)
	}
	r.succeeded()
	return firstRetry
}

// store writes the token that is in use to the storage. A token that a person wrote there meanwhile stays: it will be used when the
// file has it.
func (r *Renewer) store(ctx context.Context) error {
	err := r.storage.Replace(ctx, r.stored, r.unstored)
	switch {
	case errors.Is(err, errReplaced):
		r.log.Info("The Secret has a token of somebody else, which the agent uses when its file has it", "reason", err.Error())
	case err != nil:
		return err
	default:
		r.log.Info("The new token is in its Secret")
	}
	r.unstored, r.stored = "", ""
	return nil
}

// unread is the outcome of a failed attempt to read the state. It counts as a failed renewal if one is due, or if the token is refused.
func (r *Renewer) unread(ctx context.Context, err error) time.Duration {
	const text = "The state of the token cannot be read"
	overdue := r.state.RenewalDueAt != nil && time.Now().After(r.renewAt())
	if overdue || threeport.KindOf(err) == threeport.KindUnauthorized {
		return r.failed(ctx, text, err)
	}
	return r.again(text, err)
}

// failed counts a failed attempt, unless the agent ends, and returns the time until the next one.
func (r *Renewer) failed(ctx context.Context, text string, err error) time.Duration {
	if ctx.Err() == nil {
		r.metrics.failures.Inc()
	}
	return r.again(text, err)
}

// again logs the first of equal failures, and returns the time until the next attempt.
func (r *Renewer) again(text string, err error) time.Duration {
	r.say(text, err)
	return max(r.retry.Step(), threeport.RetryAfter(err))
}

// cannotRenew logs once why the token is not renewed.
func (r *Renewer) cannotRenew(text string, err error) time.Duration {
	r.resetRetry()
	r.say(text, err)
	return checkInterval
}

// say logs a reason, unless it is that of the last attempt.
func (r *Renewer) say(text string, err error) {
	if r.said == text {
		return
	}
	r.said = text
	if err == nil {
		r.log.Info(text)
		return
	}
	r.log.Info(text, "error", err.Error())
}

// succeeded ends a series of failures.
func (r *Renewer) succeeded() {
	r.said = ""
	r.resetRetry()
}

func (r *Renewer) resetRetry() {
	r.retry = wait.Backoff{Duration: firstRetry, Factor: 2, Jitter: 0.2, Steps: 30, Cap: maxRetry}
}
