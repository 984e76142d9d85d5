package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
)

// history is a file after several commits.
type history struct {
	killed []byte   // the file after the last commit
	closed []byte   // the same file once it was closed
	ends   []int    // its size after each commit, from none on
	states []tables // its records after each commit
}

func (h history) last() tables { return h.states[len(h.states)-1] }

// newHistory makes commits of so many changes each: new records, other values, deletions.
func newHistory(tb testing.TB, commits, changes int) (h history) {
	tb.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	d := newDisk(tb.TempDir(), logr.Discard())
	if _, err := d.start(); err != nil {
		tb.Fatal(err)
	}
	now := tables{}
	for range commits {
		h.ends, h.states = append(h.ends, int(d.file.end)), append(h.states, copied(now))
		batch := map[id][]byte{}
		for i := range changes {
			at := id{[]string{"events", "objects", "pending"}[random.IntN(3)], fmt.Sprintf("uid-%03d", random.IntN(2*changes))}
			if batch[at] = nil; i == 0 || random.IntN(4) > 0 {
				batch[at] = []byte(strings.Repeat("x", random.IntN(200)))
				if random.IntN(50) == 0 {
					batch[at] = make([]byte, 3*os.Getpagesize())
				}
			}
		}
		if err := d.write(batch, 0); err != nil {
			tb.Fatal(err)
		}
		for at, value := range batch {
			if now[at.table] == nil {
				now[at.table] = map[string][]byte{}
			}
			if now[at.table][at.key] = value; value == nil {
				delete(now[at.table], at.key)
			}
		}
	}
	h.ends, h.states = append(h.ends, int(d.file.end)), append(h.states, copied(now))
	h.killed = readFile(tb, d.path())
	if err := d.close(); err != nil {
		tb.Fatal(err)
	}
	h.closed = readFile(tb, d.path())
	return h
}

func readFile(tb testing.TB, path string) []byte {
	tb.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return raw
}

// copied is a copy without empty tables.
func copied(t tables) tables {
	out := tables{}
	for table, records := range t {
		if len(records) > 0 {
			out[table] = maps.Clone(records)
		}
	}
	return out
}

// has reports whether these were the records after some commit.
func (h history) has(state tables) bool {
	for _, s := range h.states {
		if reflect.DeepEqual(s, state) {
			return true
		}
	}
	return false
}

// readLog returns the records of a file with a content.
func readLog(raw []byte) (tables, error) {
	loaded := tables{}
	err := newLogFile("", nil).load(bytes.NewReader(raw), int64(len(raw)), loaded, 0)
	return copied(loaded), err
}

// wantRecords checks that a file with a content has records, or is damaged if want is nil.
func wantRecords(t *testing.T, reason string, raw []byte, want tables) {
	t.Helper()
	got, err := readLog(raw)
	if want == nil {
		if !errors.Is(err, errDamaged) {
			t.Errorf("%s: got %d tables and %v, want that the file is damaged", reason, len(got), err)
		}
		return
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %v, %v, want %v", reason, got, err, want)
	}
}

func TestLog_ClosedFileTruncated_IsDamaged(t *testing.T) {
	h := newHistory(t, 4, 5)
	for size := range h.closed {
		wantRecords(t, fmt.Sprintf("cut off at %d of %d", size, len(h.closed)), h.closed[:size], nil)
	}
	wantRecords(t, "whole", h.closed, h.last())
}

func TestLog_ClosedFileBitFlipped_IsDamaged(t *testing.T) {
	h := newHistory(t, 4, 5)
	for at := range h.closed {
		for bit := range 8 {
			raw := bytes.Clone(h.closed)
			raw[at] ^= 1 << bit
			wantRecords(t, fmt.Sprintf("bit %d of byte %d flipped", bit, at), raw, nil)
		}
	}
}

