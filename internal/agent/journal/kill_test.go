package journal

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"

	"github.com/threeport/threeport-agent/internal/testing/process"
)

// writerVariable has the directory, the seed and the first step of a process that writes until it is killed.
const writerVariable = "JOURNAL_TEST_WRITER"

// step returns change n of a sequence: of one record, and a deletion if value is nil.
func step(seed uint64, n int) (key string, value []byte) {
	random := rand.New(rand.NewPCG(seed, uint64(n)))
	key = fmt.Sprintf("uid-%03d", random.IntN(200))
	if random.IntN(4) == 0 {
		return key, nil
	}
	return key, fmt.Appendf(nil, "%d %s", n, strings.Repeat("x", random.IntN(2000)))
}

// writeUntilKilled prints "opened", and then the last step that is on disk, repeatedly.
func writeUntilKilled(where string) error {
	var (
		dir  string
		seed uint64
		next int
	)
	if _, err := fmt.Sscan(where, &dir, &seed, &next); err != nil {
		return err
	}
	j, err := Open(dir, logr.Discard())
	if err != nil {
		return err
	}
	j.disk.minGarbage = 100_000 // so that it compacts every few commits
	fmt.Println("opened")
	var done atomic.Int64
	done.Store(int64(next - 1))
	go func() {
		for tick := time.NewTicker(200 * time.Microsecond); ; next++ {
			if key, value := step(seed, next); value == nil {
				j.Delete("events", key)
			} else {
				j.Put("events", key, value)
			}
			done.Store(int64(next))
			<-tick.C
		}
	}()
	for {
		upTo := done.Load()
		if err := j.Sync(context.Background()); err != nil {
			return err
		}
		fmt.Println(upTo)
	}
}

// The next process finds the records after one of the steps, and after all steps for which Sync had returned.
func TestJournal_ProcessKilled_FindsTheRecordsOfACommit(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	dir, state, at := t.TempDir(), map[string][]byte{}, 0
	for range 30 {
		synced := killWriter(t, fmt.Sprintln(dir, seed, at+1), time.Duration(random.Int64N(int64(3*CommitDelay))))
		j, err := Open(dir, testr.New(t))
		if err != nil {
			t.Fatal(err)
		}
		found := j.Load("events")
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		for synced = max(synced, at); at < synced || !maps.EqualFunc(state, found, bytes.Equal); {
			if at++; at > synced+100_000 {
				t.Fatalf("the %d records on disk are not those after any step from %d on", len(found), synced)
			}
			if key, value := step(seed, at); value == nil {
				delete(state, key)
			} else {
				state[key] = value
			}
		}
		if len(quarantined(t, dir)) > 0 {
			t.Fatal("the file was quarantined")
		}
		t.Logf("killed after step %d, of which %d were synced", at, synced)
	}
	if at < 100 {
		t.Errorf("there were %d steps only: the test writes nothing", at)
	}
}

// killWriter starts a process that writes, kills it with a delay after it opened the journal, and returns the last step that
// the process printed.
func killWriter(t *testing.T, where string, after time.Duration) (synced int) {
	t.Helper()
	lines, err := process.KillSelf(t.Context(), writerVariable+"="+where, after)
	if err != nil || lines[0] != "opened" {
		t.Fatal(lines, err)
	}
	for _, line := range lines[1:] {
		if synced, err = strconv.Atoi(line); err != nil {
			t.Fatal(err)
		}
	}
	return synced
}
