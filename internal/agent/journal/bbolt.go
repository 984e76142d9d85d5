package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// Agents from before the append-only log wrote a bbolt file. It is converted once, because it may have Events and deletions
// that are in no other place and not delivered yet. Without this file and its test, such a file is quarantined: delete both
// when no installation is upgraded from such an agent.

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
	err = checkMetaPages(path)
	if err == nil {
		err = db.View(func(tx *bolt.Tx) error { return readBuckets(tx, records) })
	}
	return records, errors.Join(bboltError(err), db.Close())
}

// checkMetaPages expects that both meta pages of a bbolt file are valid. The newer one is that of the last commit. If it is
// damaged, bbolt silently uses the other one, and so the records of the commit before.
func checkMetaPages(path string) error {
	file, err := os.Open(path) //nolint:gosec // the user names the directory
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // it was only read
	at := int64(0)
	for page := range uint64(2) {
		raw := make([]byte, 80) // page header, fields, checksum
		if _, err := file.ReadAt(raw, at); err != nil {
			return err
		}
		hash := fnv.New64a()
		_, _ = hash.Write(raw[16:72])
		transaction, sum := binary.NativeEndian.Uint64(raw[64:]), binary.NativeEndian.Uint64(raw[72:])
		if sum != hash.Sum64() || transaction%2 != page { // transactions alternate between the pages
			return damaged("bbolt: meta page %d is not valid", page)
		}
		at = int64(binary.NativeEndian.Uint32(raw[24:])) // the page size
	}
	return nil
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
