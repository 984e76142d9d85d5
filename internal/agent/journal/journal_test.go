package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr/testr"
	bolt "go.etcd.io/bbolt"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if where := os.Getenv(writerVariable); where != "" {
		fmt.Fprintln(os.Stderr, writeUntilKilled(where))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

func opened(t *testing.T, dir string) *Journal {
	t.Helper()
	j, err := Open(dir, testr.New(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func text(records map[string][]byte) string {
	var out []string
	for key, value := range records {
		out = append(out, key+"="+string(value))
	}
	if len(out) > 1 {
		return fmt.Sprint(len(out), " records")
	}
	return strings.Join(out, "")
}

func TestRecordsOutliveTheJournal(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "state")
	j := opened(t, dir)
	j.Put("events", "a", []byte("1"))
	j.Put("events", "b", []byte("2"))
	j.Put("events", "a", []byte("3"))
	j.Delete("events", "b")
	j.Put("other", "a", nil)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	again := opened(t, dir)
	if got := text(again.Load("events")); got != "a=3" {
		t.Errorf("events are %q, want a=3", got)
	}
	if got := text(again.Load("other")); got != "a=" {
		t.Errorf("other has %q, want a=", got)
	}
	if got := again.Load("events"); got != nil {
		t.Errorf("taken twice: %v", got)
	}
}

func TestSyncedRecordsOutliveAKill(t *testing.T) {
	dir := t.TempDir()
	j := opened(t, dir)
	j.Put("events", "a", []byte("1"))
	if err := j.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	// What is in the file now is what a process finds that is started after this one was killed.
	raw, err := os.ReadFile(filepath.Join(dir, fileName))
	if err != nil {
		t.Fatal(err)
	}
	copied := t.TempDir()
	if err := os.WriteFile(filepath.Join(copied, fileName), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := text(opened(t, copied).Load("events")); got != "a=1" {
		t.Errorf("events are %q, want a=1", got)
	}
}

func TestDirectoryIsTakenOnce(t *testing.T) {
	dir := t.TempDir()
	j := opened(t, dir)
	if _, err := Open(dir, testr.New(t)); !errors.Is(err, ErrInUse) {
		t.Errorf("opened twice: %v", err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	opened(t, dir)
}

func TestNoJournalKeepsNothing(t *testing.T) {
	for _, j := range []*Journal{nil, {}} {
		j.Put("events", "a", []byte("1"))
		j.Delete("events", "a")
		if err := errors.Join(j.Sync(t.Context()), j.Err(), j.Close()); err != nil || j.Load("events") != nil || j.Bytes() != 0 {
			t.Errorf("it does something: %v", err)
		}
	}
}

func TestBytesFollowWhatIsKept(t *testing.T) {
	j := opened(t, t.TempDir())
	j.Put("events", "a", make([]byte, 1000))
	j.Put("events", "b", make([]byte, 1000))
	two := j.Bytes()
	j.Put("events", "a", make([]byte, 10))
	j.Delete("events", "b")
	j.Delete("events", "c")
	if one := j.Bytes(); two < 2000 || one < 10 || one > 100 {
		t.Errorf("two records of 1000 bytes take %d, one of 10 takes %d", two, one)
	}
}

// edit makes changes to a file that a journal would not make.
func edit(t *testing.T, dir string, change func(tx *bolt.Tx) error) {
	t.Helper()
	db, err := bolt.Open(filepath.Join(dir, fileName), 0o600, nil)
	if err == nil {
		err = errors.Join(db.Update(change), db.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func putAside(t *testing.T, dir string) []string {
	t.Helper()
	aside, err := filepath.Glob(filepath.Join(dir, fileName+".*"))
	if err != nil {
		t.Fatal(err)
	}
	return aside
}

func TestUnknownFormatIsPutAside(t *testing.T) {
	for name, change := range map[string]func(meta *bolt.Bucket) error{
		"newer":  func(meta *bolt.Bucket) error { return meta.Put([]byte(formatKey), []byte("3")) },
		"none":   func(meta *bolt.Bucket) error { return meta.Delete([]byte(formatKey)) },
		"no sum": func(meta *bolt.Bucket) error { return meta.Delete([]byte(sumKey)) },
	} {
		dir := t.TempDir()
		j := opened(t, dir)
		j.Put("events", "a", []byte("1"))
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		edit(t, dir, func(tx *bolt.Tx) error { return change(tx.Bucket([]byte(metaTable))) })
		if got := opened(t, dir).Load("events"); got != nil {
			t.Errorf("%s: it was read all the same: %v", name, got)
		}
		if aside := putAside(t, dir); len(aside) != 1 {
			t.Errorf("%s: put aside were %v", name, aside)
		}
	}
}

func TestFirstFormatIsRead(t *testing.T) {
	dir := t.TempDir()
	edit(t, dir, func(tx *bolt.Tx) error {
		meta, err := tx.CreateBucket([]byte(metaTable))
		if err != nil {
			return err
		}
		events, err := tx.CreateBucket([]byte("events"))
		if err != nil {
			return err
		}
		return errors.Join(meta.Put([]byte(formatKey), []byte(format1)),
			events.Put([]byte("a"), seal([]byte("a"), []byte("1"))), events.Put([]byte("b"), seal([]byte("b"), []byte("2"))))
	})
	for range 2 { // the second time it is of this format
		j := opened(t, dir)
		if got := text(j.Load("events")); got != "2 records" {
			t.Errorf("events are %q", got)
		}
		j.Put("events", "b", []byte("3"))
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestMissingRecordsAreNoticed damages a file in ways that bbolt cannot notice.
func TestMissingRecordsAreNoticed(t *testing.T) {
	for name, change := range map[string]func(tx *bolt.Tx) error{
		"a record is gone": func(tx *bolt.Tx) error { return tx.Bucket([]byte("events")).Delete([]byte("a")) },
		"a table is gone":  func(tx *bolt.Tx) error { return tx.DeleteBucket([]byte("events")) },
		"a table has another name": func(tx *bolt.Tx) error {
			other, err := tx.CreateBucket([]byte("other"))
			if err != nil {
				return err
			}
			return errors.Join(tx.Bucket([]byte("events")).ForEach(other.Put), tx.DeleteBucket([]byte("events")))
		},
	} {
		dir := t.TempDir()
		j := opened(t, dir)
		j.Put("events", "a", []byte("1"))
		j.Put("events", "b", []byte("2"))
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		edit(t, dir, change)
		opened(t, dir)
		if aside := putAside(t, dir); len(aside) != 1 {
			t.Errorf("%s: put aside were %v", name, aside)
		}
	}
}

// TestEarlierCommitIsNotTaken breaks one of the pages that say where the commits are: bbolt would go on from the commit
// before the last.
func TestEarlierCommitIsNotTaken(t *testing.T) {
	for page := range int64(2) {
		dir := t.TempDir()
		j := opened(t, dir)
		for _, value := range []string{"1", "2", "3"} {
			j.Put("events", "a", []byte(value))
			if err := j.Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		file, err := os.OpenFile(filepath.Join(dir, fileName), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = file.WriteAt(make([]byte, 512), page*int64(os.Getpagesize()))
		if err := errors.Join(err, file.Close()); err != nil {
			t.Fatal(err)
		}
		if got := opened(t, dir).Load("events"); got != nil {
			t.Errorf("with a broken meta page %d it was read: %v", page, got)
		}
		if aside := putAside(t, dir); len(aside) != 1 {
			t.Errorf("with a broken meta page %d put aside were %v", page, aside)
		}
	}
}

func TestFewFilesAreKeptAside(t *testing.T) {
	for _, tc := range []struct {
		name  string
		sizes []int64 // from the oldest on
		left  int
	}{
		{"small ones", []int64{1, 1, 1, 1, 1}, 3},
		{"a large old one", []int64{keptAsideBytes, 1, 1}, 2},
		{"a large new one", []int64{1, 1, 100 * keptAsideBytes}, 1},
	} {
		path := filepath.Join(t.TempDir(), fileName)
		for i, size := range tc.sizes {
			name := fmt.Sprintf("%s.%d", path, i)
			if err := errors.Join(os.WriteFile(name, nil, 0o600), os.Truncate(name, size)); err != nil {
				t.Fatal(err)
			}
		}
		tidyAside(path)
		left := putAside(t, filepath.Dir(path))
		if len(left) != tc.left || left[len(left)-1] != fmt.Sprintf("%s.%d", path, len(tc.sizes)-1) {
			t.Errorf("%s: left are %v, want the newest %d", tc.name, left, tc.left)
		}
	}
}
