package faults

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/threeport/threeport-agent/internal/agent/journal"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
)

// stateFile is where the agent keeps what it must not forget.
func (w *world) stateFile() string { return filepath.Join(w.state, "state.db") }

// The agent is killed 50 times under load, or 10 with -short, at any moment of its life.
func TestAgent_KilledFiftyTimes(t *testing.T) {
	t.Parallel()
	inBothWays(t, killedFiftyTimes)
}

func killedFiftyTimes(w *world) {
	random := seed(w.T)
	load := w.startLoad(seed(w.T), 20, w.deployWeb())
	for range repeats(50, 10) {
		w.let(time.Duration(random.Int64N(int64(2500 * time.Millisecond))))
		w.kill()
		w.launch()
	}
	load.stop()
	w.agree(patience)
}

// The agent is killed at points of its life that an outside can name: by what is on its way to the control plane.
func TestAgent_KilledDuringRequests(t *testing.T) {
	t.Parallel()
	event := func(r request) bool { return r.tellsOf(upstream.WorkloadEvents) }
	for _, point := range []point{
		{name: "an Event's row is asked for, and not made", matches: event},
		{name: "an Event's row is made, and the agent not told", matches: event, applied: true},
		{
			name:    "a row is updated, and the agent not told",
			matches: func(r request) bool { return r.tellsOf(upstream.WorkloadResourceInstances) }, applied: true,
		},
		{name: "the agent starts, and reads what there is", matches: func(r request) bool { return !r.write() }, starting: true},
		{name: "the agent stops, and its last Events are made", matches: event, applied: true, stopping: true},
	} {
		t.Run(point.name, func(t *testing.T) {
			t.Parallel()
			inBothWays(t, func(w *world) {
				load := w.startLoad(seed(w.T), 20, w.deployWeb())
				w.await(patience, 10, "before the first kill", func(r request) bool { return r.write() && r.accepted })
				for range 2 {
					w.killAt(point)
					w.await(patience, w.proxy.count(request.write)+10, "after the kill", request.write)
				}
				load.stop()
				w.agree(patience)
			})
		})
	}
}

// point is a moment of the agent's life.
type point struct {
	name     string
	matches  func(request) bool
	applied  bool // the control plane does what the request asks for, before the agent is killed
	starting bool // the agent is started just before
	stopping bool // it is told to stop just before
}

// killAt kills the agent when it is there, and starts it again.
func (w *world) killAt(at point) {
	w.Helper()
	hold, reached := make(chan struct{}), make(chan struct{}, 1)
	w.proxy.setScript(func(r request) fault {
		if !at.matches(r) {
			return fault{}
		}
		select {
		case reached <- struct{}{}:
		default:
		}
		if at.applied {
			return fault{hold: hold}
		}
		return fault{hold: hold, status: http.StatusServiceUnavailable}
	})
	if at.starting {
		w.kill()
		w.launch()
	}
	select {
	case <-reached:
	case <-w.ctx.Done():
		w.Fatal("the point was not reached")
	}
	if at.stopping {
		w.must(w.agent.Signal(syscall.SIGTERM))
		_, err := w.agent.WaitFor(w.ctx, "Stopping and waiting for leader election runnables")
		w.must(err)
	}
	w.kill()
	close(hold)
	w.proxy.setScript(nil)
	w.launch()
}

// The state is lost: what the control plane has tells what was reported.
func TestStateDir_Lost(t *testing.T) {
	t.Parallel()
	inBothWays(t, stateLost)
}

func stateLost(w *world) {
	load := w.startLoad(seed(w.T), 20, w.deployWeb())
	for range 3 {
		w.let(3 * time.Second)
		w.kill()
		w.must(os.RemoveAll(w.state))
		w.let(time.Second)
		w.launch()
	}
	load.stop()
	w.agree(patience)
}

