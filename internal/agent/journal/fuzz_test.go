package journal

import (
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr"
)

// history is a file, and what it had after each commit.
type history struct {
	raw    []byte
	states []tables
}

// newHistory makes commits of so many changes each: new records, other values, removals. The largest records need
// several pages.
func newHistory(tb testing.TB, commits, changes int) history {
	tb.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	d := &disk{dir: tb.TempDir(), log: logr.Discard()}
	if _, err := d.start(); err != nil {
		tb.Fatal(err)
	}
	h := history{states: []tables{{}}}
	now := tables{}
	for range commits {
		batch := map[id][]byte{}
		for range changes {
			at := id{[]string{"events", "objects", "pending"}[random.IntN(3)], fmt.Sprintf("uid-%03d", random.IntN(2*changes))}
			if batch[at] = nil; random.IntN(4) > 0 {
				batch[at] = []byte(strings.Repeat("x", random.IntN(200)))
				if random.IntN(50) == 0 {
					batch[at] = make([]byte, 3*os.Getpagesize())
				}
			}
		}
		if err := d.write(batch); err != nil {
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
		h.states = append(h.states, copied(now))
	}
	raw, err := os.ReadFile(d.path())
	if err = errors.Join(err, d.close()); err != nil {
		tb.Fatal(err)
	}
	h.raw = raw
	return h
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

// has reports whether there was such a state.
func (h history) has(state tables) bool {
	for _, s := range h.states {
		if reflect.DeepEqual(s, state) {
			return true
		}
	}
	return false
}

// What a damage is: so many bytes each for what happens, where, and with what.
const (
	flipBit = iota
	cut
	zero
	setNumber
	copyPage
	reseal
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
		case setNumber: // of those that a header and an element have, of each size
			copy(raw[at/2*2:], order.AppendUint16(nil, uint16(with)))
		case copyPage:
			from := raw[with%len(raw)/pageSize*pageSize:]
			copy(raw[at/pageSize*pageSize:], from[:min(pageSize, len(from))])
		case reseal: // as if both meta pages were meant so
			for _, meta := range []int{0, pageSize} {
				if meta+headerSize+metaSize <= len(raw) {
					sum := fnv.New64a()
					_, _ = sum.Write(raw[meta+headerSize : meta+headerSize+metaSize-8])
					order.PutUint64(raw[meta+headerSize+metaSize-8:], sum.Sum64())
				}
			}
		}
	}
	return raw
}

// openAny checks that a file can be opened, and that the journal works then. It returns what the file had, and whether
// it was put aside.
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
		found = copied(j.loaded)
		aside = len(putAside(t, dir)) > 0
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
		if got := copied(j.loaded); !reflect.DeepEqual(got, want) {
			t.Errorf("the next journal has %v, want %v", got, want)
		}
		if err := j.Close(); err != nil {
			t.Error(err)
		}
		if !aside && len(putAside(t, dir)) > 0 {
			t.Error("the next journal puts the file aside")
		}
	})
	return found, aside
}

// FuzzDamagedFile damages files that journals wrote. What comes back is the state after some commit, or nothing, and
// then the file is put aside.
func FuzzDamagedFile(f *testing.F) {
	small, large := newHistory(f, 3, 4), newHistory(f, 6, 150)
	for _, isLarge := range []bool{false, true} {
		h, step := small, uint32(1)
		if isLarge {
			h, step = large, 8
		}
		random := rand.New(rand.NewPCG(3, 4))
		end, pageSize := uint32(len(h.raw)), uint32(os.Getpagesize())
		for at := uint32(0); at < end; at += step * pageSize {
			f.Add(isLarge, damageOf(flipBit, at+10, 1))                       // the count of elements
			f.Add(isLarge, damageOf(setNumber, at+headerSize+8, at/pageSize)) // a branch that leads to itself
		}
		for way := range byte(ways) {
			f.Add(isLarge, damageOf(way, random.Uint32N(end), random.Uint32N(end)))
		}
	}
	for field := uint32(8); field < metaSize-8; field += 4 {
		f.Add(false, append(damageOf(setNumber, headerSize+field, 3), damageOf(reseal, 0, 0)...))
	}
	f.Fuzz(func(t *testing.T, isLarge bool, program []byte) {
		h := small
		if isLarge {
			h = large
		}
		found, aside := openAny(t, damage(h.raw, program))
		if aside && len(found) > 0 {
			t.Errorf("the file was put aside, and yet %v was found", found)
		}
		if !h.has(found) {
			t.Errorf("there was never a commit of %v", found)
		}
	})
}

// FuzzAnyFile opens what was never a state file.
func FuzzAnyFile(f *testing.F) {
	page, large, written := make([]byte, os.Getpagesize()), make([]byte, 1<<20), newHistory(f, 2, 3).raw
	for _, raw := range [][]byte{nil, {0}, page, large, []byte("a text\n"), written} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) { openAny(t, raw) })
}

// TestDamagedFile damages a file at places that nobody chose.
func TestDamagedFile(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	h, asides := newHistory(t, 6, 150), 0
	size := uint32(len(h.raw))
	for range 40 {
		program := damageOf(byte(random.IntN(ways)), random.Uint32N(size), random.Uint32N(size))
		found, aside := openAny(t, damage(h.raw, program))
		if !h.has(found) {
			t.Errorf("damage %v: there was never a commit of %v", program, found)
		}
		if aside {
			asides++
		}
	}
	if asides == 0 {
		t.Error("of 40 damaged files none was put aside: the test damages nothing")
	}
}