// A killed process leaves a header that is one commit behind. Damage in the last commit then looks like a torn commit.
func TestLog_KilledFileDamaged_LosesTheLastCommitOnly(t *testing.T) {
	h := newHistory(t, 4, 5)
	lastCommit := h.ends[len(h.ends)-2]
	before := h.states[len(h.states)-2]
	for at := range h.killed {
		var want tables
		if at >= lastCommit {
			want = before
		}
		wantRecords(t, fmt.Sprintf("cut off at %d of %d", at, len(h.killed)), h.killed[:at], want)
		raw := bytes.Clone(h.killed)
		raw[at] ^= 1 << (at % 8)
		wantRecords(t, fmt.Sprintf("byte %d flipped", at), raw, want)
	}
	wantRecords(t, "whole", h.killed, h.last())
	wantRecords(t, "with the beginning of another commit", append(bytes.Clone(h.killed), h.killed[lastCommit:]...), h.last())
	wantRecords(t, "with a commit that is zero", append(bytes.Clone(h.killed), make([]byte, 5000)...), h.last())
}

// TestLog_FramesMoved_IsDamaged has frames that are whole, and not where they were written.
func TestLog_FramesMoved_IsDamaged(t *testing.T) {
	h := newHistory(t, 4, 5)
	frame := func(i int) []byte { return h.closed[h.ends[i]:h.ends[i+1]] }
	for reason, frames := range map[string][][]byte{
		"one is missing":  {frame(0), frame(2), frame(3)},
		"one is repeated": {frame(0), frame(1), frame(1), frame(2), frame(3)},
		"two are swapped": {frame(0), frame(2), frame(1), frame(3)},
	} {
		wantRecords(t, reason, append(bytes.Clone(h.closed[:headerSize]), bytes.Join(frames, nil)...), nil)
	}
}

func TestLog_UnknownFormat_IsDamaged(t *testing.T) {
	h := newHistory(t, 2, 3)
	raw := bytes.Clone(h.closed)
	header := raw[:headerSize-4]
	binary.BigEndian.PutUint32(header[len(magic):], formatLog+1)
	binary.BigEndian.PutUint32(raw[headerSize-4:], crc32.Checksum(header, castagnoli))
	_, err := readLog(raw)
	if !errors.Is(err, errDamaged) || !strings.Contains(err.Error(), "does not know format 4") {
		t.Errorf("got %v, want that the format is not known", err)
	}
}

// A commit of several frames would be large in memory as a whole.
func TestLog_LargeCommit_PutsAreInTheFirstFrames(t *testing.T) {
	const records = 4000
	d := newDisk(t.TempDir(), testr.New(t))
	if _, err := d.start(); err != nil {
		t.Fatal(err)
	}
	old, changes, want := map[id][]byte{}, map[id][]byte{}, map[string][]byte{}
	for i := range records {
		key := fmt.Sprint(i)
		if i%2 == 0 {
			old[id{"events", key}], changes[id{"events", key}] = []byte("old"), nil
			continue
		}
		want[key] = make([]byte, 1000)
		changes[id{"events", key}] = want[key]
	}
	if err := errors.Join(d.write(old, 0), d.write(changes, tables{"events": want}.size())); err != nil {
		t.Fatal(err)
	}
	if size := cap(d.file.frame); size > 2*maxFrame {
		t.Errorf("a commit takes %d bytes of memory, want about %d", size, maxFrame)
	}
	deletions := false
	_, err := replay(d.file.file, d.file.end, func(r record) error {
		if deletions && r.value != nil {
			return fmt.Errorf("%s is put after a deletion: a crash in between would lose it", r.key)
		}
		deletions = r.value == nil
		return nil
	})
	if err := errors.Join(err, d.close()); err != nil {
		t.Fatal(err)
	}
	if got := opened(t, d.dir).Load("events"); !maps.EqualFunc(got, want, bytes.Equal) {
		t.Errorf("the next journal finds %d records, want %d", len(got), len(want))
	}
}

