package credential

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/threeport/threeport-agent/internal/threeport"
)

const life = 90 * 24 * time.Hour

// control is a control plane with one token, and the file and the Secret of the agent.
type control struct {
	mu      sync.Mutex
	created time.Time // of the current token
	version int       // the current token is token-VERSION
	file    string    // the token in the file
	used    string    // instead of it; empty for none
	secret  string

	renewable          bool
	read, renew, write error
	breakWrites        bool // the check of a write succeeds, and the write fails
	lost               bool // the answer of the next renewal is lost
	reads, renewals    int
	writes             int
}

func newControl() *control {
	return &control{created: time.Now(), file: "token-0", secret: "token-0", renewable: true}
}

func (c *control) current() string { return fmt.Sprint("token-", c.version) }

func (c *control) state(token string) threeport.OwnToken {
	state := threeport.OwnToken{Name: "east", Renewable: c.renewable, ExpiresAt: new(c.created.Add(life))}
	if !c.renewable {
		return state
	}
	state.RenewalDueAt = new(c.created.Add(life * 2 / 3))
	if token != c.current() {
		state.ExpiresAt, state.RenewalDueAt = new(c.created.Add(24*time.Hour)), new(c.created.Add(5*time.Minute))
	}
	return state
}

func (c *control) OwnToken(context.Context) (threeport.OwnToken, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reads++
	if c.read != nil {
		return threeport.OwnToken{}, c.read
	}
	return c.state(c.sent()), nil
}

func (c *control) RenewToken(context.Context) (threeport.RenewedToken, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.renewals++
	if c.renew != nil {
		return threeport.RenewedToken{}, c.renew
	}
	if time.Now().Before(*c.state(c.sent()).RenewalDueAt) {
		return threeport.RenewedToken{}, &threeport.Error{Op: "renew", StatusCode: http.StatusConflict}
	}
	c.version++
	c.created = time.Now()
	if c.lost {
		c.lost = false
		return threeport.RenewedToken{}, errors.New("connection reset")
	}
	return threeport.RenewedToken{OwnToken: c.state(c.current()), Token: c.current()}, nil
}

func (c *control) sent() string {
	if c.used != "" {
		return c.used
	}
	return c.file
}

func (c *control) Token() (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sent(), nil
}

func (c *control) UseToken(token string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.used = token
	return nil
}

func (c *control) CheckReplace(_ context.Context, old string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.write == nil && c.secret != old {
		return errReplaced
	}
	return c.write
}

func (c *control) Replace(ctx context.Context, old, renewed string) error {
	if err := c.CheckReplace(ctx, old); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.breakWrites {
		return errors.New("connection refused")
	}
	c.secret = renewed
	c.writes++
	return nil
}

// set changes the control plane.
func (c *control) set(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}

// run is a renewer that runs until the test ends.
type run struct {
	*control
	t       *testing.T
	metrics *Metrics
	mu      sync.Mutex
	log     []string
}

func start(t *testing.T, c *control) *run {
	t.Helper()
	r := &run{control: c, t: t, metrics: NewMetrics(prometheus.NewRegistry())}
	log := funcr.New(func(_, args string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.log = append(r.log, args)
	}, funcr.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { New(c, c, r.metrics, log).Run(ctx) })
	t.Cleanup(func() {
		cancel()
		done.Wait()
	})
	synctest.Wait()
	return r
}

// after waits.
func (r *run) after(d time.Duration) {
	r.t.Helper()
	time.Sleep(d)
	synctest.Wait()
}

// expect compares the token that is sent, that of the Secret, and the number of failures.
func (r *run) expect(reason, sent, secret string, failed bool) {
	r.t.Helper()
	r.control.mu.Lock()
	defer r.control.mu.Unlock()
	if r.sent() != sent || r.secret != secret {
		r.t.Errorf("%s: %s is sent, and the Secret has %s; want %s and %s", reason, r.sent(), r.secret, sent, secret)
	}
	if failures := testutil.ToFloat64(r.metrics.failures); (failures > 0) != failed {
		r.t.Errorf("%s: %v failures are counted, want some: %t", reason, failures, failed)
	}
}

// counts are the requests so far.
func (r *run) counts() (reads, renewals, writes int) {
	r.control.mu.Lock()
	defer r.control.mu.Unlock()
	return r.reads, r.renewals, r.writes
}

