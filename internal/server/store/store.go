package store

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	_ "modernc.org/sqlite" // registers the driver
)

// Store is the store of the control-plane API. It is safe for concurrent use.
type Store struct {
	*database

	ids         *ids
	statements  map[*Resource]*resourceStatements
	feed        *feed
	eventGrowth eventGrowth
	applying    clusterQueue
	// lastLogCluster is the last cluster that had a turn of ExportLogs; nil before the first.
	lastLogCluster atomic.Pointer[string]
	// largeChunks limits the chunks that take much memory, by its capacity.
	largeChunks chan struct{}
	// overQuota counts the reports that this process rejected because of a cluster's quota.
	overQuota prometheus.Counter
}

// Open opens a database and migrates its schema. It creates a missing file, but not its directory. The caller must
// close the store.
func Open(ctx context.Context, config Config) (*Store, error) {
	db, err := openDatabase(ctx, config.withDefaults())
	if err != nil {
		return nil, err
	}
	s := &Store{database: db, feed: newFeed(db), overQuota: newOverQuotaCounter(), largeChunks: make(chan struct{}, maxLargeChunks)}
	db.committed = s.feed.signal
	if err := s.prepareResources(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open database %q: %w", db.config.name(), err), db.Close())
	}
	return s, nil
}
