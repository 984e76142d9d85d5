package process

import (
	"os"
	"testing"
)

func TestCPUTime_GrowsWithWork(t *testing.T) {
	before, err := CPUTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for sum, n := uint64(0), uint64(1); ; n++ { // a tick of the CPU time lasts 10 ms
		if sum += n * n; n%1_000_000 != 0 {
			continue
		}
		after, err := CPUTime(os.Getpid())
		if err != nil || after < before {
			t.Fatalf("the CPU time is %s after %s, error %v; want growth", after, before, err)
		}
		if after > before {
			return
		}
	}
}

func TestParentOf(t *testing.T) {
	if got, err := ParentOf(os.Getpid()); err != nil || got != os.Getppid() {
		t.Errorf("the parent is %d, error %v; want %d", got, err, os.Getppid())
	}
}
