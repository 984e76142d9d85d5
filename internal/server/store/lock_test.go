package store

import (
	"testing"

	"github.com/threeport/threeport-agent/internal/testing/databases"
)

func TestOneReplicaAtATime(t *testing.T) {
	databases.ForEach(t, func(t *testing.T, address string) {
		t.Helper()
		one, other := open(t, Config{Address: address}), open(t, Config{Address: address})
		unlock, ok, err := one.tryLock(t.Context(), lockPruning)
		if err != nil || !ok {
			t.Fatalf("a free lock: %t, %v", ok, err)
		}
		// A SQLite file has one process, which takes a lock only once.
		if _, ok, err := other.tryLock(t.Context(), lockPruning); err != nil || ok != (one.dialect == sqliteDialect) {
			t.Errorf("a lock held by another replica: %t, %v", ok, err)
		}
		second, ok, err := other.tryLock(t.Context(), lockPruning+1)
		if err != nil || !ok {
			t.Fatalf("another lock: %t, %v", ok, err)
		}
		if err := unlock(); err != nil {
			t.Error(err)
		}
		again, ok, err := other.tryLock(t.Context(), lockPruning)
		if err != nil || !ok {
			t.Fatalf("a released lock: %t, %v", ok, err)
		}
		for _, unlock := range []func() error{second, again} {
			if err := unlock(); err != nil {
				t.Error(err)
			}
		}
	})
}
