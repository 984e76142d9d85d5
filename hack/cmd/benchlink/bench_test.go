//go:build linux

package main

import "testing"

func TestCheckSpeedup(t *testing.T) {
	for reason, c := range map[string]struct {
		sets []float64 // Events a second; one post after the other has a median of 10
		want string
	}{
		"exactly 20 times": {sets: []float64{200, 200, 200}},
		"faster":           {sets: []float64{900, 900, 900}},
		"once slower":      {sets: []float64{1, 300, 300}},
		"slower": {
			sets: []float64{199, 199, 199},
			want: "report sets are 19.9 times as fast as one post after the other: less than 20 times",
		},
		"slower but once, and not in order": {
			sets: []float64{100, 9000, 50},
			want: "report sets are 10.0 times as fast as one post after the other: less than 20 times",
		},
	} {
		t.Run(reason, func(t *testing.T) {
			_, err := checkSpeedup([]*sample{
				{method: methodSequential, local: true, rates: []float64{1, 1, 1}},
				{method: methodSets, local: true, rates: []float64{10_000, 10_000, 10_000}},
				{method: methodV0, rates: []float64{1, 1, 1}},
				{method: methodSets, rates: c.sets},
				{method: methodSequential, rates: []float64{10, 80, 9}},
			})
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("checkSpeedup returned %q, want %q", got, c.want)
			}
		})
	}
}
