package store

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/testing/databases"
	"github.com/threeport/threeport-agent/internal/testing/postgres"
	"github.com/threeport/threeport-agent/internal/threeport"
)

func TestPostgres_Failures(t *testing.T) {
	databases.OnPrivatePostgres(t, func(t *testing.T, server *postgres.Server) {
		t.Helper()
		s := open(t, Config{Address: server.Address("postgres")})
		t.Run("a committed write survives a kill", func(t *testing.T) { committedWriteSurvivesKill(t, s, server) })
		t.Run("calls to a hanging server time out", func(t *testing.T) { hangingServerTimesOut(t, s, server) })
		for reason, impatient := range map[string]func(*Config){
			"before a connection is used": func(c *Config) { c.ProbeTimeout, c.ReadTimeout = 20*time.Millisecond, time.Hour },
			"while it is used":            func(c *Config) { c.ProbeTimeout, c.ReadTimeout = time.Hour, 100*time.Millisecond },
		} {
			t.Run("a read without a deadline times out, "+reason, func(t *testing.T) { readTimesOut(t, server, impatient) })
		}
	})
}

// readTimesOut: reads end by their own timeout, with and without a request.
func readTimesOut(t *testing.T, server *postgres.Server, impatient func(*Config)) {
	t.Helper()
	config := Config{Address: server.Address("postgres") + "&connect_timeout=1"}
	impatient(&config)
	s := open(t, config)
	o := create(t, s, "WorkloadInstance", "web")
	instance := threeport.Instance{Type: threeport.TypeWorkloadInstance, ID: threeport.ID(o.ID)}
	server.Freeze()
	for name, read := range map[string]func() error{
		"a row": func() error {
			_, err := s.Get(t.Context(), resource(t, "WorkloadInstance"), o.ID)
			return err
		},
		"a list": func() error {
			_, err := s.List(t.Context(), resource(t, "WorkloadInstance"), Selection{Page: 1, Size: 1})
			return err
		},
		"a token": func() error {
			_, err := s.TokenByHash(t.Context(), []byte("x"))
			return err
		},
		"changes": func() error {
			_, err := s.feed.changedSince(t.Context(), 0, 0)
			return err
		},
		"event retention": func() error {
			_, err := s.EventsKeptAfter(t.Context(), instance, DefaultRetention())
			return err
		},
	} {
		if err := read(); !IsTransient(err) {
			t.Errorf("%s: the error is %v, want a transient one", name, err)
		}
	}
	server.Thaw()
	s.config.ProbeTimeout, s.config.ReadTimeout = time.Hour, time.Hour
	if _, err := s.Get(t.Context(), resource(t, "WorkloadInstance"), o.ID); err != nil {
		t.Errorf("a read after the failure: %v", err)
	}
}

// committedWriteSurvivesKill: all acknowledged writes survive the kill of a server under load, and the store continues
// after it.
func committedWriteSurvivesKill(t *testing.T, s *Store, server *postgres.Server) {
	t.Helper()
	r := resource(t, "WorkloadInstance")
	for round := range 2 {
		written := writeUntilKilled(t, s, server)
		if err := server.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, o := range written {
			got, err := s.Get(t.Context(), r, o.ID)
			if err != nil || got.Values[instanceName] != o.Values[instanceName] {
				t.Fatalf("round %d: one of %d acknowledged rows is %+v, error %v", round, len(written), got, err)
			}
			if _, changed := workloadText(t, s, o); changed == 0 {
				t.Errorf("round %d: the workloads row has no changedat", round)
			}
		}
	}
	var instances, workloads int
	readRow(t, s, "SELECT (SELECT COUNT(*) FROM workload_instances), (SELECT COUNT(*) FROM workloads)", nil, &instances, &workloads)
	if instances != workloads {
		t.Errorf("there are %d instances and %d workloads rows, want equal numbers", instances, workloads)
	}
}

// writeUntilKilled creates instances concurrently until the server, which is killed after some of them, no longer
// answers. It returns the acknowledged rows.
func writeUntilKilled(t *testing.T, s *Store, server *postgres.Server) (written []Row) {
	t.Helper()
	const enough = 100
	var mu sync.Mutex
	var group sync.WaitGroup
	var killed atomic.Bool
	half := make(chan struct{})
	for range 8 {
		group.Go(func() {
			for {
				o, created, err := s.Create(t.Context(), resource(t, "WorkloadInstance"), []any{"web", "Healthy", nil})
				if err != nil {
					if !killed.Load() || !IsTransient(err) {
						t.Errorf("server killed: %t; a write returned %v, want only transient errors after the kill", killed.Load(), err)
					}
					return
				}
				mu.Lock()
				if created {
					written = append(written, o)
				}
				if len(written) == enough {
					close(half)
				}
				mu.Unlock()
			}
		})
	}
	<-half
	killed.Store(true)
	server.Kill()
	group.Wait()
	return written
}

// hangingServerTimesOut: a write ends with WriteTimeout, and a read with its request.
func hangingServerTimesOut(t *testing.T, s *Store, server *postgres.Server) {
	t.Helper()
	o := create(t, s, "WorkloadInstance", "web")
	s.config.WriteTimeout = 200 * time.Millisecond
	server.Freeze()
	if _, _, err := s.Create(t.Context(), resource(t, "WorkloadInstance"), []any{"other", nil, nil}); !errors.Is(err, context.DeadlineExceeded) || !IsTransient(err) {
		t.Errorf("a write: %v, want %v", err, context.DeadlineExceeded)
	}
	brief, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := s.Get(brief, resource(t, "WorkloadInstance"), o.ID); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a read: %v, want %v", err, context.DeadlineExceeded)
	}
	server.Thaw()
	s.config.WriteTimeout = DefaultWriteTimeout
	if _, err := s.Get(t.Context(), resource(t, "WorkloadInstance"), o.ID); err != nil {
		t.Errorf("a read after the failure: %v", err)
	}
	create(t, s, "WorkloadInstance", "after")
}
