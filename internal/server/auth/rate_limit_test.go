package auth

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestMiddleware_RateLimits(t *testing.T) {
	s := defaultOptions()
	s.config.AgentRate = Rate{PerSecond: 0.4, Burst: 3}
	s.config.ViewerRate = Rate{PerSecond: 1, Burst: 1}
	s.config.AdminRate = Rate{PerSecond: 10, Burst: 22}
	w := start(t, s)
	_, first := w.token(t, RoleAgent)
	_, same := w.token(t, RoleAgent) // another token of the same cluster
	_, other := w.token(t, RoleAgent, func(n *NewToken) { n.ClusterUID = "another" })
	_, viewer := w.token(t, RoleViewer)
	_, admin := w.token(t, RoleAdmin)
	ask := func(secret string) reply { return w.do(t, w.plain, http.MethodGet, "/openapi.json", bearer(secret)) }
	for i, secret := range []string{first, same, first, other, other, other, viewer, admin, admin} {
		if got := ask(secret); got.code != http.StatusOK {
			t.Fatalf("request %d: %d %s, want %d", i, got.code, got.body, http.StatusOK)
		}
	}
	for _, tc := range []struct{ reason, secret, wait string }{
		{reason: "agent", secret: first, wait: "3"}, // 2.5 s
		{reason: "the cluster's other token", secret: same, wait: "3"},
		{reason: "another cluster", secret: other, wait: "3"},
		{reason: "viewer", secret: viewer, wait: "1"},
	} {
		got := ask(tc.secret)
		if got.code != http.StatusTooManyRequests || got.header.Get("Retry-After") != tc.wait ||
			got.header.Get("Content-Type") != "application/problem+json" || !strings.Contains(got.body, `"status":429`) {
			t.Errorf("%s: the answer is %d %v %s, want a problem with Retry-After", tc.reason, got.code, got.header, got.body)
		}
	}
	for range 20 {
		if got := ask(admin); got.code != http.StatusOK {
			t.Fatalf("administrator: the answer is %d, want %d", got.code, http.StatusOK)
		}
		if got := w.do(t, w.plain, http.MethodGet, "/healthz", bearer(first)); got.code != http.StatusOK {
			t.Fatalf("health: the answer is %d, want %d", got.code, http.StatusOK)
		}
	}
	if got := ask(admin); got.code != http.StatusTooManyRequests || got.header.Get("Retry-After") != "1" {
		t.Errorf("administrator beyond the burst: the answer is %d %v, want a problem with Retry-After", got.code, got.header)
	}
	w.clock.advance(2500 * time.Millisecond) // refused requests took no tokens
	if got := ask(first); got.code != http.StatusOK {
		t.Errorf("after Retry-After: %d, want %d", got.code, http.StatusOK)
	}
}

// Agents of v0 may share one certificate, so an agent must not use up the requests of the others.
func TestThrottle_AgentsOfV0_HaveTheirAddress(t *testing.T) {
	s := defaultOptions()
	s.config.AdminRate = Rate{PerSecond: 1, Burst: 1}
	w := start(t, s)
	v0 := Principal{Name: "workload-agent", Role: RoleAdmin, Credential: CredentialCertificate, roleByDefault: true}
	named := v0
	named.roleByDefault = false
	for _, tc := range []struct {
		reason, remote string
		p              Principal
		refused        bool
	}{
		{reason: "an agent", remote: "192.0.2.1:1", p: v0},
		{reason: "the same agent", remote: "192.0.2.1:2", p: v0, refused: true},
		{reason: "another agent", remote: "192.0.2.2:1", p: v0},
		{reason: "an administrator", remote: "192.0.2.1:1", p: named},
		{reason: "the administrator at another address", remote: "192.0.2.2:1", p: named, refused: true},
	} {
		if wait := w.throttle(tc.p, tc.remote, w.now()); (wait > 0) != tc.refused {
			t.Errorf("%s waits for %v; refused is wanted to be %t", tc.reason, wait, tc.refused)
		}
	}
}

func TestRateLimiters_AreBounded(t *testing.T) {
	l := newRateLimiters(Rate{PerSecond: 1, Burst: 1})
	now := time.Now()
	for i := range maxCallers + 100 {
		l.reserve(string(rune('a'+i%26))+strings.Repeat("x", i/26%50)+time.Duration(i).String(), now)
	}
	if got := l.byCaller.order.Len(); got != maxCallers || len(l.byCaller.byKey) != maxCallers {
		t.Errorf("%d callers, %d keys, want %d and %d", got, len(l.byCaller.byKey), maxCallers, maxCallers)
	}
}

func TestClientAddress(t *testing.T) {
	for _, tc := range []struct{ remote, want string }{
		{"192.0.2.1:1234", "192.0.2.1"},
		{"[::ffff:192.0.2.1]:1234", "192.0.2.1"},
		{"[2001:db8:1:2:3:4:5:6]:1234", "2001:db8:1:2::/64"},
		{"[2001:db8:1:2::9]:80", "2001:db8:1:2::/64"},
		{"[fe80::1%eth0]:80", "fe80::/64"},
		{"pipe", "pipe"},
	} {
		if got := ClientAddress(tc.remote); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.remote, got, tc.want)
		}
	}
}

func TestLRU(t *testing.T) {
	l := newLRU[string, int](2)
	l.put("a", 1)
	l.put("b", 2)
	l.get("a")
	l.put("c", 3)
	if _, ok := l.get("b"); ok {
		t.Error("the cache still has b, the least recently used entry")
	}
	l.put("a", 4)
	l.remove("nothing")
	if _, ok := l.get("c"); !ok {
		t.Error("an update of a evicted c")
	}
	if a, ok := l.get("a"); !ok || a != 4 {
		t.Errorf("a is %d, %v, want 4", a, ok)
	}
	l.removeIf(func(v int) bool { return v == 4 })
	if _, ok := l.get("a"); ok || l.order.Len() != 1 || len(l.byKey) != 1 {
		t.Error("after the removal of a the cache still has it")
	}
	l.remove("c")
	if l.order.Len() != 0 || len(l.byKey) != 0 {
		t.Error("after the removal of c the cache still has it")
	}
}
