package journal

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// fileName is the file in the directory.
const fileName = "state.db"

// The file says what format its records have: an agent that does not know it leaves it alone. Since format 2, it
// also has the sum of its records' marks.
const (
	metaTable = "meta"
	formatKey = "format"
	sumKey    = "sum"
	format1   = "1"
	format    = "2"
)

// errDamaged says that a file is there and cannot be used.
var errDamaged = errors.New("damaged")

// failing reports whether an error is of a disk that is full or fails, rather than of how it is used.
func failing(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EIO)
}

// tables are records by table and key.
type tables map[string]map[string][]byte

// file is a file that is open.
type file struct {
	db        *bolt.DB // nil after a fault
	raw       *os.File // of db
	unsettled error    // why nothing may be written: see settle
}

// open opens a file, which it creates if need be, checks all of it, and puts the records into loaded, unless that is
// nil. It needs no space for a file that is there.
//
// bbolt reads through a memory map, which faults where the disk fails. Nothing here may make bbolt read on a
// goroutine of its own, where that would end the process: neither Tx.Check, nor building the list of free pages, which
// is therefore kept in the file.
func open(path string, loaded tables) (f *file, err error) {
	pageSize, err := checkFile(path)
	if err != nil {
		return nil, classify(err)
	}
	f = &file{}
	if pageSize > 0 {
		f.unsettled = settle(path, pageSize)
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if fault := recover(); fault != nil {
			err = errors.Join(damaged("%v", fault), f.abandon())
		}
		if err != nil {
			err = errors.Join(classify(err), f.close())
			clear(loaded)
			f = nil
			if pageSize == 0 && !errors.Is(err, ErrInUse) {
				_ = os.Remove(path) // half a file is worse than none
			}
		}
	}()
	f.db, err = bolt.Open(path, 0o600, &bolt.Options{
		Timeout:      time.Second,
		FreelistType: bolt.FreelistMapType,
		OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
			var err error
			f.raw, err = os.OpenFile(name, flag, mode) //nolint:gosec // the user names the folder
			return f.raw, err
		},
	})
	if err != nil {
		return f, err
	}
	f.unsettled = errors.Join(f.unsettled, syncDir(filepath.Dir(path)))
	return f, f.db.View(func(tx *bolt.Tx) error { return read(tx, loaded) })
}

// close closes the file, unless that was done.
func (f *file) close() error {
	if f.db == nil {
		return nil
	}
	return f.db.Close()
}

// abandon gives the file back after a fault. That may have left locks of bbolt held, for which its own Close would wait
// for ever: the memory map stays, and with it the lock on the file, unless that is given back.
func (f *file) abandon() error {
	f.db = nil
	if f.raw == nil {
		return nil
	}
	return errors.Join(syscall.Flock(int(f.raw.Fd()), syscall.LOCK_UN), f.raw.Close())
}

// classify tells a file that is damaged from one that cannot be read or written: that has an error of the system.
func classify(err error) error {
	if errors.Is(err, errDamaged) {
		return err
	}
	if errors.Is(err, berrors.ErrTimeout) { // another process has locked it
		return fmt.Errorf("%w%s", ErrInUse, remedy(ErrInUse))
	}
	if _, system := errors.AsType[syscall.Errno](err); system {
		return fmt.Errorf("open the state file: %w", err)
	}
	return fmt.Errorf("%w: %w", errDamaged, err)
}

// read checks all records and the format, and puts the records into loaded, unless that is nil.
func read(tx *bolt.Tx, loaded tables) error {
	var sum uint64
	err := eachRecord(tx, func(table, key, sealed []byte) error {
		value, err := unseal(key, sealed)
		if err != nil {
			return damaged("table %s: %w", table, err)
		}
		sum += mark(table, key, sealed)
		if loaded != nil {
			if loaded[string(table)] == nil {
				loaded[string(table)] = map[string][]byte{}
			}
			loaded[string(table)][string(key)] = slices.Clone(value)
		}
		return nil
	})
	if err != nil {
		return err
	}
	meta := tx.Bucket([]byte(metaTable))
	if meta == nil {
		if tx.ID() > 1 {
			return damaged("it has no format")
		}
		return nil // nothing was ever written into it
	}
	switch found := string(meta.Get([]byte(formatKey))); found {
	case format1:
		return nil
	case format:
		if string(meta.Get([]byte(sumKey))) != string(binary.BigEndian.AppendUint64(nil, sum)) {
			return damaged("records are missing or too many")
		}
		return nil
	default:
		return damaged("it has the format %q, which this agent does not know", found)
	}
}

// eachRecord calls a function for all records.
func eachRecord(tx *bolt.Tx, do func(table, key, sealed []byte) error) error {
	return tx.ForEach(func(table []byte, bucket *bolt.Bucket) error {
		if string(table) == metaTable {
			return nil
		}
		return bucket.ForEach(func(key, sealed []byte) error { return do(table, key, sealed) })
	})
}

