package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"maps"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// Up to version 0.4 the state file is a bbolt file. It is converted once, because it may have Events and deletions that
// nobody else knows and that are not delivered. When no installation is upgraded from 0.4 or before any more, delete this
// file, its test, and what uses errBbolt: such a file is quarantined then.

// errBbolt means that the state file is a bbolt file.
var errBbolt = errors.New("a bbolt file")

// The bucket with the format of the file, the format, and the sum of the records' hashes, which format 2 has.
const (
	metaBucket   = "meta"
	formatKey    = "format"
	sumKey       = "sum"
	bboltFormat1 = "1"
	bboltFormat2 = "2"
)

// isBbolt reports whether a file of which this is the beginning is a bbolt file: its magic number follows a page header.
func isBbolt(raw []byte) bool {
	return len(raw) >= 20 && binary.NativeEndian.Uint32(raw[16:]) == 0xED0CDAED
}

// convert reads a bbolt file into loaded, unless that is nil, and replaces the file by a log. Without the lock it only reads.
func (d *disk) convert(loaded tables) (*logFile, error) {
	records, err := readBbolt(d.path())
	if err != nil {
		return nil, err
	}
	d.known = true
	if loaded != nil {
		maps.Copy(loaded, records)
	}
	if d.lock == nil {
		return nil, nil
	}
	f, err := newLog(d.path(), records)
	if err == nil {
		d.log.Info("The state file of an earlier version was converted")
	}
	return f, err
}

// readBbolt returns the records of a bbolt file. The error is [ErrInUse], errDamaged or of the system.
func readBbolt(path string) (records tables, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		// bbolt maps the file into memory and trusts it: a page that is damaged or cannot be read makes it panic.
		if fault := recover(); fault != nil {
			records, err = nil, damaged("bbolt: %v", fault)
		}
	}()
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: time.Second, ReadOnly: true})
	if err != nil {
		return nil, bboltError(err)
	}
	records = tables{}
	err = db.View(func(tx *bolt.Tx) error { return readBuckets(tx, records) })
	return records, errors.Join(bboltError(err), db.Close())
}

func bboltError(err error) error {
	if err == nil || errors.Is(err, errDamaged) {
		return err
	}
	if errors.Is(err, berrors.ErrTimeout) { // another process has locked it
		return fmt.Errorf("%w%s", ErrInUse, hint(ErrInUse))
	}
	if _, system := errors.AsType[syscall.Errno](err); system {
		return fmt.Errorf("open the state file: %w", err)
	}
	return damaged("bbolt: %w", err)
}

// readBuckets checks all records and their sum. The sum also shows a damaged page by which records are missing.
func readBuckets(tx *bolt.Tx, records tables) error {
	var sum uint64
	err := tx.ForEach(func(table []byte, bucket *bolt.Bucket) error {
		if string(table) == metaBucket {
			return nil
		}
		records[string(table)] = map[string][]byte{}
		return bucket.ForEach(func(key, raw []byte) error {
			if len(raw) < 4 || crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, raw[4:]) != binary.BigEndian.Uint32(raw) {
				return damaged("table %s: a record has a wrong checksum", table)
			}
			hash := fnv.New64a()
			for _, part := range [][]byte{table, {0}, key, raw[:4]} {
				_, _ = hash.Write(part)
			}
			sum += hash.Sum64()
			records[string(table)][string(key)] = slices.Clone(raw[4:])
			return nil
		})
	})
	if err != nil {
		return err
	}
	meta := tx.Bucket([]byte(metaBucket))
	if meta == nil {
		if len(records) > 0 {
			return damaged("bbolt: the file has no format")
		}
		return nil
	}
	switch format := string(meta.Get([]byte(formatKey))); format {
	case bboltFormat1:
		return nil
	case bboltFormat2:
		if string(meta.Get([]byte(sumKey))) != string(binary.BigEndian.AppendUint64(nil, sum)) {
			return damaged("bbolt: records are missing or too many")
		}
		return nil
	default:
		return damaged("bbolt: this agent does not know format %q", format)
	}
}
