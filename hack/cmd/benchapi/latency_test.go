package main

import (
	"testing"
	"time"
)

func TestLatencies_Percentile(t *testing.T) {
	var none, some latencies
	for n := 200; n > 0; n-- {
		some.add(time.Duration(n) * time.Millisecond)
	}
	for _, c := range []struct {
		of   *latencies
		part float64
		want float64
	}{
		{of: &none, part: 99},
		{of: &some, want: 1},
		{of: &some, part: 50, want: 101},
		{of: &some, part: 99, want: 199},
		{of: &some, part: 100, want: 200},
	} {
		if got := c.of.percentile(c.part); got != c.want {
			t.Errorf("percentile %v is %v ms, want %v ms", c.part, got, c.want)
		}
	}
}
