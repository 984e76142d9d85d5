package journal

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/go-logr/logr/testr"
	bolt "go.etcd.io/bbolt"
)

// bboltFile is a file that an earlier version wrote, in format 2 with two commits.
func bboltFile(t *testing.T) []byte {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", "bbolt-format2.db.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // it was only read
	unzip, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(unzip)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// bboltRecords are the records of that file after its last commit.
func bboltRecords() tables {
	records := tables{"receipts": {}, "pending": {"uid-007": make([]byte, 9000), "uid-008": []byte("pending 8 again")}, "events": {"uid-009": {}}}
	for i := range 300 {
		if i%3 > 0 {
			records["receipts"][fmt.Sprintf("uid-%03d", i)] = fmt.Appendf(nil, "receipt %d", i)
		}
	}
	return records
}

func TestConvert_BboltFile_KeepsTheRecords(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, fileName)
	if err := os.WriteFile(path, bboltFile(t), 0o600); err != nil {
		t.Fatal(err)
	}
	want := bboltRecords()
	for range 2 { // the second time it is a log
		j := opened(t, dir)
		if got := copied(j.state.loaded); !reflect.DeepEqual(got, want) {
			t.Errorf("got %d receipts, pending %q and events %v", len(got["receipts"]), got["pending"]["uid-008"], got["events"])
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	wantRecords(t, "converted", readFile(t, path), want)
	if got := content(t, dir); got != "-rw------- lock, -rw------- "+fileName {
		t.Errorf("the directory has %s", got)
	}
}

// TestConvert_MetaPageDamaged_IsQuarantined damages one of the two pages that name the commits. bbolt itself would use the
// commit before the last.
func TestConvert_MetaPageDamaged_IsQuarantined(t *testing.T) {
	pageSize := int(binary.NativeEndian.Uint32(bboltFile(t)[24:]))
	pageOf := func(raw []byte, page int) []byte { return raw[page*pageSize:][:pageSize] }
	for reason, change := range map[string]func(page, other []byte){
		"zero":             func(page, _ []byte) { clear(page) },
		"zero after magic": func(page, _ []byte) { clear(page[20:]) },
		"older":            func(page, _ []byte) { page[64] -= 2 }, // the transaction
		"a copy":           func(page, other []byte) { copy(page, other) },
	} {
		for page := range 2 {
			raw, dir := bboltFile(t), t.TempDir()
			change(pageOf(raw, page), pageOf(raw, 1-page))
			if err := os.WriteFile(filepath.Join(dir, fileName), raw, 0o600); err != nil {
				t.Fatal(err)
			}
			if got := copied(opened(t, dir).state.loaded); len(got) > 0 {
				t.Errorf("meta page %d is %s: %d tables were read, want none", page, reason, len(got))
			}
			if files := quarantined(t, dir); len(files) != 1 {
				t.Errorf("meta page %d is %s: quarantined are %v, want the file", page, reason, files)
			}
		}
	}
}

// TestConvert_DamagedAtRandom_FindsTheLastCommitOrNothing damages a bbolt file. bbolt itself trusts it.
func TestConvert_DamagedAtRandom_FindsTheLastCommitOrNothing(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	raw, count := bboltFile(t), 0
	want := bboltRecords()
	size := uint32(len(raw))
	for range 60 {
		program := damageOf(byte(random.IntN(ways)), random.Uint32N(size), random.Uint32N(size))
		found, aside := openAny(t, damage(raw, program))
		if len(found) > 0 && !reflect.DeepEqual(found, want) {
			t.Errorf("damage %v: the records are not those of the last commit", program)
		}
		if aside {
			count++
		}
	}
	if count == 0 {
		t.Error("none of the 60 damaged files was quarantined: the test does no damage")
	}
}

// newBbolt writes a bbolt file with two records of table events, and changes it.
func newBbolt(t *testing.T, format string, change func(tx *bolt.Tx) error) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, fileName), bboltFile(t), 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := bolt.Open(filepath.Join(dir, fileName), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		return errors.Join(tx.Bucket([]byte(metaBucket)).Put([]byte(formatKey), []byte(format)), change(tx))
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestConvert_FirstFormat_KeepsTheRecords(t *testing.T) {
	dir := newBbolt(t, bboltFormat1, func(tx *bolt.Tx) error {
		sum := crc32.Checksum([]byte("ab"), castagnoli) // of key and value
		record := append(binary.BigEndian.AppendUint32(nil, sum), 'b')
		return errors.Join(tx.Bucket([]byte(metaBucket)).Delete([]byte(sumKey)), tx.Bucket([]byte("events")).Put([]byte("a"), record))
	})
	if got := opened(t, dir).Load("events"); len(got) != 2 || !bytes.Equal(got["a"], []byte("b")) {
		t.Errorf("events are %q", got)
	}
}

// TestConvert_WrongContent_IsQuarantined has files that are whole for bbolt.
func TestConvert_WrongContent_IsQuarantined(t *testing.T) {
	for name, tc := range map[string]struct {
		format string
		change func(tx *bolt.Tx) error
	}{
		"newer format": {"3", func(*bolt.Tx) error { return nil }},
		"no format":    {bboltFormat2, func(tx *bolt.Tx) error { return tx.Bucket([]byte(metaBucket)).Delete([]byte(formatKey)) }},
		"no meta":      {bboltFormat2, func(tx *bolt.Tx) error { return tx.DeleteBucket([]byte(metaBucket)) }},
		"no sum":       {bboltFormat2, func(tx *bolt.Tx) error { return tx.Bucket([]byte(metaBucket)).Delete([]byte(sumKey)) }},
		"a record is wrong": {bboltFormat2, func(tx *bolt.Tx) error {
			return tx.Bucket([]byte("events")).Put([]byte("uid-009"), []byte("wrong"))
		}},
		"a record is gone": {bboltFormat2, func(tx *bolt.Tx) error { return tx.Bucket([]byte("events")).Delete([]byte("uid-009")) }},
		"a table is gone":  {bboltFormat2, func(tx *bolt.Tx) error { return tx.DeleteBucket([]byte("events")) }},
		"a table has another name": {bboltFormat2, func(tx *bolt.Tx) error {
			other, err := tx.CreateBucket([]byte("other"))
			if err != nil {
				return err
			}
			return errors.Join(tx.Bucket([]byte("events")).ForEach(other.Put), tx.DeleteBucket([]byte("events")))
		}},
	} {
		dir := newBbolt(t, tc.format, tc.change)
		if got := opened(t, dir); len(copied(got.state.loaded)) > 0 {
			t.Errorf("%s: the records were read all the same", name)
		}
		if files := quarantined(t, dir); len(files) != 1 {
			t.Errorf("%s: quarantined are %v", name, files)
		}
	}
}

func TestConvert_OpenInAnotherProcess_IsInUse(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, fileName)
	if err := os.WriteFile(path, bboltFile(t), 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // the test is over
	if _, err := newDisk(dir, testr.New(t)).start(); !errors.Is(err, ErrInUse) {
		t.Errorf("got %v, want that the file is in use", err)
	}
	if files := quarantined(t, dir); len(files) > 0 {
		t.Errorf("quarantined are %v", files)
	}
}
