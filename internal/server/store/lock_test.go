package store

import (
	"testing"

	"github.com/threeport/threeport-agent/internal/testing/databases"
)

func TestLock_OneReplicaAtATime(t *testing.T) {
	databases.ForEach(t, func(t *testing.T, address string) {
		t.Helper()
		one, other := open(t, Config{Address: address}), open(t, Config{Address: address})
		unlock, ok, err := one.tryLock(t.Context(), lockPruning)
		if err != nil || !ok {
			t.Fatalf("acquiring a free lock: %t, error %v", ok, err)
		}
		// A SQLite file has one process, which takes a lock only once.
		if _, ok, err := other.tryLock(t.Context(), lockPruning); err != nil || ok != (one.dialect == sqliteDialect) {
			t.Errorf("a lock held by another replica: %t, %v, want no error and %t", ok, err, one.dialect == sqliteDialect)
		}
		second, ok, err := other.tryLock(t.Context(), lockPruning+1)
		if err != nil || !ok {
			t.Fatalf("acquiring another lock: %t, error %v", ok, err)
		}
		if err := unlock(); err != nil {
			t.Error(err)
		}
		again, ok, err := other.tryLock(t.Context(), lockPruning)
		if err != nil || !ok {
			t.Fatalf("acquiring a released lock: %t, error %v", ok, err)
		}
		for _, unlock := range []func() error{second, again} {
			if err := unlock(); err != nil {
				t.Error(err)
			}
		}
	})
}