// compacting returns a disk that compacts a file soon, with a file of which most is garbage.
func compacting(t *testing.T, dir string) (d *disk, want tables) {
	t.Helper()
	d = newDisk(dir, testr.New(t))
	if _, err := d.start(); err != nil {
		t.Fatal(err)
	}
	want = tables{"events": {}, "objects": {"o": []byte("1")}}
	if err := d.write(map[id][]byte{{"objects", "o"}: []byte("1"), {"objects", "p"}: []byte("2")}, want.size()); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		batch := map[id][]byte{{"objects", "p"}: nil}
		for key := range 10 {
			value := []byte(strings.Repeat("x", 100+i))
			batch[id{"events", fmt.Sprint(key)}], want["events"][fmt.Sprint(key)] = value, value
		}
		if err := d.write(batch, want.size()); err != nil {
			t.Fatal(err)
		}
	}
	d.minGarbage = 1000
	return d, want
}

func TestCompact_MostlyGarbage_KeepsTheNewestRecords(t *testing.T) {
	d, want := compacting(t, t.TempDir())
	before := d.file.end
	for i, value := range []string{"1", "2"} { // the second commit goes into the new file
		want["objects"]["new"] = []byte(value)
		if err := d.write(map[id][]byte{{"objects", "new"}: []byte(value)}, want.size()); err != nil {
			t.Fatal(err)
		}
		if d.file.end > before/5 {
			t.Errorf("after commit %d the file has %d bytes, it had %d", i, d.file.end, before)
		}
	}
	live := want.encodedSize()
	if garbage := d.file.end - int64(headerSize) - live; live < 1000 || live > 3000 || garbage < 0 || garbage > 100 {
		t.Errorf("the file has %d bytes of records and %d of garbage", live, garbage)
	}
	if err := d.close(); err != nil {
		t.Fatal(err)
	}
	wantRecords(t, "after the compaction", readFile(t, d.path()), want)
	if got := content(t, d.dir); got != "-rw------- lock, -rw------- "+fileName {
		t.Errorf("the directory has %s", got)
	}
}

// TestCompact_KilledInBetween_KeepsTheRecords opens the files of a process that was killed before the new file replaced
// the earlier one.
func TestCompact_KilledInBetween_KeepsTheRecords(t *testing.T) {
	d, want := compacting(t, t.TempDir())
	whole := readFile(t, d.path())
	next, err := d.file.compact()
	if err != nil {
		t.Fatal(err)
	}
	replaced := readFile(t, d.path())
	if err := errors.Join(next.close(), d.file.file.Close(), d.lock.release()); err != nil {
		t.Fatal(err)
	}
	wantRecords(t, "replaced", replaced, want)
	for size := 0; size <= len(replaced); size += 50 {
		dir := t.TempDir()
		for name, raw := range map[string][]byte{fileName: whole, unfinishedName: replaced[:size]} {
			if err := os.WriteFile(filepath.Join(dir, name), raw, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		again := started(t, dir, want["events"])
		if err := again.close(); err != nil {
			t.Fatal(err)
		}
		if got := content(t, dir); got != "-rw------- lock, -rw------- "+fileName {
			t.Errorf("after a compaction that was killed at byte %d, the directory has %s", size, got)
		}
	}
}

func TestCompact_FileDamaged_IsQuarantined(t *testing.T) {
	d, want := compacting(t, t.TempDir())
	if _, err := d.file.file.WriteAt([]byte("damage"), 200); err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{"1", "2"} {
		if err := d.write(map[id][]byte{{"objects", "new"}: []byte(value)}, want.size()); err != nil {
			t.Fatal(err)
		}
	}
	if files := quarantined(t, d.dir); len(files) != 1 {
		t.Errorf("quarantined are %v, want the damaged file", files)
	}
	if err := d.close(); err != nil {
		t.Fatal(err)
	}
	wantRecords(t, "after the damage", readFile(t, d.path()), tables{"objects": {"new": []byte("2")}})
}

// encodedSize returns how many bytes the records take in a file.
func (t tables) encodedSize() (n int64) {
	for table, records := range t {
		for key, value := range records {
			n += int64(len(appendRecord(nil, table, key, value)))
		}
	}
	return n
}

// size returns how many bytes the keys and values take.
func (t tables) size() (n int64) {
	for _, records := range t {
		for key, value := range records {
			n += int64(len(key) + len(value))
		}
	}
	return n
}
