package journal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// maxFrame is the size at which a frame is written even if the commit has more changes. Otherwise a burst of 60,000 Events
// would be encoded in memory as a whole.
const maxFrame = 1 << 20

// maxIdleFrame bounds the buffer of frames between two commits, which are small but for bursts.
const maxIdleFrame = 256 << 10

// tables are records by table and key.
type tables map[string]map[string][]byte

// logFile is an open state file, see format.go. After an error of a method other than openLog its fields may be wrong: it
// is to be closed, and opened again.
type logFile struct {
	path     string
	file     *os.File
	end      int64  // offset of the next frame
	synced   int64  // bytes that are on disk
	frame    []byte // the next frame, with its head
	repaired bool
}

func newLogFile(path string, file *os.File) *logFile {
	return &logFile{path: path, file: file, end: int64(headerSize), frame: make([]byte, frameHead)}
}

// openLog opens and locks a file, checks all of it, and puts its records into loaded, unless that is nil. The caller may know
// that more of the file is on disk than the header says. openLog writes nothing. The error is [ErrInUse], errBbolt,
// errDamaged or of the system.
func openLog(path string, loaded tables, synced int64) (*logFile, error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0) //nolint:gosec // the user names the directory
	if err != nil {
		return nil, fmt.Errorf("open the state file: %w", err)
	}
	f := newLogFile(path, file)
	info, err := file.Stat()
	if err == nil {
		err = lockState(file)
	}
	if err == nil {
		err = f.load(file, info.Size(), loaded, synced)
	}
	if err != nil {
		clear(loaded)
		return nil, errors.Join(err, file.Close())
	}
	return f, nil
}

// lockState locks the state file. This excludes other agents where the disk has no space for the lock file.
func lockState(file *os.File) error {
	err := flock(file)
	if errors.Is(err, ErrInUse) {
		err = fmt.Errorf("%w%s", err, hint(err))
	}
	return err
}

// load reads a file of a size.
func (f *logFile) load(file io.ReaderAt, size int64, loaded tables, synced int64) error {
	raw := make([]byte, headerSize)
	if _, err := file.ReadAt(raw, 0); errors.Is(err, io.EOF) {
		return damaged("it ends in its header")
	} else if err != nil {
		return fmt.Errorf("read the state file: %w", err)
	}
	if isBbolt(raw) {
		return errBbolt
	}
	var err error
	if f.synced, err = decodeHeader(raw); err != nil {
		return err
	}
	f.synced = max(f.synced, synced)
	f.end, err = replay(file, size, func(r record) error { loaded.apply(r); return nil })
	if err == nil && f.end < f.synced {
		err = damaged("the frame at %d of %d bytes is not valid", f.end, f.synced)
	}
	return err
}

// apply makes the change of a record that was read. Nil tables keep nothing.
func (t tables) apply(r record) {
	switch table := string(r.table); {
	case t == nil:
	case r.value == nil:
		delete(t[table], string(r.key))
	default:
		if t[table] == nil {
			t[table] = map[string][]byte{}
		}
		t[table][string(r.key)] = append([]byte{}, r.value...)
	}
}

// write commits changes; nil values are deletions. After a crash the changes of a frame are all on disk or none are. A commit of
// several frames may be there in part. Puts are written before deletions, so that a crash leaves too many records rather than too
// few. A deletion is written even if the file does not have the record, because it was put after the previous commit.
func (f *logFile) write(changes map[id][]byte) error {
	if err := f.repair(); err != nil {
		return err
	}
	size := 0
	for at, value := range changes {
		size += sizeOf(at.key, value)
	}
	f.frame = slices.Grow(f.frame, min(size, maxFrame)) // or it would be copied several times while it grows
	for _, deletions := range []bool{false, true} {
		for at, value := range changes {
			if (value == nil) != deletions {
				continue
			}
			if err := appendTo(f, at.table, at.key, value); err != nil {
				return err
			}
		}
	}
	return f.commit()
}

// appendTo adds a record to the frame, and writes the frame if it is large.
func appendTo[T string | []byte](f *logFile, table, key T, value []byte) error {
	f.frame = appendRecord(f.frame, table, key, value)
	if len(f.frame) < maxFrame {
		return nil
	}
	return f.flush()
}

// flush writes the frame, if it has records.
func (f *logFile) flush() error {
	if len(f.frame) == frameHead {
		return nil
	}
	sealFrame(f.frame, f.end)
	if _, err := f.file.WriteAt(f.frame, f.end); err != nil {
		return err
	}
	f.end += int64(len(f.frame))
	f.frame = f.frame[:frameHead]
	return nil
}

