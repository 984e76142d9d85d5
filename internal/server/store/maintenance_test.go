package store

import (
	"context"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

func TestMaintain_EachTick_PrunesAndAnalyzes(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		apply(t, s, "one", statusOf(w.workload, "Healthy", 1))
		setLastHeartbeat(t, s, "one", time.Hour)
		addEvents(t, s, w.workload, "e", 20)
		setLastHeartbeat(t, s, "one", time.Hour)

		c := DefaultMaintainConfig()
		c.Retention = keepTen
		c.PruneDelay = 3 * time.Minute // the AgentTimeout identifies its ticker
		ticks, end := maintain(t, s, c)
		ticks[c.AgentTimeout] <- time.Time{} // no cluster is silent before
		for _, every := range []time.Duration{c.SilenceInterval, c.SilenceInterval, c.GrowthInterval, c.GrowthInterval} {
			ticks[every] <- time.Time{}
		}
		ticks[c.PruneDelay] <- time.Time{}
		ticks[c.PruneInterval] <- time.Time{}
		if got, want := workloadRowOf(t, s, w.workload), "reported Healthy 1, shown Unknown 3, silent true, Reason: cause 1"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if n := count(t, s, "SELECT COUNT(*) FROM workload_events"); n != 10 {
			t.Errorf("found %d Events, want 10", n)
		}
		if s.dialect == sqliteDialect && count(t, s, "SELECT COUNT(*) FROM sqlite_stat1 WHERE tbl = 'workload_events'") == 0 {
			t.Error("maintenance wrote no table statistics")
		}
		end()
	})
}

// maintain runs Maintain with tickers that the test drives, by their intervals. Each loop has its own unbuffered ticker: a tick that is
// received means that the work of the previous one is done. end stops it.
func maintain(t *testing.T, s *Store, c MaintainConfig) (ticks map[time.Duration]chan time.Time, end func()) {
	t.Helper()
	ticks = map[time.Duration]chan time.Time{}
	for _, every := range []time.Duration{c.AgentTimeout, c.SilenceInterval, c.GrowthInterval, c.PruneDelay, c.PruneInterval} {
		ticks[every] = make(chan time.Time)
	}
	c.tick = func(every time.Duration) (<-chan time.Time, func()) { return ticks[every], func() {} }
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Maintain(ctx, c) }()
	return ticks, func() {
		t.Helper()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// During an outage of the database no agent can report, so none is silent right after it.
func TestMaintain_OutageOfDatabase_WaitsForAgents(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		apply(t, s, "one", statusOf(w.workload, "Healthy", 1))
		c := DefaultMaintainConfig()
		c.PruneDelay = 3 * time.Minute // the AgentTimeout identifies its ticker
		ticks, end := maintain(t, s, c)
		timeout, silence := ticks[c.AgentTimeout], ticks[c.SilenceInterval]
		timeout <- time.Time{}
		mustExec(t, s, "ALTER TABLE silences RENAME TO away")
		setLastHeartbeat(t, s, "one", time.Hour)
		silence <- time.Time{}
		timeout <- time.Time{} // only after the failure
		mustExec(t, s, "ALTER TABLE away RENAME TO silences")
		for range 2 {
			silence <- time.Time{}
		}
		if got, want := workloadRowOf(t, s, w.workload), "reported Healthy 1, shown Unknown 3, silent true, Reason: cause 1"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		end()
	})
}

// The interval of the check is longer than half of a short AgentTimeout.
func TestMaintain_AnyAgentTimeout_MarksSilentClusters(t *testing.T) {
	for _, timeout := range []time.Duration{minAgentTimeout, 2 * DefaultSilenceInterval, DefaultAgentTimeout} {
		synctest.Test(t, func(t *testing.T) {
			s := open(t, Config{Address: "sqlite:" + filepath.Join(t.TempDir(), "rows.db")})
			w := newWorld(t, s)
			apply(t, s, "one", statusOf(w.workload, "Healthy", 1))
			setLastHeartbeat(t, s, "one", time.Hour)
			c := DefaultMaintainConfig()
			c.AgentTimeout = timeout
			ctx, cancel := context.WithTimeout(t.Context(), timeout+3*c.SilenceInterval)
			defer cancel()
			if err := s.Maintain(ctx, c); err != nil {
				t.Error(err)
			}
			if got, want := workloadRowOf(t, s, w.workload), "reported Healthy 1, shown Unknown 3, silent true, Reason: cause 1"; got != want {
				t.Errorf("with an agent timeout of %v: got %s, want %s", timeout, got, want)
			}
		})
	}
}

// While all replicas are suspended no agent can report, so none is silent right after it.
func TestMaintain_ProcessSuspended_WaitsForAgents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Config{Address: "sqlite:" + filepath.Join(t.TempDir(), "rows.db")})
		w := newWorld(t, s)
		apply(t, s, "one", statusOf(w.workload, "Healthy", 1))
		setLastHeartbeat(t, s, "one", time.Hour)
		c := DefaultMaintainConfig()
		c.PruneDelay = 3 * time.Minute // the AgentTimeout identifies its ticker
		ticks, end := maintain(t, s, c)
		timeout, silence := ticks[c.AgentTimeout], ticks[c.SilenceInterval]
		timeout <- time.Time{}
		<-time.After(c.suspension() + 1)
		silence <- time.Time{}
		timeout <- time.Time{} // only after the suspension
		if got, want := workloadRowOf(t, s, w.workload), "reported Healthy 1, shown Healthy 5, silent false, Reason: cause 1"; got != want {
			t.Errorf("after the suspension: got %s, want %s", got, want)
		}
		for range 2 {
			silence <- time.Time{}
		}
		if got, want := workloadRowOf(t, s, w.workload), "reported Healthy 1, shown Unknown 3, silent true, Reason: cause 1"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		end()
	})
}

func TestMaintainConfig_Validate(t *testing.T) {
	if err := DefaultMaintainConfig().Validate(); err != nil {
		t.Error(err)
	}
	for _, corrupt := range []func(*MaintainConfig){
		func(c *MaintainConfig) { c.AgentTimeout = 0 },
		func(c *MaintainConfig) { c.SilenceInterval = 0 },
		func(c *MaintainConfig) { c.GrowthInterval = -1 },
		func(c *MaintainConfig) { c.PruneInterval = 0 },
		func(c *MaintainConfig) { c.PruneDelay = 0 },
		func(c *MaintainConfig) { c.Retention = Retention{} },
	} {
		c := DefaultMaintainConfig()
		corrupt(&c)
		if err := c.Validate(); err == nil {
			t.Errorf("config %+v returned no error", c)
		}
	}
}
