package outbox

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func TestDroppedRanges_Add(t *testing.T) {
	d := newDroppedRanges()
	now := time.Now()
	add := func(uid types.UID, after time.Duration) droppedRange {
		now = now.Add(after)
		key, r := d.add(event(uid, "1"), "", now)
		if !d.has(key) {
			t.Errorf("%s: key %s is not known", uid, key)
		}
		return r
	}
	first := add("a", 0)
	second := add("b", droppedRangeEnds-1)
	if second.UID != first.UID || second.total() != 2 {
		t.Errorf("second Event: range %+v, want it in the first range", second)
	}
	third := add("c", droppedRangeEnds)
	if third.UID == first.UID || third.total() != 1 {
		t.Errorf("Event after a pause: range %+v, want another range", third)
	}
	if again := add("a", droppedRangeEnds); again.UID != first.UID || again.total() != 3 {
		t.Errorf("a range that begins with the same Event: %+v, want the first one", again)
	}
	if got := d.count(shop); got != 4 || d.total != 4 || d.count(other) != 0 {
		t.Errorf("%d dropped of the workload, %d in total, want 4", got, d.total)
	}
	if keys := d.forget(shop); len(keys) != 2 || d.count(shop) != 0 || d.total != 4 {
		t.Errorf("forgot %d ranges, want 2", len(keys))
	}
}

func TestDroppedRanges_Restore_ContinuesTheLatest(t *testing.T) {
	now := time.Now()
	before := newDroppedRanges()
	oldKey, old := before.add(event("a", "1"), "", now.Add(-time.Hour))
	key, latest := before.add(event("b", "1"), "", now)
	for _, reversed := range []bool{false, true} {
		d := newDroppedRanges()
		if reversed {
			d.restore(key, latest, now)
		}
		d.restore(oldKey, old, now)
		if !reversed {
			d.restore(key, latest, now)
		}
		if got, _ := d.add(event("c", "1"), "", now.Add(time.Second)); got != key {
			t.Errorf("reversed %t: the Event is in range %s, want the latest", reversed, got)
		}
	}
}
