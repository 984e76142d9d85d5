package main

import (
	"testing"
	"time"
)

func TestPercentile(t *testing.T) {
	var none, some latencies
	for n := 200; n > 0; n-- {
		some.add(time.Duration(n) * time.Millisecond)
	}
	for _, c := range []struct {
		of   *latencies
		part float64
		want float64
	}{
		{&none, 99, 0},
		{&some, 0, 1},
		{&some, 50, 101},
		{&some, 99, 199},
		{&some, 100, 200},
	} {
		if got := c.of.percentile(c.part); got != c.want {
			t.Errorf("percentile %v is %v ms, should be %v ms", c.part, got, c.want)
		}
	}
}
