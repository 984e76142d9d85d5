// Package figures reads and computes the figures of measurements.
package figures

import "slices"

// Percentile returns the smallest value that p percent of the values do not exceed.
func Percentile(values []float64, p float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, int(float64(len(sorted))*p/100))]
}
