package store

import (
	"testing"
	"time"
)

// BenchmarkPrune prunes a million Events of 250 workloads, with a limit of 4,000 each: first with nothing to do, then a
// tenth of them.
func BenchmarkPrune(b *testing.B) {
	benchmarkDatabases(b, func(b *testing.B, s *Store) {
		b.Helper()
		fill(b, s, 250, 1_000_000)
		keep := DefaultRetention()
		for b.Loop() {
			began := time.Now()
			if pruned, err := s.Prune(b.Context(), keep); err != nil || pruned != (Pruned{}) {
				b.Fatal(pruned, err)
			}
			b.ReportMetric(time.Since(began).Seconds(), "s/look")
			began, keep.EventCount = time.Now(), 3600
			pruned, err := s.Prune(b.Context(), keep)
			if err != nil || pruned.Events != 100_000 {
				b.Fatal(pruned, err)
			}
			b.ReportMetric(float64(pruned.Events)/time.Since(began).Seconds(), "events/s")
		}
	})
}
