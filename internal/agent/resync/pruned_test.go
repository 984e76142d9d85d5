package resync

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/server"
	"github.com/threeport/threeport-agent/internal/server/store"
)

// newPruningWorld is a world with the whole API, which has a retention and prunes when the test says so.
func newPruningWorld(t *testing.T, keep store.Retention) (w *world, prune func()) {
	t.Helper()
	config := server.DefaultConfig()
	config.BindAddress, config.AuthEnabled = "127.0.0.1:0", false
	config.Database = "sqlite:" + filepath.Join(t.TempDir(), "rows.db")
	config.Maintenance.Retention = keep
	never := config.Maintenance.PruneInterval // not before the test ends
	config.Maintenance.GrowthInterval, config.Maintenance.PruneDelay = never, never
	s, err := server.New(t.Context(), config, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	target, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.Transport = &http.Transport{DisableKeepAlives: true}
	return newWorldWith(t, proxy), func() {
		t.Helper()
		opened, err := store.Open(t.Context(), store.Config{Address: config.Database})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = opened.Close() }() // the rows were written
		if _, err := opened.Prune(t.Context(), keep); err != nil {
			t.Fatal(err)
		}
	}
}

// uids are those of the Events that have a row.
func (w *world) uids() []string {
	w.t.Helper()
	var all []string
	for _, row := range w.rows() {
		all = append(all, fmt.Sprint(row["RuntimeEventUID"]))
	}
	slices.Sort(all)
	return all
}

func TestResyncer_PrunedEvents_AreNotSentAgain(t *testing.T) {
	for reason, keep := range map[string]store.Retention{
		"too old":  {EventAge: 150 * time.Minute, EventCount: 100, TombstoneAge: time.Hour},
		"too many": {EventAge: 100 * time.Hour, EventCount: 3, TombstoneAge: time.Hour},
	} {
		t.Run(reason, func(t *testing.T) {
			w, prune := newPruningWorld(t, keep)
			var events []observe.Event
			for hours := range 5 {
				events = append(events, event(w.instance, fmt.Sprint(hours), "1", time.Now().Add(-time.Duration(hours)*time.Hour)))
			}
			w.cluster.edit(w.instance, func(i *observe.DesiredState) { i.Events = events })
			w.offer()
			w.syncNow()
			if got := w.deliver(); len(got) != 5 {
				t.Fatalf("sent %q", got)
			}
			prune()
			kept := []string{"0", "1", "2"}
			if got := w.uids(); !slices.Equal(got, kept) {
				t.Fatalf("kept were %q", got)
			}
			if repaired, got := w.audit(), w.deliver(); repaired != 0 || len(got) > 0 {
				t.Errorf("%v repairs, sent %q", repaired, got)
			}

			// An Event that somebody else removes is still reported as missing.
			w.call("DELETE", "workload-events/"+fmt.Sprint(w.call("GET", "workload-events?runtimeeventuid=1", "")[0]["ID"]), "")
			if repaired, got := w.audit(), w.deliver(); repaired != 1 || len(got) != 1 || !slices.Equal(w.uids(), kept) {
				t.Errorf("%v repairs, sent %q, has %q", repaired, got, w.uids())
			}
		})
	}
}
