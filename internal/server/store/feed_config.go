package store

import (
	"log/slog"
	"time"
)

// The defaults of [FeedConfig].
const (
	DefaultFeedPoll   = 5 * time.Second
	DefaultTombstones = 7 * 24 * time.Hour
)

// FeedConfig says how the feed of changes works. A field that is zero has its default.
type FeedConfig struct {
	// Poll is how often it looks for changes that nobody told of.
	Poll time.Duration
	// Tombstones is for how long deleted workloads are kept at least: who comes back later cannot be told what was deleted.
	Tombstones time.Duration
	// Log is told of what goes wrong and is tried again; nothing is logged without one.
	Log *slog.Logger
}

func (c FeedConfig) withDefaults() FeedConfig {
	if c.Poll <= 0 {
		c.Poll = DefaultFeedPoll
	}
	if c.Tombstones == 0 {
		c.Tombstones = DefaultTombstones
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}
