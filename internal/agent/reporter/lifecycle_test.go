package reporter

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

// Run ends when it is cancelled while it starts, syncs, fails or is idle.
func TestReporter_Run_EndsAtAnyTime(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for n := range 20 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			// The informers use HTTP/1.1 to the proxy. The HTTP/2 connections are those of the proxy to the API server.
			ignore := []goleak.Option{goleak.IgnoreCurrent(), goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*clientConnReadLoop).run")}
			t.Run("run", func(t *testing.T) {
				w := newIdleWorld(t, shared.reader, quick())
				if random.IntN(3) == 0 {
					faults := rand.New(rand.NewPCG(seed, uint64(n))) // called under the proxy's mutex
					w.proxy.failWith(func(*http.Request) int {
						if faults.IntN(2) == 0 {
							return []int{403, 404, 405, 429, 500, 503}[faults.IntN(6)]
						}
						return 0
					})
				}
				w.create(configMap("conf"))
				w.run()
				w.track("wl", "v1 ConfigMap conf", "apps/v1 Deployment web", "example.org/v1 Kind none")
				wait := time.NewTimer(time.Duration(random.IntN(60)) * time.Millisecond)
				defer wait.Stop()
				select {
				case <-wait.C:
				case <-w.ctx.Done():
				}
				w.stop()
				if got := w.gauge(); got != 0 {
					t.Errorf("the metric says %v informers after the end, want 0", got)
				}
			})
			if err := leaks(ignore...); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestReporter_Ready(t *testing.T) {
	w := newIdleWorld(t, shared.reader, quick())
	if w.reporter.Ready() {
		t.Error("ready before it runs")
	}
	hold := make(chan struct{})
	w.proxy.holdWhile(hold, "/configmaps")
	w.create(configMap("conf"))
	wl := w.track("wl", "v1 ConfigMap conf")
	w.run()
	w.eventually("the list of ConfigMaps is requested", func() string {
		if len(w.proxy.sent("/configmaps")) == 0 {
			return "it is not"
		}
		return ""
	})
	if w.reporter.Ready() {
		t.Error("ready before the list of a kind")
	}
	w.expectState(wl, 0, target.Pending, "")
	if status := w.sink.status(wl.Instance); status != "" {
		t.Errorf("status %s is offered before all kinds are listed", status)
	}
	close(hold)
	w.expectState(wl, 0, target.Present, "")
	w.eventually("the reporter is ready", func() string {
		if !w.reporter.Ready() {
			return "it is not"
		}
		return ""
	})
	w.expectStatus(wl, "Healthy")
}

// A kind whose list takes long delays no other, and stops at once.
func TestInformers_SlowKind_DelaysNoOther(t *testing.T) {
	w := newWorld(t, shared.reader, quick())
	hold := make(chan struct{})
	defer close(hold)
	w.proxy.holdWhile(hold, "/apis/"+w.namespace+".example.com")
	slow := w.track("slow", "NS.example.com/v1 Sloth s")
	w.create(configMap("conf"))
	wl := w.track("wl", "v1 ConfigMap conf")
	w.expectState(wl, 0, target.Present, "")
	w.targets.Forget(slow.Name)
	other := w.track("other", "apps/v1 Deployment web")
	w.expectState(other, 0, target.Absent, "")
}

// leftovers complains about state of workloads that is still held.
func (w *world) leftovers() string {
	sizes := w.reporter.sizes()
	left := map[string]int{}
	for _, what := range []string{
		"kinds", "informers", "tombstones", "names with attributed objects", "transitions",
		"assessed workloads", "damped workloads", "last statuses", "last trees",
	} {
		n, ok := sizes[what]
		if !ok {
			w.Fatalf("there is no size of %s", what)
		}
		left[what] = n
	}
	for what, n := range left {
		if n > 0 {
			return fmt.Sprintf("%d %s", n, what)
		}
	}
	return ""
}

func TestConfig_Validate(t *testing.T) {
	for _, c := range []struct {
		reason, want string
		change       func(*Config)
	}{
		{"the defaults", "", func(*Config) {}},
		{"no workers", "watch workers is 0", func(c *Config) { c.Workers = 0 }},
		{"no wait", "watch retry is 0s", func(c *Config) { c.RetryMin = 0 }},
		{"waits in the wrong order", "the larger last", func(c *Config) { c.RetryMax = c.RetryMin / 2 }},
		{"no delay", "status delay is 0s", func(c *Config) { c.StatusDelay = 0 }},
		{"no interval", "status interval is 0s", func(c *Config) { c.StatusInterval = 0 }},
		{"no time without a success", "time until a kind is unavailable is 0s", func(c *Config) { c.UnavailableAfter = 0 }},
		{"no tolerance", "cache lag tolerance 0s", func(c *Config) { c.CacheLagTolerance = 0 }},
		{"no lookup workers", "lookup workers is 0", func(c *Config) { c.LookupWorkers = 0 }},
	} {
		t.Run(c.reason, func(t *testing.T) {
			config := DefaultConfig()
			c.change(&config)
			got := ""
			if err := config.Validate(); err != nil {
				got = err.Error()
			}
			if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("Validate says %q, want %q", got, c.want)
			}
		})
	}
}
