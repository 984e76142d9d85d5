package store

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// Default values of [MaintainConfig].
const (
	DefaultAgentTimeout    = time.Minute
	DefaultSilenceInterval = 5 * time.Second
	DefaultGrowthInterval  = 10 * time.Second
	DefaultPruneDelay      = time.Minute
	DefaultPruneInterval   = time.Hour
	minAgentTimeout        = time.Second
)

// MaintainConfig configures [Store.Maintain].
type MaintainConfig struct {
	// AgentTimeout is the time without a heartbeat after which the status of a cluster's workloads is shown as Unknown.
	AgentTimeout time.Duration
	// SilenceInterval is the interval of the check for silent clusters.
	SilenceInterval time.Duration
	Retention       Retention
	// GrowthInterval is the interval of updating table statistics and of pruning workloads with many new Events.
	// PruneInterval is the interval of pruning everything.
	GrowthInterval, PruneInterval time.Duration
	// PruneDelay is the time from the start to the first pruning of everything, since a process may not live for
	// PruneInterval.
	PruneDelay time.Duration
	// Log receives errors, which are retried at the next interval, and results.
	Log *slog.Logger

	// tick replaces time.NewTicker in tests.
	tick func(every time.Duration) (ticks <-chan time.Time, stop func())
}

// DefaultMaintainConfig has the default timeout, intervals and [Retention], and no log.
func DefaultMaintainConfig() MaintainConfig {
	return MaintainConfig{
		AgentTimeout:    DefaultAgentTimeout,
		SilenceInterval: DefaultSilenceInterval,
		Retention:       DefaultRetention(),
		GrowthInterval:  DefaultGrowthInterval,
		PruneInterval:   DefaultPruneInterval,
		PruneDelay:      DefaultPruneDelay,
		Log:             slog.New(slog.DiscardHandler),
	}
}

// Validate returns an error that names the first invalid field and its accepted values.
func (c MaintainConfig) Validate() error {
	if c.AgentTimeout < minAgentTimeout {
		return fmt.Errorf("agent timeout %v: must be at least %v", c.AgentTimeout, minAgentTimeout)
	}
	for _, every := range []struct {
		name  string
		value time.Duration
	}{
		{"silence interval", c.SilenceInterval},
		{"growth interval", c.GrowthInterval},
		{"prune interval", c.PruneInterval},
		{"prune delay", c.PruneDelay},
	} {
		if every.value <= 0 {
			return fmt.Errorf("%s %v: must be above 0", every.name, every.value)
		}
	}
	return c.Retention.Validate()
}

// Maintain marks silent clusters, prunes, and updates SQLite's table statistics until ctx ends. It returns when all of
// that has stopped. Each replica may run it.
//
// During the first AgentTimeout it marks no cluster as silent, so that agents can report after an outage of all
// replicas. It waits again after an outage of the database, and if this process was suspended.
func (s *Store) Maintain(ctx context.Context, c MaintainConfig) error {
	if err := c.Validate(); err != nil {
		return err
	}
	if c.tick == nil {
		c.tick = func(every time.Duration) (<-chan time.Time, func()) {
			ticker := time.NewTicker(every)
			return ticker.C, ticker.Stop
		}
	}
	var running sync.WaitGroup
	running.Go(func() {
		for c.waitOnce(ctx, c.AgentTimeout) {
			s.markSilentUntilOutage(ctx, c)
		}
	})
	running.Go(func() {
		c.repeat(ctx, c.GrowthInterval, func() bool {
			if err := s.optimize(ctx); err != nil && ctx.Err() == nil {
				c.Log.WarnContext(ctx, "Updating table statistics failed; retrying at the next interval", "error", err)
			}
			c.logPruned(ctx)(s.PruneGrown(ctx, c.Retention))
			return true
		})
	})
	running.Go(func() {
		prune := func() bool {
			c.logPruned(ctx)(s.Prune(ctx, c.Retention))
			return true
		}
		if c.waitOnce(ctx, c.PruneDelay) {
			prune()
			c.repeat(ctx, c.PruneInterval, prune)
		}
	})
	running.Wait()
	return nil
}

