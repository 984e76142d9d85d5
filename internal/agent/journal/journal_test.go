package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr/testr"
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

func TestJournal_Reopen_LoadsTheNewestRecords(t *testing.T) {
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
		t.Errorf("the second Load returns %v", got)
	}
}

func TestJournal_Sync_RecordsOutliveAKill(t *testing.T) {
	dir := t.TempDir()
	j := opened(t, dir)
	j.Put("events", "a", []byte("1"))
	if err := j.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	// A process that starts after this one was killed finds the file as it is now.
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

func TestOpen_DirectoryInUse_Fails(t *testing.T) {
	dir := t.TempDir()
	j := opened(t, dir)
	if _, err := Open(dir, testr.New(t)); !errors.Is(err, ErrInUse) {
		t.Errorf("the second Open returns %v, want %v", err, ErrInUse)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	opened(t, dir)
}

func TestJournal_NoDirectory_KeepsNothing(t *testing.T) {
	for _, j := range []*Journal{nil, {}} {
		j.Put("events", "a", []byte("1"))
		j.Delete("events", "a")
		if err := errors.Join(j.Sync(t.Context()), j.Err(), j.Close()); err != nil || j.Load("events") != nil || j.Bytes() != 0 {
			t.Errorf("it keeps something: %v", err)
		}
	}
}

func TestBytes_PutAndDelete_FollowTheRecords(t *testing.T) {
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

func quarantined(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, fileName+".*"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestQuarantine_Full_RemovesTheOldest(t *testing.T) {
	for _, tc := range []struct {
		name  string
		sizes []int64 // from the oldest on
		left  int
	}{
		{"small ones", []int64{1, 1, 1, 1, 1}, 3},
		{"a large old one", []int64{maxQuarantinedBytes, 1, 1}, 2},
		{"a large new one", []int64{1, 1, 100 * maxQuarantinedBytes}, 1},
	} {
		path := filepath.Join(t.TempDir(), fileName)
		for i, size := range tc.sizes {
			name := fmt.Sprintf("%s.%d", path, i)
			if err := errors.Join(os.WriteFile(name, nil, 0o600), os.Truncate(name, size)); err != nil {
				t.Fatal(err)
			}
		}
		trimQuarantine(path)
		left := quarantined(t, filepath.Dir(path))
		if len(left) != tc.left || left[len(left)-1] != fmt.Sprintf("%s.%d", path, len(tc.sizes)-1) {
			t.Errorf("%s: %v remain, want the newest %d", tc.name, left, tc.left)
		}
	}
}
