// Package figures reads and computes the figures of measurements.
package figures

import (
	"math"
	"slices"
)

// Percentile returns the smallest value for which p percent of all values are not larger; 0 without values.
func Percentile(values []float64, p float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(0, int(math.Ceil(float64(len(sorted))*p/100))-1)]
}
