package journal

import (
	"bytes"
	"fmt"
	"maps"
	"testing"

	"github.com/go-logr/logr/testr"
	bolt "go.etcd.io/bbolt"
)

// A transaction of many changes takes much memory: they are written in parts, what is put before what is removed.
func TestManyChangesAreWrittenInParts(t *testing.T) {
	const parts = 3
	dir := t.TempDir()
	d := &disk{dir: dir, log: testr.New(t)}
	if _, err := d.start(); err != nil {
		t.Fatal(err)
	}
	old, changes, want := map[id][]byte{}, map[id][]byte{}, map[string][]byte{}
	for i := range parts * maxPart {
		key := fmt.Sprint(i)
		if i%2 == 0 {
			old[id{"events", key}], changes[id{"events", key}] = []byte("old"), nil
			continue
		}
		want[key] = []byte("new")
		changes[id{"events", key}] = want[key]
	}
	if err := d.write(old); err != nil {
		t.Fatal(err)
	}
	before := lastCommit(t, d)
	if err := d.write(changes); err != nil {
		t.Fatal(err)
	}
	if got := lastCommit(t, d) - before; got != parts {
		t.Errorf("%d changes were written in %d transactions, want %d", len(changes), got, parts)
	}
	removes := false
	for _, at := range putsFirst(changes) {
		if removes && changes[at] != nil {
			t.Fatalf("%s is put after something was removed: a kill in between would lose it", at.key)
		}
		removes = changes[at] == nil
	}
	if err := d.close(); err != nil {
		t.Fatal(err)
	}
	if got := opened(t, dir).Load("events"); !maps.EqualFunc(got, want, bytes.Equal) {
		t.Errorf("the next journal finds %d records, want %d", len(got), len(want))
	}
}

// lastCommit numbers the transactions that wrote something.
func lastCommit(t *testing.T, d *disk) (n int) {
	t.Helper()
	err := d.file.db.View(func(tx *bolt.Tx) error { n = tx.ID(); return nil })
	if err != nil {
		t.Fatal(err)
	}
	return n
}
