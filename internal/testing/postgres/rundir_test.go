package postgres

import (
	"os"
	"sync"
	"testing"
)

// A process that removes the directories of killed ones must not take one that another process has just created.
func TestNewDir_Concurrent_KeepsAll(t *testing.T) {
	parent := t.TempDir()
	var started sync.WaitGroup
	for range 8 {
		started.Go(func() {
			for range 100 {
				dir, lock, err := newDir(parent)
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := os.Stat(lock.Name()); err != nil {
					t.Errorf("the directory was removed: %v", err)
				}
				_ = os.RemoveAll(dir)
				_ = lock.Close()
			}
		})
	}
	started.Wait()
}