// write commits changes, many of them in parts; nil values are removals. After an error nobody knows what of them is on
// disk, and the file is to be closed.
func (f *file) write(changes map[id][]byte) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if fault := recover(); fault != nil {
			err = errors.Join(fmt.Errorf("it cannot be read: %v", fault), f.abandon())
		}
	}()
	if f.unsettled != nil {
		return f.unsettled
	}
	for part := range slices.Chunk(putsFirst(changes), maxPart) {
		if err := f.db.Update(func(tx *bolt.Tx) error { return apply(tx, changes, part) }); err != nil {
			return err
		}
	}
	return nil
}

// maxPart is how many changes a transaction has at most. bbolt holds all pages of one in memory, of which each change of
// a random key is one: 60,000 Events that came at once took 46 MB.
const maxPart = 1000

// putsFirst returns what is changed: what is put first, so that a kill between two transactions leaves too much rather
// than too little; and by key, so that neighbours share pages.
func putsFirst(changes map[id][]byte) []id {
	return slices.SortedFunc(maps.Keys(changes), func(a, b id) int {
		switch removes := changes[a] == nil; {
		case removes == (changes[b] == nil):
			return cmp.Or(cmp.Compare(a.table, b.table), cmp.Compare(a.key, b.key))
		case removes:
			return 1
		}
		return -1
	})
}

// settle makes sure that the disk has what the system says that a file has. If the end of a commit cannot be written,
// the system may go on showing the commit, until it forgets it, though the disk has the one before. The next commit
// would write over pages that are needed. So the meta pages are written again, before bbolt reads them.
func settle(path string, pageSize uint64) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0) //nolint:gosec // the user names the folder
	if err != nil {
		return err
	}
	defer file.Close()                                                   //nolint:errcheck // it was synced
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) // fails if another process's bbolt has the file
	if err != nil {
		return err
	}
	metas := make([]byte, 2*pageSize)
	if _, err := file.ReadAt(metas, 0); err != nil {
		return err
	}
	if _, err := file.WriteAt(metas, 0); err != nil {
		return err
	}
	return file.Sync()
}

// syncDir makes sure that the disk knows the names in a directory.
func syncDir(path string) error {
	dir, err := os.Open(path) //nolint:gosec // the user names the folder
	if err != nil {
		return err
	}
	defer dir.Close() //nolint:errcheck // it was only read
	if err := dir.Sync(); failing(err) {
		return err
	}
	return nil // not every file system can do it
}

// apply makes a part of the changes in a transaction.
func apply(tx *bolt.Tx, changes map[id][]byte, part []id) error {
	meta, err := tx.CreateBucketIfNotExists([]byte(metaTable))
	if err != nil {
		return err
	}
	var sum uint64
	if string(meta.Get([]byte(formatKey))) == format {
		sum = binary.BigEndian.Uint64(meta.Get([]byte(sumKey)))
	} else {
		_ = eachRecord(tx, func(table, key, sealed []byte) error { sum += mark(table, key, sealed); return nil })
		if err := meta.Put([]byte(formatKey), []byte(format)); err != nil {
			return err
		}
	}
	for _, at := range part {
		table, key, value := []byte(at.table), []byte(at.key), changes[at]
		bucket, err := tx.CreateBucketIfNotExists(table)
		if err != nil {
			return err
		}
		if old := bucket.Get(key); old != nil {
			sum -= mark(table, key, old)
		}
		if value == nil {
			err = bucket.Delete(key)
		} else {
			sealed := seal(key, value)
			sum += mark(table, key, sealed)
			err = bucket.Put(key, sealed)
		}
		if err != nil {
			return err
		}
	}
	return meta.Put([]byte(sumKey), binary.BigEndian.AppendUint64(nil, sum))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// seal puts a checksum of the key and the value before the value.
func seal(key, value []byte) []byte {
	sum := crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, value)
	return append(binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(value)), sum), value...)
}

// unseal returns the value, as a part of sealed.
func unseal(key, sealed []byte) ([]byte, error) {
	if len(sealed) < 4 {
		return nil, errors.New("a record is too short")
	}
	value := sealed[4:]
	if crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, value) != binary.BigEndian.Uint32(sealed) {
		return nil, errors.New("a record has a wrong checksum")
	}
	return value, nil
}

// mark is a number for a record: a hash of its table, its key and what it is sealed with. The marks of a file are added
// up, so that no record can get lost unnoticed. A CRC will not do: another name of the table changes the same bits of
// all of them, which may not change the sum.
func mark(table, key, sealed []byte) uint64 {
	hash := fnv.New64a()
	for _, part := range [][]byte{table, {0}, key, sealed[:4]} {
		_, _ = hash.Write(part)
	}
	return hash.Sum64()
}
