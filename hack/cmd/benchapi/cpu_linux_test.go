package main

import (
	"os"
	"testing"
)

func TestCPUTime_GrowsWithWork(t *testing.T) {
	before, err := cpuTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for sum, n := uint64(0), uint64(1); ; n++ { // as long as it takes, at 10 ms a tick
		if sum += n * n; n%1_000_000 != 0 {
			continue
		}
		after, err := cpuTime(os.Getpid())
		if err != nil || after < before {
			t.Fatalf("%s after %s, %v", after, before, err)
		}
		if after > before {
			return
		}
	}
}

func TestParent(t *testing.T) {
	if got, err := parent(os.Getpid()); err != nil || got != os.Getppid() {
		t.Errorf("the parent is %d, %v; should be %d", got, err, os.Getppid())
	}
}
