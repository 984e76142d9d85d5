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

// ownThread is for a goroutine of its own. The process's first thread is not for f: it never ends, and what
// /proc/self shows is its. It is kept until another is found.
func ownThread(f func()) {
	runtime.LockOSThread() // for good, except the first: a thread ends with the goroutine that has it
	if threadID() != os.Getpid() {
		f()
		return
	}
	defer runtime.UnlockOSThread()
	onOwnThread(f)
}