// A torn state is quarantined, and the agent starts all the same. A hundred states are opened as the agent does it; the
// agent itself starts with ten, or three with -short.
func TestStateDir_Torn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	random := seed(t)
	load := w.startLoad(seed(t), 20, w.deployWeb())
	w.await(patience, 40, "before the state is torn", func(r request) bool { return r.write() && r.accepted })
	w.kill()
	good, err := os.ReadFile(w.stateFile())
	w.must(err)
	w.expectNothingWrong(random, good)
	for range repeats(10, 3) {
		text, err := os.ReadFile(w.stateFile())
		w.must(err)
		torn, how := tear(random, text)
		w.must(os.WriteFile(w.stateFile(), torn, 0o600))
		t.Logf("the agent starts with a state that is %s", how)
		w.launch()
		w.let(time.Duration(random.Int64N(int64(3 * time.Second))))
		w.kill()
	}
	load.stop()
	w.launch()
	w.agree(patience)
}

// tear damages a file in one place, and says how.
func tear(random *rand.Rand, text []byte) (torn []byte, how string) {
	torn = bytes.Clone(text)
	at := random.IntN(len(torn))
	switch random.IntN(4) {
	case 0:
		return torn[:at], fmt.Sprintf("cut off at %d of %d", at, len(torn))
	case 1:
		torn[at] ^= 1 << random.IntN(8)
		return torn, fmt.Sprintf("wrong in a bit at %d of %d", at, len(torn))
	case 2:
		n := min(len(torn)-at, 512)
		clear(torn[at : at+n])
		return torn, fmt.Sprintf("zero for %d bytes at %d of %d", n, at, len(torn))
	default:
		for i := at; i < len(torn); i++ {
			torn[i] = byte(random.Uint32())
		}
		return torn, fmt.Sprintf("garbage from %d of %d", at, len(torn))
	}
}

// tables are the agent's tables.
var tables = []string{"receipts", "pending", "dead", "gaps", "objects", "events", "ends", "changes"}

// expectNothingWrong opens a state that is torn in a hundred places: each record that is read was written.
func (w *world) expectNothingWrong(random *rand.Rand, killed []byte) {
	w.Helper()
	dir := filepath.Join(w.TempDir(), "good")
	// In the state of an agent that was killed, damage of the last commit looks as if the agent was killed before it.
	// Once a journal was closed, all of the state is protected.
	good := w.closedState(dir, killed)
	want := w.records(dir, good)
	if len(want) == 0 {
		w.Fatal("the state has no records")
	}
	empty, damaged := 0, 0
	for i := range 100 {
		torn, how := tear(random, good)
		got := w.records(filepath.Join(w.TempDir(), fmt.Sprint(i)), torn)
		for key, value := range got {
			if before, ok := want[key]; !ok || before != value {
				w.Errorf("with a state that is %s, %q is %q, it was %q", how, key, value, before)
				damaged++
			}
		}
		if len(got) == 0 {
			empty++
		}
	}
	w.Logf("of 100 torn states with %d records, %d were quarantined, and %d records were wrong", len(want), empty, damaged)
}

// openState opens a state as the agent does.
func (w *world) openState(dir string, state []byte) *journal.Journal {
	w.Helper()
	w.must(os.MkdirAll(dir, 0o700))
	w.must(os.WriteFile(filepath.Join(dir, "state.db"), state, 0o600))
	j, err := journal.Open(dir, logr.Discard())
	if err != nil {
		w.Fatalf("open a state: %v", err)
	}
	return j
}

// closedState returns the state of an agent after another one wrote to it and stopped.
func (w *world) closedState(dir string, killed []byte) []byte {
	w.Helper()
	j := w.openState(dir, killed)
	j.Put(tables[0], "of a test", []byte("{}"))
	w.must(j.Close())
	closed, err := os.ReadFile(filepath.Join(dir, "state.db"))
	w.must(err)
	return closed
}

// records opens a state, and returns its records. It expects that they are all in the agent's tables.
func (w *world) records(dir string, state []byte) map[string]string {
	w.Helper()
	j := w.openState(dir, state)
	out := map[string]string{}
	for _, table := range tables {
		for key, value := range j.Load(table) {
			out[table+"/"+key] = string(value)
			j.Delete(table, key)
		}
	}
	if left := j.Bytes(); left > 0 {
		w.Errorf("the state has %d bytes in tables that this test does not know", left)
	}
	w.must(j.Close())
	return out
}
