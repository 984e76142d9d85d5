package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/go-logr/logr"
)

// fileName is the state file in the directory.
const fileName = "state.db"

// minGarbage is how many bytes of a file have to be garbage before it is compacted.
const minGarbage = 1 << 20

// The limits for quarantined files: their number and their bytes. The newest is kept whatever its size.
const (
	maxQuarantined      = 3
	maxQuarantinedBytes = 16 << 20
)

// disk is the directory with its lock and its state file. A disk that is full or fails takes them away; each write tries
// to get them back. One goroutine at a time uses it.
type disk struct {
	dir        string
	log        logr.Logger
	lock       *lock    // nil until it can be created
	file       *logFile // nil until it can be opened
	known      bool     // this process has read or created the file
	synced     int64    // size of the file on disk after a failed write
	minGarbage int64
	compactAt  int64 // after a failed compaction: the size from which on it is tried again
}

func newDisk(dir string, log logr.Logger) *disk {
	return &disk{dir: dir, log: log, minGarbage: minGarbage}
}

func (d *disk) path() string { return filepath.Join(d.dir, fileName) }

// failing reports whether an error is of a disk that is full or fails, rather than of a wrong configuration.
func failing(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EIO)
}

// start takes the directory and reads the file. If the disk is [failing], the first write tries again.
func (d *disk) start() (tables, error) {
	held, lockErr := hold(d.dir)
	d.lock = held
	if lockErr == nil {
		_ = os.Remove(filepath.Join(d.dir, unfinishedName))
	} else {
		if !failing(lockErr) {
			return nil, lockErr
		}
		if _, err := os.Stat(d.path()); err != nil {
			return nil, lockErr
		}
		// The lock on the file itself is enough to read it.
	}
	loaded := tables{}
	err := d.open(loaded)
	if lockErr != nil && (err == nil || errors.Is(err, errDamaged)) {
		return loaded, lockErr
	}
	return loaded, err
}

// open opens the file, and puts its records into loaded, unless that is nil. It creates a file if there is none, converts
// a bbolt file, and quarantines a damaged one. Without the lock it only reads, because another process may be writing.
func (d *disk) open(loaded tables) error {
	f, err := openLog(d.path(), loaded, d.synced)
	if errors.Is(err, errBbolt) {
		f, err = d.convert(loaded)
	}
	if d.lock != nil && errors.Is(err, errDamaged) {
		if err = d.quarantine(err); err == nil {
			err = os.ErrNotExist
		}
	}
	if d.lock != nil && errors.Is(err, os.ErrNotExist) {
		f, err = newLog(d.path(), nil)
	}
	if err != nil {
		return err
	}
	d.file, d.known, d.synced = f, true, 0
	return nil
}

// ensureOpen takes the lock and opens the file, if that failed before. A file that could not be read at the start is
// quarantined: the agent has worked without its records since.
func (d *disk) ensureOpen() error {
	if d.lock == nil {
		held, err := hold(d.dir)
		if err != nil {
			return err
		}
		d.lock = held
	}
	if d.file != nil {
		return nil
	}
	if !d.known {
		if err := d.quarantine(errors.New("it could not be read when the agent started")); err != nil {
			return err
		}
	}
	return d.open(nil)
}

// write commits changes; nil values are deletions. After an error some of them may be on disk; all can be written again. Live
// is about how many bytes all records take after these changes.
func (d *disk) write(changes map[id][]byte, live int64) error {
	if err := d.ensureOpen(); err != nil {
		return err
	}
	if err := d.file.write(changes); err != nil {
		err = errors.Join(err, d.file.file.Close())
		d.file, d.synced = nil, d.file.synced
		return err
	}
	d.compact(live)
	return nil
}

// compact replaces the file by a smaller one if more than half of it is garbage. A failure is no error of the commit,
// which is on disk already.
func (d *disk) compact(live int64) {
	old := d.file
	if old.end < 2*live+d.minGarbage || old.end < d.compactAt {
		return
	}
	next, err := old.compact()
	_ = old.file.Close() // all of it is on disk, or replaced
	d.file, d.compactAt = next, 0
	if err != nil {
		d.log.Error(err, "The state file could not be compacted; this is tried again when it has grown")
		d.file, d.compactAt = nil, old.end+d.minGarbage // the next write opens the file again
	}
}

// close gives the directory back.
func (d *disk) close() error {
	var err error
	if d.file != nil {
		err = d.file.close()
	}
	return errors.Join(err, d.lock.release())
}

// quarantine renames the file, if there is one.
func (d *disk) quarantine(reason error) error {
	to := fmt.Sprintf("%s.%s", d.path(), time.Now().UTC().Format("20060102T150405.000000000Z"))
	err := os.Rename(d.path(), to)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return errors.Join(reason, err)
	}
	d.log.Error(reason, "The state file is unusable and was quarantined; "+
		"its content is read again from the cluster and the control plane", "file", to)
	trimQuarantine(d.path())
	return nil
}

// trimQuarantine removes the oldest quarantined files.
func trimQuarantine(path string) {
	files, _ := filepath.Glob(path + ".*")
	slices.Sort(files)
	slices.Reverse(files)
	var bytes int64
	for i, name := range files {
		if info, err := os.Lstat(name); err == nil {
			bytes += info.Size()
		}
		if i >= maxQuarantined || i > 0 && bytes > maxQuarantinedBytes {
			_ = os.Remove(name)
		}
	}
}
