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
	"github.com/threeport/threeport-agent/internal/e2e/proxy"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
)

// stateFile returns the path of the agent's journal.
func (w *faultWorld) stateFile() string { return filepath.Join(w.state, "state.db") }

// The agent is killed 50 times under load, or 10 times with -short, at random moments.
func TestAgent_KilledFiftyTimes(t *testing.T) {
	t.Parallel()
	forEachProtocol(t, killedFiftyTimes)
}

func killedFiftyTimes(w *faultWorld) {
	random := seed(w.T)
	load := w.startLoad(seed(w.T), 20, w.deployWeb())
	for range repeats(50, 10) {
		w.Pause(time.Duration(random.Int64N(int64(2500 * time.Millisecond))))
		w.kill()
		w.launch()
	}
	load.stop()
	w.awaitAgreement()
}

// The agent is killed at moments that the test recognizes by an open request.
func TestAgent_KilledDuringRequests(t *testing.T) {
	t.Parallel()
	event := func(r proxy.Request) bool { return r.WritesToAny(upstream.WorkloadEvents) }
	for _, point := range []killPoint{
		{name: "a request for an Event's row has not been applied", matches: event},
		{name: "an Event's row has been created, but not answered", matches: event, applied: true},
		{
			name:    "a row has been updated, but not answered",
			matches: func(r proxy.Request) bool { return r.WritesToAny(upstream.WorkloadResourceInstances) }, applied: true,
		},
		{name: "the agent starts and reads the rows", matches: func(r proxy.Request) bool { return !r.IsWrite() }, starting: true},
		{name: "the agent stops, and its last Events have been created", matches: event, applied: true, stopping: true},
	} {
		t.Run(point.name, func(t *testing.T) {
			t.Parallel()
			forEachProtocol(t, func(w *faultWorld) {
				load := w.startLoad(seed(w.T), 20, w.deployWeb())
				w.await(10, "before the first kill", proxy.Request.IsAcceptedWrite)
				for range 2 {
					w.killAt(point)
					w.await(w.proxy.Count(proxy.Request.IsWrite)+10, "after the kill", proxy.Request.IsWrite)
				}
				load.stop()
				w.awaitAgreement()
			})
		})
	}
}

// killPoint is a moment at which the agent is killed.
type killPoint struct {
	name     string
	matches  func(proxy.Request) bool
	applied  bool // the control plane does what the request asks for, before the agent is killed
	starting bool // the agent is started just before
	stopping bool // the agent receives SIGTERM just before
}

// killAt kills the agent at a kill point, and starts it again.
func (w *faultWorld) killAt(at killPoint) {
	w.Helper()
	hold, reached := make(chan struct{}), make(chan struct{}, 1)
	w.proxy.SetScript(func(r proxy.Request) proxy.Fault {
		if !at.matches(r) {
			return proxy.Fault{}
		}
		select {
		case reached <- struct{}{}:
		default:
		}
		if at.applied {
			return proxy.Fault{Hold: hold}
		}
		return proxy.Fault{Hold: hold, Status: http.StatusServiceUnavailable}
	})
	if at.starting {
		w.kill()
		w.launch()
	}
	select {
	case <-reached:
	case <-w.Ctx.Done():
		w.Fatalf("the agent did not reach the kill point: %s", at.name)
	}
	if at.stopping {
		w.Must(w.agent.Signal(syscall.SIGTERM))
		_, err := w.agent.WaitFor(w.Ctx, "Stopping and waiting for leader election runnables")
		w.Must(err)
	}
	w.kill()
	close(hold)
	w.proxy.SetScript(nil)
	w.launch()
}

// The state is lost. The agent recovers it from the rows of the control plane.
func TestStateDir_Lost(t *testing.T) {
	t.Parallel()
	forEachProtocol(t, stateLost)
}

func stateLost(w *faultWorld) {
	load := w.startLoad(seed(w.T), 20, w.deployWeb())
	for range 3 {
		w.Pause(3 * time.Second)
		w.kill()
		w.Must(os.RemoveAll(w.state))
		w.Pause(time.Second)
		w.launch()
	}
	load.stop()
	w.awaitAgreement()
}

// The state is damaged. The agent quarantines it and starts anyway. The test opens a hundred damaged states; the agent itself
// starts with ten of them, or three with -short.
func TestStateDir_Torn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	random := seed(t)
	load := w.startLoad(seed(t), 20, w.deployWeb())
	w.await(40, "before the state is torn", proxy.Request.IsAcceptedWrite)
	w.kill()
	good, err := os.ReadFile(w.stateFile())
	w.Must(err)
	w.expectTornStatesRejected(random, good)
	for range repeats(10, 3) {
		text, err := os.ReadFile(w.stateFile())
		w.Must(err)
		torn, how := tear(random, text)
		w.Must(os.WriteFile(w.stateFile(), torn, 0o600))
		t.Logf("the agent starts with a state that is %s", how)
		w.launch()
		w.Pause(time.Duration(random.Int64N(int64(3 * time.Second))))
		w.kill()
	}
	load.stop()
	w.launch()
	w.awaitAgreement()
}

// tear damages a file in one place, and describes the damage.
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

// tables are the tables of the agent's state.
var tables = []string{"receipts", "pending", "dead", "gaps", "objects", "events", "ends", "changes"}

// expectTornStatesRejected damages a state in a hundred places, one at a time. Every record that can be read is unchanged.
func (w *faultWorld) expectTornStatesRejected(random *rand.Rand, killed []byte) {
	w.Helper()
	dir := filepath.Join(w.TempDir(), "good")
	// In the state of an agent that was killed, damage of the last commit looks as if the agent was killed before it.
	// Once a journal was closed, all of the state is protected.
	good := w.closedState(dir, killed)
	want := w.records(dir, good)
	if len(want) == 0 {
		w.Fatal("the agent's state has no records")
	}
	empty, damaged := 0, 0
	for i := range 100 {
		torn, how := tear(random, good)
		got := w.records(filepath.Join(w.TempDir(), fmt.Sprint(i)), torn)
		for key, value := range got {
			if before, ok := want[key]; !ok || before != value {
				w.Errorf("in a state that is %s, record %q is %q, want %q", how, key, value, before)
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
func (w *faultWorld) openState(dir string, state []byte) *journal.Journal {
	w.Helper()
	w.Must(os.MkdirAll(dir, 0o700))
	w.Must(os.WriteFile(filepath.Join(dir, "state.db"), state, 0o600))
	j, err := journal.Open(dir, logr.Discard())
	if err != nil {
		w.Fatalf("open a state: %v", err)
	}
	return j
}

// closedState returns the state of an agent after another one wrote to it and stopped.
func (w *faultWorld) closedState(dir string, killed []byte) []byte {
	w.Helper()
	j := w.openState(dir, killed)
	j.Put(tables[0], "of a test", []byte("{}"))
	w.Must(j.Close())
	closed, err := os.ReadFile(filepath.Join(dir, "state.db"))
	w.Must(err)
	return closed
}

// records opens a state, and returns its records. It expects that they are all in the agent's tables.
func (w *faultWorld) records(dir string, state []byte) map[string]string {
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
	w.Must(j.Close())
	return out
}
