package journal

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr"
)

// The ways to damage a file. A damage is a way, a place and a number, of seven bytes.
const (
	flipBit = iota
	cut
	zero
	setNumber
	copyPage
	resealHeader
	ways
)

func damageOf(way byte, at, with uint32) []byte {
	return []byte{way, byte(at >> 16), byte(at >> 8), byte(at), byte(with >> 16), byte(with >> 8), byte(with)}
}

// damage returns a copy of a file after damages.
func damage(raw, program []byte) []byte {
	raw = append([]byte(nil), raw...)
	pageSize := os.Getpagesize()
	for ; len(program) >= 7 && len(raw) > 0; program = program[7:] {
		at := (int(program[1])<<16 | int(program[2])<<8 | int(program[3])) % len(raw)
		with := int(program[4])<<16 | int(program[5])<<8 | int(program[6])
		switch program[0] % ways {
		case flipBit:
			raw[at] ^= 1 << (with % 8)
		case cut:
			raw = raw[:at]
		case zero:
			clear(raw[at:min(len(raw), at+with)])
		case setNumber:
			copy(raw[at:], binary.BigEndian.AppendUint16(nil, uint16(with)))
		case copyPage:
			from := raw[with%len(raw)/pageSize*pageSize:]
			copy(raw[at/pageSize*pageSize:], from[:min(pageSize, len(from))])
		case resealHeader: // as if its fields were meant so
			if len(raw) >= headerSize {
				sum := crc32.Checksum(raw[:headerSize-4], castagnoli)
				binary.BigEndian.PutUint32(raw[headerSize-4:], sum)
			}
		}
	}
	return raw
}

// openAny checks that a journal opens a file with any content, and works. It returns the records of the file, and whether
// the file was quarantined.
func openAny(t *testing.T, raw []byte) (found tables, aside bool) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, fileName), raw, 0o600); err != nil {
			t.Fatal(err)
		}
		j, err := Open(dir, logr.Discard())
		if err != nil {
			t.Fatal(err)
		}
		found = copied(j.state.loaded)
		aside = len(quarantined(t, dir)) > 0
		j.Put("events", "new", []byte("1"))
		if err := errors.Join(j.Sync(t.Context()), j.Close()); err != nil {
			t.Errorf("the journal does not work: %v", err)
		}

		if j, err = Open(dir, logr.Discard()); err != nil {
			t.Fatal(err)
		}
		want := copied(found)
		if want["events"] == nil {
			want["events"] = map[string][]byte{}
		}
		want["events"]["new"] = []byte("1")
		if got := copied(j.state.loaded); !reflect.DeepEqual(got, want) {
			t.Errorf("the next journal has %v, want %v", got, want)
		}
		if err := j.Close(); err != nil {
			t.Error(err)
		}
		if !aside && len(quarantined(t, dir)) > 0 {
			t.Error("the next journal quarantines the file")
		}
	})
	return found, aside
}

// FuzzDamagedFile damages files that journals wrote. The records are those after some commit, or none, and then the
// file is quarantined.
func FuzzDamagedFile(f *testing.F) {
	small, large := newHistory(f, 3, 4), newHistory(f, 6, 150)
	for _, isLarge := range []bool{false, true} {
		h := small
		if isLarge {
			h = large
		}
		random := rand.New(rand.NewPCG(3, 4))
		end := uint32(len(h.killed))
		for _, at := range h.ends[:len(h.ends)-1] {
			for field := range uint32(3) { // the size, its checksum, that of the payload
				f.Add(isLarge, damageOf(setNumber, uint32(at)+4*field, 1))
			}
		}
		for way := range byte(ways) {
			f.Add(isLarge, damageOf(way, random.Uint32N(end), random.Uint32N(end)))
		}
	}
	for at := range uint32(headerSize - 4) {
		f.Add(false, append(damageOf(flipBit, at, 3), damageOf(resealHeader, 0, 0)...))
	}
	f.Fuzz(func(t *testing.T, isLarge bool, program []byte) {
		h := small
		if isLarge {
			h = large
		}
		found, aside := openAny(t, damage(h.killed, program))
		if aside && len(found) > 0 {
			t.Errorf("the file was quarantined, and yet %v was found", found)
		}
		if !h.has(found) {
			t.Errorf("these are the records after no commit: %v", found)
		}
	})
}

// FuzzAnyFile opens files that no journal wrote.
func FuzzAnyFile(f *testing.F) {
	page, large, written := make([]byte, os.Getpagesize()), make([]byte, 1<<20), newHistory(f, 2, 3).killed
	for _, raw := range [][]byte{nil, {0}, page, large, []byte("a text\n"), written} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) { openAny(t, raw) })
}

// FuzzPayload opens files with a frame that has an arbitrary payload and the right checksums.
func FuzzPayload(f *testing.F) {
	put := appendRecord(nil, "events", "a", []byte("1"))
	for _, payload := range [][]byte{nil, put, appendRecord(put, "events", "a", nil), put[:5], {0xff, 0xff, 0xff, 0xff, 0x0f}} {
		f.Add(payload)
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		frame := append(make([]byte, frameHead), payload...)
		sealFrame(frame, int64(headerSize))
		openAny(t, append(encodeHeader(int64(headerSize+len(frame))), frame...))
	})
}

// TestOpen_DamagedAtRandom_FindsTheRecordsOfACommit damages a file at random places.
func TestOpen_DamagedAtRandom_FindsTheRecordsOfACommit(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	h, count := newHistory(t, 6, 150), 0
	size := uint32(len(h.closed))
	for range 40 {
		program := damageOf(byte(random.IntN(ways)), random.Uint32N(size), random.Uint32N(size))
		found, aside := openAny(t, damage(h.closed, program))
		if len(found) > 0 && !reflect.DeepEqual(found, h.last()) {
			t.Errorf("damage %v: these are not the records of the last commit: %v", program, found)
		}
		if aside {
			count++
		}
	}
	if count == 0 {
		t.Error("none of the 40 damaged files was quarantined: the test does no damage")
	}
}