// commit writes the appended frames to disk. The header records the size of the previous commit, because the disk may reorder
// writes.
func (f *logFile) commit() error {
	if err := f.flush(); err != nil {
		return err
	}
	if f.end == f.synced {
		return nil
	}
	return f.sync(f.synced)
}

// sync writes the header and waits for the disk. The frame is empty by then, so sync frees a large one.
func (f *logFile) sync(synced int64) error {
	if _, err := f.file.WriteAt(encodeHeader(synced), 0); err != nil {
		return err
	}
	if err := syncData(f.file); err != nil {
		return err
	}
	f.synced = f.end
	if cap(f.frame) > maxIdleFrame {
		f.frame = make([]byte, frameHead)
	}
	return nil
}

// repair cuts off a torn frame before the first write, and writes the tail again that may not be on disk. If the sync of a
// commit failed, the system may still return the tail from memory. Before each later write it checks that the file was not
// changed.
func (f *logFile) repair() error {
	if f.repaired {
		info, err := f.file.Stat()
		if err == nil && info.Size() != f.end {
			err = fmt.Errorf("the file has %d bytes instead of %d: another program changed it", info.Size(), f.end)
		}
		return err
	}
	if err := f.file.Truncate(f.end); err != nil {
		return err
	}
	tail := io.NewSectionReader(f.file, f.synced, f.end-f.synced)
	if _, err := io.Copy(io.NewOffsetWriter(f.file, f.synced), tail); err != nil {
		return err
	}
	f.repaired = true
	return errors.Join(f.sync(f.synced), syncDir(filepath.Dir(f.path)))
}

// close closes the file, and protects the last commit by the header as well.
func (f *logFile) close() error {
	var err error
	if f.repaired {
		err = f.sync(f.end)
	}
	return errors.Join(err, f.file.Close())
}

// compact copies the newest record of each key into a new file that replaces this one. It reads this one twice, so that the
// offsets of the newest records are in memory only meanwhile, by a hash of the key. After an error this one is as it was.
func (f *logFile) compact() (*logFile, error) {
	newest := map[uint64]int64{}
	err := f.replay(func(r record) error {
		if r.value != nil {
			newest[r.hash()] = r.offset
		} else {
			delete(newest, r.hash())
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return replaceLog(f.path, func(next *logFile) error {
		return f.replay(func(r record) error {
			if newest[r.hash()] != r.offset {
				return nil
			}
			return appendTo(next, r.table, r.key, r.value)
		})
	})
}

// replay calls each for all records of the file.
func (f *logFile) replay(each func(record) error) error {
	end, err := replay(f.file, f.end, each)
	if err == nil && end != f.end {
		err = damaged("the frame at %d is no longer valid", end)
	}
	return err
}

// newLog creates a file with records, in place of the file at path, if there is one.
func newLog(path string, records tables) (*logFile, error) {
	return replaceLog(path, func(f *logFile) error {
		for table, byKey := range records {
			for key, value := range byKey {
				if err := appendTo(f, table, key, value); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// unfinishedName is the file in the directory that is to replace the state file.
const unfinishedName = "state.new"

// replaceLog creates a file at path when all of it is on disk: after a crash the earlier one is there, or the new one.
func replaceLog(path string, fill func(*logFile) error) (f *logFile, err error) {
	unfinished := filepath.Join(filepath.Dir(path), unfinishedName)
	file, err := os.OpenFile(unfinished, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600) //nolint:gosec // the user names the directory
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			f, err = nil, errors.Join(err, file.Close())
			_ = os.Remove(unfinished)
		}
	}()
	f = newLogFile(path, file)
	f.repaired = true
	err = flock(file)
	for _, step := range []func() error{
		func() error { return fill(f) },
		f.flush,
		func() error { return f.sync(f.end) },
		func() error { return os.Rename(unfinished, path) },
		func() error { return syncDir(filepath.Dir(path)) },
	} {
		if err == nil {
			err = step()
		}
	}
	return f, err
}

// syncDir makes sure that the disk knows the names in a directory.
func syncDir(path string) error {
	dir, err := os.Open(path) //nolint:gosec // the user names the directory
	if err != nil {
		return err
	}
	defer dir.Close() //nolint:errcheck // it was only read
	if err := dir.Sync(); failing(err) {
		return err
	}
	return nil // not every file system can do it
}
