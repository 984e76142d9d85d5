package attacks

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/testing/databases"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// An agent changes a row many times at once while its report sets lock the row. Each of these writes took a connection: 9 of 10.
func TestWrites_AgentChangesLockedRow_OthersHaveConnections(t *testing.T) {
	const (
		objects    = 10_000
		writers    = 12
		samples    = 50
		maxWaiting = 3 // two writes through v0, and the set
	)
	databases.OnPostgres(t, func(t *testing.T, address string) {
		t.Helper()
		a := newAPI(t, address)
		a.start()
		db, err := sql.Open("pgx", address)
		a.must(err)
		defer db.Close() //nolint:errcheck // it only reads
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		var attack sync.WaitGroup
		path := fmt.Sprintf("/v0/workload-instances/%d", a.own.instance)
		for range writers {
			attack.Go(func() {
				for ctx.Err() == nil {
					_, _, _ = a.request(ctx, a.agent, http.MethodPatch, path, strings.NewReader(`{"Status":"Down"}`))
				}
			})
		}
		most := 0
		attack.Go(func() {
			defer cancel()
			most = mostWaiting(ctx, t, db, samples)
		})
		for round := 0; ctx.Err() == nil; round++ {
			_ = a.trySendCompressed(ctx, a.agent, a.largeTree(objects, fmt.Sprint("cause ", round)))
		}
		attack.Wait()
		t.Logf("at most %d connections waited for locks", most)
		if most > maxWaiting {
			t.Errorf("%d connections waited for locks, want at most %d", most, maxWaiting)
		}
		a.expectAlive()
	})
}

// mostWaiting returns how many connections of the API waited for locks at most, in a number of samples in which any did.
func mostWaiting(ctx context.Context, t *testing.T, db *sql.DB, samples int) (most int) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for seen := 0; seen < samples; <-tick.C {
		var waiting int
		err := db.QueryRowContext(ctx, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND
			application_name = 'threeport-controlplane' AND wait_event_type = 'Lock'`).Scan(&waiting)
		if err != nil {
			t.Errorf("count the connections that wait, after %d of %d samples: %v", seen, samples, err)
			return most
		}
		if waiting > 0 {
			seen++
		}
		most = max(most, waiting)
	}
	return most
}

// largeTree is a report set of the attacking agent with a tree of objects that have one cause.
func (a *api) largeTree(objects int, cause string) threeport.ReportSet {
	tree := &threeport.TreeReport{Objects: make([]threeport.TreeObject, objects)}
	for i := range tree.Objects {
		name := fmt.Sprint("pod-", i)
		tree.Objects[i] = threeport.TreeObject{
			Object: threeport.ObjectRef{Version: "v1", Kind: "Pod", Namespace: "n", Name: name, UID: name}, Health: "Down", Cause: cause,
		}
	}
	now := time.Now()
	return threeport.ReportSet{
		Agent: threeport.Agent{ClusterUID: ownCluster, Time: now},
		Reports: []threeport.Report{{
			Instance: threeport.Instance{Type: threeport.TypeWorkloadInstance, ID: threeport.ID(a.own.instance)},
			Version:  threeport.ID(now.UnixMicro()), Tree: tree,
		}},
	}
}
