package figures

import "testing"

func TestPercentile(t *testing.T) {
	var some []float64
	for n := 200; n > 0; n-- {
		some = append(some, float64(n))
	}
	for _, c := range []struct {
		reason  string
		values  []float64
		percent float64
		want    float64
	}{
		{reason: "without values", percent: 99},
		{reason: "the minimum", values: some, want: 1},
		{reason: "half of the values do not exceed the 100th", values: some, percent: 50, want: 100},
		{reason: "99 percent do not exceed the 198th", values: some, percent: 99, want: 198},
		{reason: "the maximum", values: some, percent: 100, want: 200},
		{reason: "the middle of an odd number", values: []float64{3, 1, 2}, percent: 50, want: 2},
	} {
		if got := Percentile(c.values, c.percent); got != c.want {
			t.Errorf("%s: percentile %v is %v, want %v", c.reason, c.percent, got, c.want)
		}
	}
}
