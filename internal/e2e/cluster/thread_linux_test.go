package cluster

import (
	"os"
	"sync"
	"testing"
)

// What is done to the first thread stays, and shows in /proc/self.
func TestOwnThread_IsNotFirstThread(t *testing.T) {
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			onOwnThread(func() {
				if threadID() == os.Getpid() {
					t.Error("it is the first thread of the process")
				}
			})
		})
	}
	all.Wait()
}
