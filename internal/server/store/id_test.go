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
