package main

import (
	"testing"
	"time"
)

func TestParseTraces(t *testing.T) {
	const output = `{"level":"info","msg":"gc of objects, 3 ms cpu, "}
gc 1 @0.011s 4%: 0.017+0.36+0.019 ms clock, 0.5+1/2/100+0.25 ms cpu, 4->4->2 MB, 4 MB goal, 0 MB stacks, 0 MB globals, 2 P
scvg: 0 MB released
gc 11 @3.011s 4%: 0.017+0.36+0.019 ms clock, 0.5+1/2/100+0.25 ms cpu, 4->4->{"level":"info"}
2 MB, 4 MB goal, 0 MB stacks, 0 MB globals, 2 P
gc 12 @3.411s 2%: 0.1+20+0.01 ms clock, 0.2+0/0.3/5+0.02 ms cpu, 120->140->88 MB, 150 MB goal, 0 MB stacks, 0 MB globals, 2 P (forced)
`
	got, err := parseTraces(output)
	if err != nil || len(got) != 2 {
		t.Fatalf("there are %d collections, error %v, want 2", len(got), err)
	}
	if want := (collection{3750 * time.Microsecond, 2}); got[0] != want {
		t.Errorf("the first is %v, want %v", got[0], want)
	}
	if want := (collection{520 * time.Microsecond, 88}); got[1] != want {
		t.Errorf("the second is %v, want %v", got[1], want)
	}
}
