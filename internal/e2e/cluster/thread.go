package cluster

import (
	"os"
	"runtime"
)

// onOwnThread calls f on a new thread that ends with f, so that changes of the thread, such as entering namespaces, do not last.
func onOwnThread(f func()) {
	done := make(chan struct{})
	go ownThread(func() {
		defer close(done)
		f()
	})
	<-done
}

// ownThread calls f on a thread that ends with the calling goroutine. The first thread of the process is unsuitable: it
// never ends, and /proc/self shows its namespaces. It stays locked until f has run on another thread.
func ownThread(f func()) {
	runtime.LockOSThread() // a locked thread ends with its goroutine; only the first thread is unlocked
	if threadID() != os.Getpid() {
		f()
		return
	}
	defer runtime.UnlockOSThread()
	onOwnThread(f)
}
