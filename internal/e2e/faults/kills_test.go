package faults

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
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

// The state of a killed agent is damaged. The next agent quarantines it, or loses the last commit, and starts anyway. The test
// opens hundreds of damaged states; the agent itself starts with ten of them, or three with -short.
func TestStateDir_Torn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	random := seed(t)
	load := w.startLoad(seed(t), 20, w.deployWeb())
	w.await(40, "before the state is torn", proxy.Request.IsAcceptedWrite)
	w.kill()
	good, err := os.ReadFile(w.stateFile())
	w.Must(err)
	w.expectTornStatesRejected(random, "killed", good)
	w.expectTornStatesRejected(random, "stopped", w.closedState(filepath.Join(w.TempDir(), "closed"), good))
	for range repeats(10, 3) {
		how := "missing" // the agent was killed before it had replaced a file that it quarantined
		text, err := os.ReadFile(w.stateFile())
		if !errors.Is(err, os.ErrNotExist) {
			w.Must(err)
			var torn []byte
			torn, how = tear(random, text)
			w.Must(os.WriteFile(w.stateFile(), torn, 0o600))
		}
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
var tables = []string{"receipts", "pending", "dead", "gaps", "objects"}

// expectTornStatesRejected damages a state in a hundred places, one at a time, and twenty times in the commits that the header
// does not protect yet. The next journal has no records then, or exactly those after a commit. It may lose only unprotected
// commits: to the journal, their damage looks as if the agent was killed before them.
func (w *faultWorld) expectTornStatesRejected(random *rand.Rand, agent string, state []byte) {
	w.Helper()
	want, protected := w.commits(state)
	if len(want[0]) == 0 {
		w.Fatalf("the state of a %s agent has no records", agent)
	}
	quarantined, whole := 0, 0
	for i := range 120 {
		begin := 0
		if i >= 100 {
			if begin = protected; begin == len(state) {
				break
			}
		}
		torn, how := tear(random, state[begin:])
		got := w.records(w.TempDir(), append(bytes.Clone(state[:begin]), torn...))
		isOne := func(commit map[string]string) bool { return maps.Equal(got, commit) }
		switch {
		case len(got) == 0:
			quarantined++
		case slices.ContainsFunc(want, isOne):
			whole++
		default:
			w.Errorf("the state of a %s agent is %s, counted from %d: the %d records are those after no commit: %v", agent, how, begin, len(got), got)
		}
	}
	w.Logf("the state of a %s agent has %d records, and %d of %d bytes are protected: %d torn states were quarantined, %d had the records after a commit",
		agent, len(want[len(want)-1]), protected, len(state), quarantined, whole)
}

// commits returns the records after each commit from the last protected one on, and the number of protected bytes. The format
// is described in package journal.
func (w *faultWorld) commits(state []byte) (records []map[string]string, protected int) {
	w.Helper()
	const offsetOfSynced, frameHead = 12, 12
	protected = int(binary.BigEndian.Uint64(state[offsetOfSynced:]))
	for end := protected; end <= len(state); {
		records = append(records, w.records(w.TempDir(), state[:end]))
		if end+frameHead > len(state) {
			break
		}
		end += frameHead + int(binary.BigEndian.Uint32(state[end:]))
	}
	return records, protected
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
