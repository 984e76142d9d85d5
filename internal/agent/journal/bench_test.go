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

// benchEvent writes the records of Event i as the agent does: offered, then delivered. The Event that is the working set
// older expires.
type benchEvent struct {
	j       *Journal
	working int
}

func eventKey(i int) string { return fmt.Sprintf("3f0a86c1-7d5e-4c1b-9a54-%012d", i) }

func (e benchEvent) offer(i int) {
	e.j.Put("events", eventKey(i), make([]byte, nameSize))
	e.j.Put("pending", eventKey(i), make([]byte, pendingSize))
}

func (e benchEvent) deliver(i int) {
	e.j.Put("receipts", eventKey(i), make([]byte, receiptSize))
	e.j.Delete("pending", eventKey(i))
	e.j.Delete("events", eventKey(i-e.working))
	e.j.Delete("receipts", eventKey(i-e.working))
}

// cpuTime returns the time that this process has used, in the kernel too.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
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

// BenchmarkSteadyState writes 100 Events a second, each delivered 3 ms after it was offered, over a working set of Events
// that are delivered already. An iteration is an Event and takes 10 ms: use -benchtime=1000x.
func BenchmarkSteadyState(b *testing.B) {
	for _, working := range []int{0, 10_000, 50_000} {
		b.Run(fmt.Sprintf("events=%d", working), func(b *testing.B) {
			dir := b.TempDir()
			j := mustOpen(b, dir)
			defer j.Close() //nolint:errcheck // the benchmark is over
			e := benchEvent{j, working}
			for i := range working {
				e.offer(i)
				e.deliver(i)
				if i%1000 == 0 {
					mustSync(b, j)
				}
			}
			mustSync(b, j)
			ticker := time.NewTicker(10 * time.Millisecond)
			defer ticker.Stop()
			runtime.GC()
			cpu, written := cpuTime(b), bytesWritten()
			b.ResetTimer()
			for i := range b.N {
				<-ticker.C
				e.offer(working + i)
				time.Sleep(3 * time.Millisecond)
				e.deliver(working + i)
			}
			mustSync(b, j)
			b.StopTimer()
			cpu, written = cpuTime(b)-cpu, bytesWritten()-written
			b.ReportMetric(float64(cpu.Microseconds())/float64(b.N), "cpu-µs/event")
			b.ReportMetric(float64(written)/float64(b.N), "written-B/event")
			info, err := os.Stat(filepath.Join(dir, fileName))
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(info.Size())/1e6, "file-MB")
		})
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
