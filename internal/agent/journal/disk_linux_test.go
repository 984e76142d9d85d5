package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/testr"
)

// diskVariable is set in the environment of the process that smallDisk starts.
const diskVariable = "JOURNAL_TEST_DISK"

// smallDisk returns a file system in memory. To mount it, smallDisk runs the test again in another process, with its own
// namespaces, and returns "" in this one.
func smallDisk(t *testing.T, options string) (dir string) {
	t.Helper()
	if os.Getenv(diskVariable) != "" {
		dir := t.TempDir()
		if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
				t.Error(err)
			}
		})
		return dir
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), diskVariable+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("run the test in its own namespaces, which the system must allow: %v\n%s", err, out)
	}
	if !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Fatalf("the test did not run:\n%s", out)
	}
	return ""
}

// fill takes all free space. The function that it returns gives the space back.
func fill(t *testing.T, dir string) (release func()) {
	t.Helper()
	name := filepath.Join(dir, "filler")
	filler, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer filler.Close() //nolint:errcheck // the disk is full
	if _, err := io.Copy(filler, endless{}); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	return func() {
		t.Helper()
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// fails checks that the journal reports a full disk after an hour, too.
func fails(t *testing.T, j *Journal) {
	t.Helper()
	time.Sleep(time.Hour)
	if err := j.Sync(t.Context()); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("Sync returns %v, want that the disk is full", err)
	}
	if err := j.Err(); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("Err is %v, want that the disk is full", err)
	}
}

// heals checks that everything is on disk after the longest retry delay.
func heals(t *testing.T, j *Journal) {
	t.Helper()
	time.Sleep(retryMax + time.Second)
	if err := errors.Join(j.Sync(t.Context()), j.Err()); err != nil {
		t.Fatal(err)
	}
}

// holds closes a journal, and checks the records that the next one loads.
func holds(t *testing.T, j *Journal, dir string, want map[string][]byte) {
	t.Helper()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if got := opened(t, dir).Load("events"); !maps.EqualFunc(got, want, bytes.Equal) {
		t.Errorf("the next journal finds %d records, want %d", len(got), len(want))
	}
}

func TestJournal_DiskFullWhileRunning_WritesLater(t *testing.T) {
	dir := smallDisk(t, "size=2m")
	if dir == "" {
		return
	}
	synctest.Test(t, func(t *testing.T) {
		state := filepath.Join(dir, "state")
		j := opened(t, state)
		want := map[string][]byte{}
		put := func(key string, size int) {
			want[key] = bytes.Repeat([]byte("x"), size)
			j.Put("events", key, want[key])
		}
		put("before", 10)
		put("removed", 10)
		heals(t, j)
		release := fill(t, dir)
		for i := range 200 {
			put(fmt.Sprint("while ", i), 1000)
		}
		fails(t, j)
		j.Delete("events", "removed")
		delete(want, "removed")
		put("while 7", 2000)
		release()
		heals(t, j)
		put("after", 10)
		holds(t, j, state, want)
	})
}

func TestOpen_DiskFull_LoadsAndWritesLater(t *testing.T) {
	dir := smallDisk(t, "size=1m")
	if dir == "" {
		return
	}
	synctest.Test(t, func(t *testing.T) {
		state := filepath.Join(dir, "state")
		j := opened(t, state)
		j.Put("events", "old", []byte("1"))
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		release := fill(t, dir)
		j = opened(t, state)
		if got := text(j.Load("events")); got != "old=1" {
			t.Errorf("events are %q, want the record from before", got)
		}
		j.Put("events", "new", make([]byte, 100_000))
		fails(t, j)
		if _, err := Open(state, testr.New(t)); !errors.Is(err, ErrInUse) {
			t.Errorf("a second agent gets %v", err)
		}
		release()
		heals(t, j)
		holds(t, j, state, map[string][]byte{"old": []byte("1"), "new": make([]byte, 100_000)})
	})
}