// lines are the log lines so far.
func (r *run) lines() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.log)
}

// expiresWith expects the metric to have the end of the current token.
func (r *run) expiresWith(reason string) {
	r.t.Helper()
	r.control.mu.Lock()
	defer r.control.mu.Unlock()
	if got, want := testutil.ToFloat64(r.metrics.expiry), float64(r.created.Add(life).Unix()); got != want {
		r.t.Errorf("%s expires at %v, want %v", reason, got, want)
	}
}

// logged returns how many log lines have a text.
func (r *run) logged(text string) (count int) {
	for _, line := range r.lines() {
		if strings.Contains(line, text) {
			count++
		}
	}
	return count
}

// The random delay of a renewal is a tenth of the last third at most.
const (
	due     = life * 2 / 3
	latest  = due + life/30
	renewed = "token-1"
)

func TestRenewer_Due_RenewsAndStores(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, newControl())
		r.expiresWith("the first token")
		r.after(due - time.Second)
		r.expect("before the renewal is due", "token-0", "token-0", false)
		r.after(life/30 + 2*time.Second)
		r.expect("after it is due", renewed, renewed, false)
		r.expiresWith("the new token")
		r.after(latest + time.Second)
		r.expect("the second renewal", "token-2", "token-2", false)
		if _, renewals, writes := r.counts(); renewals != 2 || writes != 2 {
			t.Errorf("%d renewals and %d writes, want 2", renewals, writes)
		}
	})
}

func TestRenewer_LostAnswer_RenewsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newControl()
		c.lost = true
		r := start(t, c)
		r.after(latest + 3*time.Hour) // five minutes, and a random part of the rest of the day
		r.expect("renewed again", "token-2", "token-2", true)
		if _, renewals, _ := r.counts(); renewals != 2 {
			t.Errorf("%d renewals, want 2", renewals)
		}
	})
}

func TestRenewer_SecretNotWritable_DoesNotRenewBeforeItIsUrgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newControl()
		c.write = errors.New("forbidden")
		r := start(t, c)
		r.after(latest + 24*time.Hour)
		r.expect("not writable", "token-0", "token-0", true)
		_, renewals, _ := r.counts()
		if got := r.logged("its Secret cannot be written"); got != 1 || renewals != 0 {
			t.Errorf("logged %d times, %d renewals; want 1 and 0: %v", got, renewals, r.lines())
		}
		r.after(life/3*3/4 - life/30 - 24*time.Hour + maxRetry*2)
		r.expect("urgent", renewed, "token-0", true)
		if got := r.logged("kept in memory"); got != 1 {
			t.Errorf("logged %d times that the token is in memory, want once: %v", got, r.lines())
		}
		r.set(func() { c.write = nil })
		r.after(2 * maxRetry)
		r.expect("writable again", renewed, renewed, true)
	})
}

// The write fails after the renewal. The agent sends the new token, and writes it later.
func TestRenewer_WriteFails_KeepsTokenInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newControl()
		c.breakWrites = true
		r := start(t, c)
		r.after(latest + time.Second)
		r.expect("the write fails", renewed, "token-0", true)
		r.after(latest) // the token in memory is renewed as well
		r.expect("the second write fails", "token-2", "token-0", true)
		r.set(func() { c.breakWrites = false })
		r.after(2 * maxRetry)
		r.expect("the write succeeds", "token-2", "token-2", true)
		if got := r.logged("The new token is in its Secret"); got != 1 {
			t.Errorf("logged %d times that the token is stored, want once: %v", got, r.lines())
		}
	})
}

// A person replaces the token in the Secret while the renewed one could not be written.
func TestRenewer_WriteFails_TokenOfPersonStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newControl()
		c.breakWrites = true
		r := start(t, c)
		r.after(latest + time.Second)
		r.set(func() { c.breakWrites, c.secret = false, "by hand" })
		r.after(2 * maxRetry)
		r.expect("the token of a person", renewed, "by hand", true)
		if got := r.logged("has a token of somebody else"); got != 1 {
			t.Errorf("logged %d times that the token is another one, want once: %v", got, r.lines())
		}
	})
}

