package store

import "testing"

func TestIDs_Increase(t *testing.T) {
	g := newIDs(0)
	seen := make(map[int64]bool)
	var newest int64
	for range 10_000 {
		id := g.next()
		if seen[id] || id <= newest {
			t.Fatalf("ID %d follows ID %d, want a larger one", id, newest)
		}
		if id < 1<<53 || int64(float64(id)) == id {
			t.Fatalf("ID %d is exact as a float64, want a larger one", id)
		}
		seen[id], newest = true, id
	}
}

// An agent must not be able to compute the IDs of rows that other clusters have not claimed yet.
func TestIDs_LowBits_AreRandom(t *testing.T) {
	const made = 10_000
	g := newIDs(0)
	low := make(map[int64]int)
	for range made {
		low[g.next()&(1<<randomBits-1)]++
	}
	// Of 16,384 values, 10,000 random ones have about 7,500 different ones.
	if len(low) < made/2 {
		t.Errorf("%d IDs have %d different low bits, want at least %d", made, len(low), made/2)
	}
}

func BenchmarkIDs(b *testing.B) {
	g := newIDs(0)
	for b.Loop() {
		g.next()
	}
}