func TestOpen_DiskFullAtFirstStart_WritesLater(t *testing.T) {
	dir := smallDisk(t, "size=1m")
	if dir == "" {
		return
	}
	synctest.Test(t, func(t *testing.T) {
		state := filepath.Join(dir, "state")
		release := fill(t, dir)
		j := opened(t, state)
		if err := j.Err(); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("Err is %v, want that the disk is full", err)
		}
		j.Put("events", "a", []byte("1"))
		j.Put("events", "b", []byte("2"))
		fails(t, j)
		if _, err := Open(state, testr.New(t)); !errors.Is(err, ErrInUse) {
			t.Errorf("a second agent gets %v", err)
		}
		j.Delete("events", "b")
		release()
		heals(t, j)
		holds(t, j, state, map[string][]byte{"a": []byte("1")})
		if files := quarantined(t, state); len(files) > 0 {
			t.Errorf("quarantined are %v, want none", files)
		}
	})
}

func TestOpen_NoSpaceForTheLock_LocksLater(t *testing.T) {
	dir := smallDisk(t, "size=1m,nr_inodes=6")
	if dir == "" {
		return
	}
	synctest.Test(t, func(t *testing.T) {
		state := filepath.Join(dir, "state")
		var fillers []string
		for {
			name := filepath.Join(dir, fmt.Sprint("filler ", len(fillers)))
			err := os.WriteFile(name, nil, 0o600)
			if errors.Is(err, syscall.ENOSPC) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			fillers = append(fillers, name)
		}
		release := func() {
			t.Helper()
			for _, name := range fillers {
				if err := os.Remove(name); err != nil {
					t.Fatal(err)
				}
			}
		}

		j := opened(t, state)
		j.Put("events", "a", []byte("1"))
		fails(t, j)
		release()
		heals(t, j)
		if _, err := Open(state, testr.New(t)); !errors.Is(err, ErrInUse) {
			t.Errorf("a second agent gets %v", err)
		}
		holds(t, j, state, map[string][]byte{"a": []byte("1")})
	})
}

func TestOpen_NoSpaceForTheLock_LoadsTheRecords(t *testing.T) {
	dir := smallDisk(t, "size=1m,nr_inodes=5")
	if dir == "" {
		return
	}
	synctest.Test(t, func(t *testing.T) {
		state := filepath.Join(dir, "state")
		j := opened(t, state)
		j.Put("events", "a", []byte("1"))
		if err := errors.Join(j.Close(), os.Remove(filepath.Join(state, "lock"))); err != nil {
			t.Fatal(err)
		}
		var fillers []string
		for err := error(nil); err == nil; fillers = append(fillers, filepath.Join(dir, fmt.Sprint(len(fillers)))) {
			err = os.WriteFile(filepath.Join(dir, fmt.Sprint(len(fillers))), nil, 0o600)
		}

		j = opened(t, state)
		if got := text(j.Load("events")); got != "a=1" {
			t.Errorf("events are %q, want the record from before", got)
		}
		if _, err := Open(state, testr.New(t)); !errors.Is(err, ErrInUse) {
			t.Errorf("a second agent gets %v", err)
		}
		j.Put("events", "b", []byte("2"))
		fails(t, j)
		if err := os.Remove(fillers[0]); err != nil {
			t.Fatal(err)
		}
		heals(t, j)
		holds(t, j, state, map[string][]byte{"a": []byte("1"), "b": []byte("2")})
	})
}