// A person replaced the token in the Secret, and the file does not have it yet.
func TestRenewer_SecretHasOtherToken_IsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newControl()
		r := start(t, c)
		r.after(due - time.Second)
		r.set(func() { c.secret = "by hand" })
		r.after(life / 20)
		r.expect("another token in the Secret", "token-0", "by hand", true)
		if _, renewals, _ := r.counts(); renewals != 0 {
			t.Errorf("%d renewals, want none", renewals)
		}
	})
}

func TestRenewer_PersonReplacesToken_ReadsItSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newControl()
		r := start(t, c)
		r.after(10*time.Minute + fileInterval)
		if reads, _, _ := r.counts(); reads != 1 {
			t.Errorf("the state of the same token was read %d times, want once", reads)
		}
		r.set(func() {
			c.version, c.file, c.secret, c.created = 7, "token-7", "token-7", time.Now().Add(5*time.Minute-due)
		})
		r.after(fileInterval)
		r.expiresWith("the token of the person")
		r.after(latest - due + 6*time.Minute)
		r.expect("the token of the person is due", "token-8", "token-8", false)
	})
}

func TestRenewer_NoRenewal_LogsOnce(t *testing.T) {
	for _, tc := range []struct {
		reason string
		change func(*control)
		text   string
		known  bool // the end of the token
	}{
		{
			"an earlier control plane", func(c *control) { c.read = fmt.Errorf("%w: 404", threeport.ErrNoRenewal) },
			"the control plane does not support it", false,
		},
		{"a token that is not renewable", func(c *control) { c.renewable = false }, "it is not renewable", true},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newControl()
			tc.change(c)
			r := start(t, c)
			r.after(life)
			r.expect(tc.reason, "token-0", "token-0", false)
			_, renewals, _ := r.counts()
			if got := r.logged(tc.text); got != 1 || len(r.lines()) != 1 || renewals != 0 {
				t.Errorf("%s: logged %d times of %v, %d renewals; want 1 and 0", tc.reason, got, r.lines(), renewals)
			}
			if got := testutil.CollectAndCount(r.metrics.expiry); (got == 1) != tc.known {
				t.Errorf("%s: %d series of the end of the token, want it known: %t", tc.reason, got, tc.known)
			}
			r.set(func() { c.read, c.renewable, c.created = nil, true, time.Now() }) // the control plane is upgraded
			r.after(checkInterval + latest + time.Second)
			r.expect(tc.reason+", later", renewed, renewed, false)
		})
	}
}

func TestRenewer_ControlPlaneAway_RetriesWithBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newControl()
		c.read = errors.New("connection refused")
		r := start(t, c)
		r.after(24 * time.Hour)
		r.expect("no renewal is due", "token-0", "token-0", false)
		if reads, _, _ := r.counts(); reads < 24*60/10 || reads > 24*60/5+20 {
			t.Errorf("the state was read %d times in a day, want about every five minutes", reads)
		}
		if got := r.logged("cannot be read"); got != 1 {
			t.Errorf("logged %d times, want once: %v", got, r.lines())
		}
		r.set(func() { c.read = nil })
		r.after(checkInterval)
		r.set(func() { c.renew = errors.New("connection refused") })
		r.after(latest)
		r.expect("the renewal fails", "token-0", "token-0", true)
		r.set(func() { c.renew = nil })
		r.after(2 * maxRetry)
		r.expect("away no more", renewed, renewed, true)
	})
}

func TestRenewer_Refused_IsFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newControl()
		c.read = &threeport.Error{Op: "read", StatusCode: http.StatusUnauthorized}
		r := start(t, c)
		r.after(time.Minute)
		r.expect("revoked", "token-0", "token-0", true)
	})
}

// The clock of the agent is ahead.
func TestRenewer_NotDue_IsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newControl()
		c.renew = &threeport.Error{Op: "renew", StatusCode: http.StatusConflict}
		r := start(t, c)
		r.after(latest + time.Hour)
		r.expect("not due", "token-0", "token-0", false)
		if _, renewals, _ := r.counts(); renewals < 10 || renewals > 1000 {
			t.Errorf("%d attempts, want some", renewals)
		}
		r.set(func() { c.renew = nil })
		r.after(2 * maxRetry)
		r.expect("due", renewed, renewed, false)
	})
}
