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
	DefaultAgentTimeout  = time.Minute
	DefaultSilenceEvery  = 5 * time.Second
	DefaultGrownEvery    = 10 * time.Second
	DefaultPruneFirst    = time.Minute
	DefaultPruneEvery    = time.Hour
	shortestAgentTimeout = time.Second
)

// MaintainConfig says what [Store.Maintain] does, and how often.
type MaintainConfig struct {
	// AgentTimeout is how long an agent may say nothing before what it said is shown as Unknown.
	AgentTimeout time.Duration
	// SilenceEvery is how often that is looked for.
	SilenceEvery time.Duration
	Retention    Retention
	// GrownEvery is how often workloads are pruned that got many Events, and tables counted that have grown; PruneEvery is
	// how often everything is pruned.
	GrownEvery, PruneEvery time.Duration
	// PruneFirst is how long after the start everything is pruned first: a process may never live for PruneEvery, and who has
	// changed the Retention wants to see what comes of it.
	PruneFirst time.Duration
	// Log has failures, which are tried again the next time, and what was found.
	Log *slog.Logger

	// tick is time.NewTicker but in tests.
	tick func(every time.Duration) (ticks <-chan time.Time, stop func())
}

// DefaultMaintainConfig is a timeout of a minute and the default [Retention], with no log.
func DefaultMaintainConfig() MaintainConfig {
	return MaintainConfig{
		AgentTimeout: DefaultAgentTimeout,
		SilenceEvery: DefaultSilenceEvery,
		Retention:    DefaultRetention(),
		GrownEvery:   DefaultGrownEvery,
		PruneEvery:   DefaultPruneEvery,
		PruneFirst:   DefaultPruneFirst,
		Log:          slog.New(slog.DiscardHandler),
	}
}

// Validate names the first bad field and what it accepts.
func (c MaintainConfig) Validate() error {
	if c.AgentTimeout < shortestAgentTimeout {
		return fmt.Errorf("agent timeout %v: accepted is %v or more", c.AgentTimeout, shortestAgentTimeout)
	}
	for _, every := range []struct {
		name  string
		value time.Duration
	}{
		{"interval of looking for silent agents", c.SilenceEvery},
		{"interval of pruning what has grown", c.GrownEvery},
		{"interval of pruning", c.PruneEvery},
		{"time until the first pruning", c.PruneFirst},
	} {
		if every.value <= 0 {
			return fmt.Errorf("%s %v: accepted is more than 0", every.name, every.value)
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
		if c.once(ctx, c.AgentTimeout) {
			c.repeat(ctx, c.SilenceEvery, func() { s.silence(ctx, c) })
		}
	})
	running.Go(func() {
		c.repeat(ctx, c.GrownEvery, func() {
			if err := s.optimize(ctx); err != nil && ctx.Err() == nil {
				c.Log.WarnContext(ctx, "What the tables hold is counted again", "error", err)
			}
			c.pruned(ctx)(s.PruneGrown(ctx, c.Retention))
		})
	})
	running.Go(func() {
		prune := func() { c.pruned(ctx)(s.Prune(ctx, c.Retention)) }
		if c.once(ctx, c.PruneFirst) {
			prune()
			c.repeat(ctx, c.PruneEvery, prune)
		}
	})
	running.Wait()
	return nil
}

// once waits for one tick, and tells whether it came before the end of ctx.
func (c MaintainConfig) once(ctx context.Context, after time.Duration) bool {
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

func (s *Store) silence(ctx context.Context, c MaintainConfig) {
	found, err := s.MarkSilent(ctx, c.AgentTimeout)
	if err != nil && ctx.Err() == nil {
		c.Log.WarnContext(ctx, "Silent agents are looked for again", "error", err)
	}
	if found.Clusters > 0 {
		c.Log.InfoContext(ctx, "Agents are silent", "clusters", found.Clusters, "workloads", found.Workloads)
	}
}

// pruned logs what came of pruning.
func (c MaintainConfig) pruned(ctx context.Context) func(Pruned, error) {
	return func(p Pruned, err error) {
		if err != nil && ctx.Err() == nil {
			c.Log.WarnContext(ctx, "Pruning is tried again", "error", err)
		}
		if p != (Pruned{Elsewhere: p.Elsewhere}) {
			c.Log.InfoContext(ctx, "Pruned", "events", p.Events, "objects", p.Objects, "definitions", p.Definitions,
				"workloads", p.Workloads, "rows", p.Rows)
		}
	}
}