func TestJournal_OtherAgentLocksFirst_WritesNothing(t *testing.T) {
	dir := smallDisk(t, "size=1m,nr_inodes=2")
	if dir == "" {
		return
	}
	synctest.Test(t, func(t *testing.T) {
		state, filler := filepath.Join(dir, "state"), filepath.Join(dir, "filler")
		if err := os.WriteFile(filler, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		j := opened(t, state)
		j.Put("events", "a", []byte("1"))
		fails(t, j)

		err := errors.Join(os.Remove(filler), syscall.Mount("", dir, "", syscall.MS_REMOUNT, "nr_inodes=100"))
		if err != nil {
			t.Fatal(err)
		}
		other, err := hold(state)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if err := j.Err(); !errors.Is(err, ErrInUse) {
			t.Errorf("Err is %v, want ErrInUse", err)
		}
		if got := content(t, state); got != "-rw------- lock" {
			t.Errorf("the directory of the other agent has %s", got)
		}
		if err := other.release(); err != nil {
			t.Fatal(err)
		}
		heals(t, j)
		holds(t, j, state, map[string][]byte{"a": []byte("1")})
	})
}

// TestDisk_FullAtRandom_KeepsEachCommit fills a disk and empties it at random while the file grows and is compacted.
func TestDisk_FullAtRandom_KeepsEachCommit(t *testing.T) {
	dir := smallDisk(t, "size=2m")
	if dir == "" {
		return
	}
	synctest.Test(t, func(t *testing.T) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		random := rand.New(rand.NewPCG(seed, 0))
		worked, failed := 0, 0
		for range 10 {
			w, f := useFullDisk(t, random, dir)
			worked, failed = worked+w, failed+f
		}
		t.Logf("%d commits worked and %d failed", worked, failed)
		if failed < 20 || worked < 20 {
			t.Error("the test tests nothing")
		}
	})
}

// useFullDisk writes a new state, and opens it again at random. It counts the commits that worked and those that failed.
func useFullDisk(t *testing.T, random *rand.Rand, dir string) (worked, failed int) {
	t.Helper()
	state, filler := filepath.Join(dir, "state"), filepath.Join(dir, "filler")
	want, batch := map[string][]byte{}, map[id][]byte{}
	d := started(t, state, want)
	for range 40 {
		d.minGarbage = 50_000
		switch random.IntN(6) {
		case 0, 1, 2:
			_ = os.WriteFile(filler, make([]byte, random.IntN(4<<20)), 0o600) // as much as fits
		case 3:
			_ = os.Remove(filler)
		case 4:
			if err := d.close(); err != nil {
				t.Fatal(err)
			}
			d = started(t, state, want)
		}
		for range random.IntN(50) {
			at := id{"events", fmt.Sprint(random.IntN(500))}
			if batch[at] = nil; random.IntN(4) > 0 {
				batch[at] = make([]byte, random.IntN(5000))
			}
		}
		err := d.write(batch, tables{"events": want}.size())
		if err != nil {
			if !errors.Is(err, syscall.ENOSPC) {
				t.Fatal(err)
			}
			failed++
			continue
		}
		worked++
		for at, value := range batch {
			if want[at.key] = value; value == nil {
				delete(want, at.key)
			}
		}
		clear(batch)
	}
	if err := errors.Join(d.close(), os.RemoveAll(state), os.RemoveAll(filler)); err != nil {
		t.Fatal(err)
	}
	return worked, failed
}

// started opens a state, and checks its records of table events.
func started(t *testing.T, dir string, want map[string][]byte) *disk {
	t.Helper()
	d := newDisk(dir, testr.New(t))
	found, err := d.start()
	if err != nil && !failing(err) {
		t.Fatal(err)
	}
	if !maps.EqualFunc(found["events"], want, bytes.Equal) {
		t.Fatalf("the file has %d records, want %d", len(found["events"]), len(want))
	}
	return d
}

// The file returns EIO, as a broken disk does.
func TestOpen_UnreadableFile_IsQuarantinedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		if err := os.Symlink("/proc/self/mem", filepath.Join(dir, fileName)); err != nil {
			t.Fatal(err)
		}
		j := opened(t, dir)
		if err := j.Err(); !errors.Is(err, syscall.EIO) {
			t.Errorf("Err is %v, want EIO", err)
		}
		if got := j.Load("events"); got != nil {
			t.Errorf("Load returns %v, want nothing", got)
		}
		j.Put("events", "a", []byte("1"))
		heals(t, j)
		if files := quarantined(t, dir); len(files) != 1 {
			t.Errorf("quarantined are %v", files)
		}
		holds(t, j, dir, map[string][]byte{"a": []byte("1")})
	})
}

