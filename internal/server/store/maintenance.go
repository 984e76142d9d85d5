package store

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// The defaults of [MaintainConfig].
const (
	DefaultAgentTimeout    = time.Minute
	DefaultSilenceInterval = 5 * time.Second
	DefaultGrowthInterval  = 10 * time.Second
	DefaultPruneDelay      = time.Minute
	DefaultPruneInterval   = time.Hour
	minAgentTimeout        = time.Second
)

// MaintainConfig says what [Store.Maintain] does, and how often.
type MaintainConfig struct {
	// AgentTimeout is how long an agent may say nothing before what it said is shown as Unknown.
	AgentTimeout time.Duration
	// SilenceEvery is how often that is looked for.
	SilenceInterval time.Duration
	Retention       Retention
	// GrownEvery is how often workloads are pruned that got many Events, and tables counted that have grown; PruneEvery is
	// how often everything is pruned.
	GrowthInterval, PruneInterval time.Duration
	// PruneFirst is how long after the start everything is pruned first: a process may never live for PruneEvery, and who has
	// changed the Retention wants to see what comes of it.
	PruneDelay time.Duration
	// Log has failures, which are tried again the next time, and what was found.
	Log *slog.Logger

	// tick is time.NewTicker but in tests.
	tick func(every time.Duration) (ticks <-chan time.Time, stop func())
}

// DefaultMaintainConfig is a timeout of a minute and the default [Retention], with no log.
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

// Validate names the first bad field and what it accepts.
func (c MaintainConfig) Validate() error {
	if c.AgentTimeout < minAgentTimeout {
		return fmt.Errorf("agent timeout %v: must be at least %v", c.AgentTimeout, minAgentTimeout)
	}
	for _, every := range []struct {
		name  string
		value time.Duration
	}{
		{"interval of looking for silent agents", c.SilenceInterval},
		{"interval of pruning what has grown", c.GrowthInterval},
		{"interval of pruning", c.PruneInterval},
		{"time until the first pruning", c.PruneDelay},
	} {
		if every.value <= 0 {
			return fmt.Errorf("%s %v: must be above 0", every.name, every.value)
		}
	}
	return c.Retention.Validate()
}

// Maintain shows clusters as silent, prunes, and has SQLite count what its tables hold, until ctx ends; it returns when all of
// that has ended. Each replica may run it.
//
// For the first timeout no cluster is found silent: after all replicas were down, the agents get the time to be heard.
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
		if c.waitOnce(ctx, c.AgentTimeout) {
			c.repeat(ctx, c.SilenceInterval, func() { s.markSilentAndLog(ctx, c) })
		}
	})
	running.Go(func() {
		c.repeat(ctx, c.GrowthInterval, func() {
			if err := s.optimize(ctx); err != nil && ctx.Err() == nil {
				c.Log.WarnContext(ctx, "What the tables hold is counted again", "error", err)
			}
			c.logPruned(ctx)(s.PruneGrown(ctx, c.Retention))
		})
	})
	running.Go(func() {
		prune := func() { c.logPruned(ctx)(s.Prune(ctx, c.Retention)) }
		if c.waitOnce(ctx, c.PruneDelay) {
			prune()
			c.repeat(ctx, c.PruneInterval, prune)
		}
	})
	running.Wait()
	return nil
}

// once waits for one tick, and tells whether it came before the end of ctx.
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

// repeat does something at each tick until ctx ends.
func (c MaintainConfig) repeat(ctx context.Context, every time.Duration, do func()) {
	ticks, stop := c.tick(every)
	defer stop()
	for {
		select {
		case <-ticks:
			do()
		case <-ctx.Done():
			return
		}
	}
}

func (s *Store) markSilentAndLog(ctx context.Context, c MaintainConfig) {
	found, err := s.MarkSilent(ctx, c.AgentTimeout)
	if err != nil && ctx.Err() == nil {
		c.Log.WarnContext(ctx, "Silent agents are looked for again", "error", err)
	}
	if found.Clusters > 0 {
		c.Log.InfoContext(ctx, "Agents are silent", "clusters", found.Clusters, "workloads", found.Workloads)
	}
}

// pruned logs what came of pruning.
func (c MaintainConfig) logPruned(ctx context.Context) func(Pruned, error) {
	return func(p Pruned, err error) {
		if err != nil && ctx.Err() == nil {
			c.Log.WarnContext(ctx, "Pruning is tried again", "error", err)
		}
		if p != (Pruned{Skipped: p.Skipped}) {
			c.Log.InfoContext(ctx, "Pruned", "events", p.Events, "objects", p.Objects, "definitions", p.Definitions,
				"workloads", p.Workloads, "rows", p.Rows)
		}
	}
}

// optimizeTables has SQLite count again what is in the tables that were never counted, or are ten times as large or as small
// as they were then: https://www.sqlite.org/pragma.html#pragma_optimize. The bits: do it (0x2), for tables that this
// connection has not read as well (0x10000), and of each index look at a part only (0x10). With a million Events that holds
// up other writers for 0.25 s, and all of them would for 5.5 s; it takes less than 1 ms if there is nothing to do.
const optimizeTables = "PRAGMA optimize = 0x10012"

// optimize lets SQLite choose plans by what the tables hold; else it guesses. PostgreSQL's autovacuum does so by itself.
// Connections that are open already go by what was counted when they were opened: see readerLifetime.
func (s *Store) optimize(ctx context.Context) error {
	if s.dialect != sqliteDialect {
		return nil
	}
	return s.exec(ctx, optimizeTables)
}