// waitOnce waits for one tick. It reports false if ctx ended first.
func (c MaintainConfig) waitOnce(ctx context.Context, after time.Duration) bool {
	ticks, stop := c.tick(after)
	defer stop()
	select {
	case <-ticks:
		return true
	case <-ctx.Done():
		return false
	}
}

// repeat calls do at each tick until it returns false or ctx ends.
func (c MaintainConfig) repeat(ctx context.Context, every time.Duration, do func() bool) {
	ticks, stop := c.tick(every)
	defer stop()
	for {
		select {
		case <-ticks:
			if !do() {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// loggedNames is the number of silent clusters whose names one log record has.
const loggedNames = 10

// markSilentUntilOutage marks silent clusters until it fails, ctx ends, or this process was suspended. Then the agents could not report either.
func (s *Store) markSilentUntilOutage(ctx context.Context, c MaintainConfig) {
	last := time.Now()
	c.repeat(ctx, c.SilenceInterval, func() bool {
		if paused := time.Since(last); paused > c.suspension() {
			c.Log.InfoContext(ctx, "This process was suspended; looking for silent agents after the timeout of agents", "for", paused.String())
			return false
		}
		again := s.markSilentAndLog(ctx, c)
		last = time.Now()
		return again
	})
}

// suspension is the time without a tick after which this process counts as suspended. A tick comes each SilenceInterval, so the time is
// longer than that for any AgentTimeout.
func (c MaintainConfig) suspension() time.Duration { return max(c.AgentTimeout/2, 2*c.SilenceInterval) }

// markSilentAndLog returns false after a failure.
func (s *Store) markSilentAndLog(ctx context.Context, c MaintainConfig) bool {
	found, err := s.MarkSilent(ctx, c.AgentTimeout)
	if err != nil && ctx.Err() == nil {
		c.Log.WarnContext(ctx, "Looking for silent agents failed; retrying after the timeout of agents", "error", err)
	}
	if n := len(found.Clusters); n > 0 {
		c.Log.InfoContext(ctx, "Agents are silent; their workloads are shown as Unknown",
			"clusters", n, "names", strings.Join(found.Clusters[:min(n, loggedNames)], ", "), "workloads", found.Workloads)
	}
	return err == nil
}

// logPruned returns a function that logs the result of pruning.
func (c MaintainConfig) logPruned(ctx context.Context) func(Pruned, error) {
	return func(p Pruned, err error) {
		if err != nil && ctx.Err() == nil {
			c.Log.WarnContext(ctx, "Pruning failed; retrying at the next interval", "error", err)
		}
		if p != (Pruned{Skipped: p.Skipped}) {
			c.Log.InfoContext(ctx, "Pruned", "events", p.Events, "objects", p.Objects, "definitions", p.Definitions,
				"workloads", p.Workloads, "rows", p.Rows, "auditRecords", p.AuditRecords, "silences", p.Silences)
		}
	}
}

// optimizeTables updates the statistics of tables without statistics, or whose size changed tenfold since:
// https://www.sqlite.org/pragma.html#pragma_optimize. The bits: run (0x2), on all tables (0x10000), with a sample of
// each index (0x10). With a million Events it blocks writers for 0.25 s (5.5 s without sampling), and for less than 1
// ms if there is nothing to do.
const optimizeTables = "PRAGMA optimize = 0x10012"

// optimize updates the statistics of SQLite's query planner; PostgreSQL's autovacuum does it by itself. Open
// connections keep the old statistics: see sqliteReaderLifetime.
func (s *Store) optimize(ctx context.Context) error {
	if s.dialect != sqliteDialect {
		return nil
	}
	return s.exec(ctx, optimizeTables)
}