func TestJournal_FileDamagedForAMoment_KeepsTheRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		j := opened(t, dir)
		for i := range 1000 {
			j.Put("events", fmt.Sprint(i), make([]byte, 100))
		}
		if err := j.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, fileName)
		whole, err := os.ReadFile(path)
		if err == nil {
			err = os.Truncate(path, int64(2*os.Getpagesize()))
		}
		if err != nil {
			t.Fatal(err)
		}
		j.Put("events", "new", []byte("1"))
		if err := j.Sync(t.Context()); err == nil {
			t.Error("the commit works, though the file is cut off")
		}
		if err := os.WriteFile(path, whole, 0o600); err != nil { // before the next retry
			t.Fatal(err)
		}
		heals(t, j)
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if got := text(opened(t, dir).Load("events")); got != "1001 records" {
			t.Errorf("the next journal loads %s", got)
		}
	})
}

func TestJournal_FileDamagedWhileRunning_KeepsLaterChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		j := opened(t, dir)
		j.Put("events", "a", make([]byte, 100_000))
		if err := j.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(filepath.Join(dir, fileName), 100); err != nil {
			t.Fatal(err)
		}
		j.Put("events", "b", []byte("1"))
		heals(t, j)
		if files := quarantined(t, dir); len(files) != 1 {
			t.Errorf("quarantined are %v", files)
		}
		holds(t, j, dir, map[string][]byte{"b": []byte("1")})
	})
}

func TestConvert_DiskFull_ConvertsLater(t *testing.T) {
	dir := smallDisk(t, "size=1m")
	if dir == "" {
		return
	}
	synctest.Test(t, func(t *testing.T) {
		state := filepath.Join(dir, "state")
		path := filepath.Join(state, fileName)
		if err := errors.Join(os.Mkdir(state, 0o700), os.WriteFile(path, bboltFile(t), 0o600)); err != nil {
			t.Fatal(err)
		}
		release := fill(t, dir)
		j := opened(t, state)
		want := bboltRecords()
		if got := copied(j.state.loaded); !reflect.DeepEqual(got, want) {
			t.Errorf("got %d receipts, pending %q and events %v", len(got["receipts"]), got["pending"]["uid-008"], got["events"])
		}
		if err := j.Err(); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("Err is %v, want that the disk is full", err)
		}
		j.Delete("pending", "uid-008")
		fails(t, j)
		release()
		heals(t, j)
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		delete(want["pending"], "uid-008")
		wantRecords(t, "converted", readFile(t, path), want)
	})
}

// A compaction needs space for another file, a commit does not.
func TestCompact_DiskFull_CommitsGoOn(t *testing.T) {
	dir := smallDisk(t, "size=1m")
	if dir == "" {
		return
	}
	synctest.Test(t, func(t *testing.T) {
		state := filepath.Join(dir, "state")
		d, want := compacting(t, state)
		want["objects"]["big"] = make([]byte, 600_000)
		if err := d.write(map[id][]byte{{"objects", "big"}: want["objects"]["big"]}, want.size()); err != nil {
			t.Fatal(err)
		}
		d.minGarbage = -2 * want.size() // there is always enough garbage
		for i := range 30 {
			want["objects"]["small"] = []byte(fmt.Sprint(i))
			if err := d.write(map[id][]byte{{"objects", "small"}: want["objects"]["small"]}, want.size()); err != nil {
				t.Fatalf("commit %d: %v", i, err)
			}
		}
		if files := content(t, state); files != "-rw------- lock, -rw------- "+fileName {
			t.Errorf("the directory has %s", files)
		}
		if err := d.close(); err != nil {
			t.Fatal(err)
		}
		wantRecords(t, "after compactions that failed", readFile(t, d.path()), want)
	})
}

func TestFailing_SystemErrors(t *testing.T) {
	for err, want := range map[error]bool{
		syscall.ENOSPC: true, syscall.EDQUOT: true, syscall.EIO: true,
		syscall.EROFS: false, syscall.EACCES: false, ErrInUse: false, errDamaged: false,
	} {
		if got := failing(fmt.Errorf("open: %w", &os.PathError{Op: "open", Path: "x", Err: err})); got != want {
			t.Errorf("%v: got %v", err, got)
		}
	}
}
