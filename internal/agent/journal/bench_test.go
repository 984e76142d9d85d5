package journal

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
)

// The sizes of the values that an Event leaves in the journal.
const (
	pendingSize = 700 // the report, until it is delivered
	receiptSize = 300 // what the control plane has
	nameSize    = 60  // which Event it is
)

func eventKey(i int) string { return fmt.Sprintf("3f0a86c1-7d5e-4c1b-9a54-%012d", i) }

// offerEvent and deliverEvent change the records of an Event as the agent does. When it is delivered, an Event that is
// older by the size of the working set expires.
func offerEvent(put func(table, key string, value []byte), i int) {
	put("events", eventKey(i), make([]byte, nameSize))
	put("pending", eventKey(i), make([]byte, pendingSize))
}

func deliverEvent(put func(table, key string, value []byte), remove func(table, key string), i, working int) {
	put("receipts", eventKey(i), make([]byte, receiptSize))
	remove("pending", eventKey(i))
	remove("events", eventKey(i-working))
	remove("receipts", eventKey(i-working))
}

// cpuTime returns the CPU time that this process has used outside of the kernel, and altogether.
func cpuTime(b *testing.B) (user, all time.Duration) {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano()), time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// bytesWritten returns how many bytes this process has passed to write calls, or 0 where the system does not count them.
func bytesWritten() (n int64) {
	counts, _ := os.ReadFile("/proc/self/io")
	if at := bytes.Index(counts, []byte("wchar: ")); at >= 0 {
		_, _ = fmt.Sscanf(string(counts[at:]), "wchar: %d", &n)
	}
	return n
}

func mustOpen(b *testing.B, dir string) *Journal {
	b.Helper()
	j, err := Open(dir, logr.Discard())
	if err != nil {
		b.Fatal(err)
	}
	return j
}

func mustSync(b *testing.B, j *Journal) {
	b.Helper()
	if err := j.Sync(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkCommit makes one commit after the other, each of two Events, over a working set of Events that are delivered
// already. At 100 Events a second there are at most 50 such commits a second. The CPU time includes the system's.
func BenchmarkCommit(b *testing.B) {
	for _, working := range []int{0, 10_000, 50_000} {
		b.Run(fmt.Sprintf("events=%d", working), func(b *testing.B) { commitEvents(b, working) })
	}
}

func commitEvents(b *testing.B, working int) {
	b.Helper()
	d := newDisk(b.TempDir(), logr.Discard())
	if _, err := d.start(); err != nil {
		b.Fatal(err)
	}
	defer d.close() //nolint:errcheck // the benchmark is over
	batch := map[id][]byte{}
	put := func(table, key string, value []byte) { batch[id{table, key}] = value }
	remove := func(table, key string) { batch[id{table, key}] = nil }
	commit := func() {
		if err := d.write(batch, int64(working*(nameSize+receiptSize))); err != nil {
			b.Fatal(err)
		}
		clear(batch)
	}
	for i := range working {
		offerEvent(put, i)
		deliverEvent(put, remove, i, working)
		if i%1000 == 0 {
			commit()
		}
	}
	commit()
	runtime.GC()
	report := startCosts(b)
	b.ResetTimer()
	for i := range b.N {
		// One Event is offered in this commit and delivered in the next, one is both.
		at := working + 2*i
		deliverEvent(put, remove, at-1, working)
		offerEvent(put, at)
		deliverEvent(put, remove, at, working)
		offerEvent(put, at+1)
		commit()
	}
	b.StopTimer()
	report(d.path())
}

// BenchmarkSteadyState writes 100 Events a second, each delivered 3 ms after it was offered. An iteration is an Event and
// takes 10 ms: use -benchtime=1000x. "none" has no journal: it shows the CPU time of the benchmark itself.
func BenchmarkSteadyState(b *testing.B) {
	b.Run("none", func(b *testing.B) { steadyState(b, "", 0) })
	for _, working := range []int{0, 10_000, 50_000} {
		b.Run(fmt.Sprintf("events=%d", working), func(b *testing.B) { steadyState(b, b.TempDir(), working) })
	}
}

func steadyState(b *testing.B, dir string, working int) {
	b.Helper()
	j := mustOpen(b, dir)
	defer j.Close() //nolint:errcheck // the benchmark is over
	for i := range working {
		offerEvent(j.Put, i)
		deliverEvent(j.Put, j.Delete, i, working)
		if i%1000 == 0 {
			mustSync(b, j)
		}
	}
	mustSync(b, j)
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	runtime.GC()
	report := startCosts(b)
	b.ResetTimer()
	for i := range b.N {
		<-ticker.C
		offerEvent(j.Put, working+i)
		time.Sleep(3 * time.Millisecond)
		deliverEvent(j.Put, j.Delete, working+i, working)
	}
	mustSync(b, j)
	b.StopTimer()
	report(filepath.Join(dir, fileName))
}

// startCosts returns a function that reports the CPU time and the bytes written since, and the size of a file. Most of the CPU
// time in the kernel is that of waiting for the disk.
func startCosts(b *testing.B) (report func(path string)) {
	b.Helper()
	user, all := cpuTime(b)
	written := bytesWritten()
	return func(path string) {
		userNow, allNow := cpuTime(b)
		b.ReportMetric(float64((allNow-all).Microseconds())/float64(b.N), "cpu-µs/op")
		b.ReportMetric(float64((userNow-user).Microseconds())/float64(b.N), "user-µs/op")
		b.ReportMetric(float64(bytesWritten()-written)/float64(b.N), "written-B/op")
		if info, err := os.Stat(path); err == nil {
			b.ReportMetric(float64(info.Size())/1e6, "file-MB")
		}
	}
}

// BenchmarkOpen opens a file, and reports the memory that the journal holds then without what was loaded.
func BenchmarkOpen(b *testing.B) {
	for _, records := range []int{10_000, 100_000} {
		b.Run(fmt.Sprintf("records=%d", records), func(b *testing.B) {
			dir := b.TempDir()
			j := mustOpen(b, dir)
			for i := range records {
				j.Put("receipts", eventKey(i), make([]byte, receiptSize))
			}
			if err := j.Close(); err != nil {
				b.Fatal(err)
			}
			var before, after runtime.MemStats
			b.ResetTimer()
			for range b.N {
				b.StopTimer()
				runtime.GC()
				runtime.ReadMemStats(&before)
				b.StartTimer()
				j := mustOpen(b, dir)
				b.StopTimer()
				j.Load("receipts")
				runtime.GC()
				runtime.ReadMemStats(&after)
				b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(records), "held-B/record")
				if err := j.Close(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}
