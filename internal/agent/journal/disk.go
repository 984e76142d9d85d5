package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-logr/logr"
)

// How many files that were put aside are kept, and how many bytes of them: the newest in any case, whatever its size.
const (
	keptAside      = 3
	keptAsideBytes = 16 << 20
)

// disk is a directory and the file in it, as far as they can be had: a disk that is full or fails takes them away, and
// they are taken again. One goroutine at a time uses it.
type disk struct {
	dir   string
	log   logr.Logger
	lock  *lock // nil as long as it cannot be created
	file  *file // nil as long as it cannot be opened
	known bool  // what is in the file was read, or is from this process
}

func (d *disk) path() string { return filepath.Join(d.dir, fileName) }

// start takes the directory and reads the file. If the disk is [failing], ready tries again.
func (d *disk) start() (tables, error) {
	held, lockErr := hold(d.dir)
	d.lock = held
	if lockErr != nil {
		if !failing(lockErr) {
			return nil, lockErr
		}
		if _, err := os.Stat(d.path()); err != nil {
			return nil, lockErr
		}
		// Without the lock, that of bbolt on the file is enough to read it.
	}
	loaded := tables{}
	err := d.open(loaded)
	if lockErr != nil && (err == nil || errors.Is(err, errDamaged)) {
		return loaded, lockErr
	}
	return loaded, err
}

// open opens the file. One that is damaged is put aside for an empty one; but not without the lock, because another
// process may be writing it.
func (d *disk) open(loaded tables) error {
	f, err := open(d.path(), loaded)
	if errors.Is(err, errDamaged) && d.lock != nil {
		if err := d.putAside(err); err != nil {
			return err
		}
		f, err = open(d.path(), nil)
	}
	if err != nil {
		return err
	}
	d.file, d.known = f, true
	return nil
}

// ready takes what is missing of the directory and the file. A file that could not be read at the start is put aside:
// what was done since then is not based on it.
func (d *disk) ready() error {
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
		if err := d.putAside(errors.New("it could not be read when the agent started")); err != nil {
			return err
		}
	}
	return d.open(nil)
}

// write commits changes; nil values are removals. After an error it is not known which of them are on disk, but
// they can be written again.
func (d *disk) write(changes map[id][]byte) error {
	if err := d.ready(); err != nil {
		return err
	}
	err := d.file.write(changes)
	if err != nil {
		err = errors.Join(err, d.file.close())
		d.file = nil
	}
	return err
}

// close gives the directory back.
func (d *disk) close() error {
	var err error
	if d.file != nil {
		err = d.file.close()
	}
	return errors.Join(err, d.lock.release())
}

// putAside renames the file, if there is one.
func (d *disk) putAside(reason error) error {
	aside := fmt.Sprintf("%s.%s", d.path(), time.Now().UTC().Format("20060102T150405.000000000Z"))
	err := os.Rename(d.path(), aside)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return errors.Join(reason, err)
	}
	d.log.Error(reason, "The state file cannot be used and was put aside; what it held is found out again", "file", aside)
	tidyAside(d.path())
	return nil
}

// tidyAside removes the oldest files that were put aside.
func tidyAside(path string) {
	aside, _ := filepath.Glob(path + ".*")
	slices.Sort(aside)
	slices.Reverse(aside)
	var bytes int64
	for i, name := range aside {
		if info, err := os.Lstat(name); err == nil {
			bytes += info.Size()
		}
		if i >= keptAside || i > 0 && bytes > keptAsideBytes {
			_ = os.Remove(name)
		}
	}
}
