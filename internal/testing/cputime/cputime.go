// Package cputime measures the processor time of a test. The load of other processes does not count.
package cputime

import (
	"syscall"
	"testing"
	"time"
)

// Used returns how much of the processors' time this process has used, in its own code and in the kernel.
func Used(tb testing.TB) time.Duration {
	tb.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
