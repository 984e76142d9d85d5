package cluster

import (
	"os"
	"sync"
	"testing"
)

// A change of the first thread is permanent, and visible in /proc/self.
func TestOwnThread_IsNotFirstThread(t *testing.T) {
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			onOwnThread(func() {
				if threadID() == os.Getpid() {
					t.Error("the function runs on the first thread of the process")
				}
			})
		})
	}
	all.Wait()
}
