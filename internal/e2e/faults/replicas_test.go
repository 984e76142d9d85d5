package faults

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/e2e/oracle"
	"github.com/threeport/threeport-agent/internal/e2e/process"
	"github.com/threeport/threeport-agent/internal/e2e/proxy"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
	"github.com/threeport/threeport-agent/internal/testing/postgres"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// The agent, two replicas of the control plane and their PostgreSQL are killed at random moments under load.
func TestControlPlane_ReplicasKilled(t *testing.T) {
	t.Parallel()
	if err := postgres.Installed(); err != nil {
		t.Log("Not tested:", err)
		return
	}
	for _, delivery := range []protocol{reportSets, v0WithoutProbe} {
		t.Run(delivery.name, func(t *testing.T) {
			t.Parallel()
			r := newReplicas(t, delivery)
			random := seed(t)
			objects := r.deployWeb()
			// With a replica that is killed, the order of acceptance is unknown.
			r.awaitAgreement()
			load := r.startLoad(seed(t), 20, objects)
			kills := r.kills(random, objects[0])
			for _, i := range random.Perm(len(kills)) {
				r.Pause(randomUpTo(random, 2*time.Second))
				kills[i]()
			}
			r.expectEachServes()
			load.stop()
			r.Upstream.API = upstream.API{URL: r.members[random.IntN(len(r.members))].url}
			r.awaitAgreement()
			if delivery.name == reportSets.name { // a request of v0 has no version, so v0 cannot reject late ones
				r.expectLateSetsChangeNothing(random)
				r.awaitAgreement()
			}
		})
	}
}

// replicas is a world with two control-plane processes on one PostgreSQL. The agent has one address for both.
type replicas struct {
	*faultWorld
	server  *postgres.Server
	members [2]replica
}

type replica struct {
	process *process.Process
	url     string
}

func newReplicas(t *testing.T, delivery protocol) *replicas {
	t.Helper()
	r := &replicas{faultWorld: newWorldWithoutControlPlane(t, shared.clusters.Take(t), delivery)}
	var err error
	// The database waits for its disk, so that a kill loses no committed data.
	r.server, err = postgres.Start(r.Ctx, postgres.Options{})
	r.Must(err)
	t.Cleanup(func() {
		if err := r.server.Stop(); err != nil {
			t.Error(err)
		}
	})
	r.database, err = r.server.CreateDatabase(r.Ctx, "controlplane", "")
	r.Must(err)
	for i := range r.members {
		r.startMember(i)
	}
	r.setUp(r.members[0].url)
	r.start()
	return r
}

// startMember starts a member, and repeats that if it ends because the database is not ready.
func (r *replicas) startMember(i int) {
	r.Helper()
	r.Eventually("a replica to start", func() error {
		started := r.startControlPlane("--bind-address=127.0.0.1:0", "--auth-enabled=false")
		url, err := started.URL(r.Ctx)
		r.members[i] = replica{started, url}
		return err
	})
	r.proxy.AddBackend(r.members[i].url)
}

// moment calls a kill function at some moment.
type moment func(kill func())

// anyMoment kills immediately.
func anyMoment(kill func()) { kill() }

// atAnAnswer kills right after a replica has accepted a report, so that a report which is not on disk by then is lost.
func (r *replicas) atAnAnswer(kill func()) {
	r.Helper()
	var once sync.Once
	done := make(chan struct{})
	killOnce := func() {
		once.Do(func() {
			kill()
			close(done)
		})
	}
	r.proxy.SetScript(func(q proxy.Request) proxy.Fault {
		if !q.IsWrite() {
			return proxy.Fault{}
		}
		return proxy.Fault{Applied: killOnce}
	})
	select {
	case <-done:
	case <-r.Ctx.Done():
		r.Fatal("the control plane accepted no report")
	}
	r.proxy.SetScript(nil)
}

// killMembers kills members, whose connections fail at once or later, and starts new ones on their addresses.
func (r *replicas) killMembers(random *rand.Rand, at moment, members ...int) {
	r.Helper()
	at(func() {
		for _, i := range members {
			r.members[i].process.Kill()
		}
	})
	r.Pause(randomUpTo(random, 200*time.Millisecond)) // the proxy still forwards requests to them
	for _, i := range members {
		r.proxy.RemoveBackend(r.members[i].url)
	}
	r.Pause(randomUpTo(random, time.Second))
	for _, i := range members {
		r.startMember(i)
	}
	r.expectRetained()
}

// killDatabase kills PostgreSQL and restarts it on its files. Another process may have its port for a moment.
func (r *replicas) killDatabase(random *rand.Rand, at moment) {
	r.Helper()
	at(r.server.Kill)
	r.Pause(randomUpTo(random, 2*time.Second))
	r.Eventually("PostgreSQL to start again", func() error { return r.server.Restart(r.Ctx) })
	r.expectRetained()
}

// expectRetained expects all accepted writes so far. A restarted agent would send lost ones again, so the final check cannot
// find them.
func (r *replicas) expectRetained() {
	r.Helper()
	accepted := r.proxy.Accepted()
	var held oracle.History
	r.Eventually("the rows of a replica", func() (err error) {
		held, err = oracle.Read(r.Ctx, upstream.API{URL: r.members[0].url})
		return err
	})
	if differences := oracle.CheckRetained(held, accepted); len(differences) > 0 {
		r.Fatalf("%d of %d writes are lost, the first: %s", len(differences), len(accepted), differences[0])
	}
}

// killAfterExpiry kills the agent while it reaches no replica and has an expired Event on its disk.
func (r *replicas) killAfterExpiry(about *unstructured.Unstructured, name string) {
	r.Helper()
	r.setReachable(false)
	expired := r.createEvent(about, name+"-expired")
	r.awaitInState(expired.UID)
	// The journal commits in order.
	r.awaitInState(r.createEvent(about, name+"-next").UID)
	r.Must(r.Client.CoreV1().Events(r.Namespace).Delete(r.Ctx, expired.Name, metav1.DeleteOptions{}))
	r.kill()
	r.launch()
	r.setReachable(true)
}

func (r *replicas) setReachable(reachable bool) {
	for _, member := range r.members {
		if reachable {
			r.proxy.AddBackend(member.url)
		} else {
			r.proxy.RemoveBackend(member.url)
		}
	}
}

// awaitInState waits until the agent's state contains an Event. It need not be committed yet.
func (r *replicas) awaitInState(event types.UID) {
	r.Helper()
	r.Eventually("the Event to be in the agent's state", func() error {
		text, err := os.ReadFile(r.stateFile())
		if err == nil && !bytes.Contains(text, []byte(event)) {
			err = errors.New("the file does not contain it")
		}
		return err
	})
}

// kills returns the kills of a test: of the agent, of each replica, of both, and of PostgreSQL.
func (r *replicas) kills(random *rand.Rand, about *unstructured.Unstructured) []func() {
	var all []func()
	moments := []moment{anyMoment, r.atAnAnswer}
	for i := range repeats(7, 2) {
		at := moments[i%len(moments)]
		all = append(all,
			func() { r.kill(); r.launch() },
			func() { r.killMembers(random, at, 0) },
			func() { r.killMembers(random, at, 1) },
			func() { r.killMembers(random, at, 0, 1) })
	}
	for i, at := range moments {
		all = append(all,
			func() { r.killAfterExpiry(about, fmt.Sprint("event-", i)) },
			func() { r.killDatabase(random, at) })
	}
	return all
}

// expectLateSetsChangeNothing sends some accepted sets again, in random order to random replicas. An agent that starts while it
// reaches no replica begins with requests of v0, which have no versions.
func (r *replicas) expectLateSetsChangeNothing(random *rand.Rand) {
	r.Helper()
	sets := r.proxy.Sent(func(q proxy.Request) bool { return q.IsReportSet() && q.IsAcceptedWrite() })
	if len(sets) == 0 {
		r.Fatal("the control plane accepted no report set")
	}
	const some = 200
	for _, i := range random.Perm(len(sets))[:min(len(sets), some)] {
		got, err := r.proxy.Send(sets[i], r.members[random.IntN(len(r.members))].url)
		r.Must(err)
		var answer threeport.ReportSetAnswer
		r.Must(json.Unmarshal(got.Body, &answer))
		for n, item := range answer.Items {
			if item.Outcome == threeport.OutcomeCreated || item.Outcome == threeport.OutcomeUpdated {
				r.Fatalf("the control plane answered a repeat of %s %s with %s, want no change", sets[i].Writes[n].Path, sets[i].Writes[n].Body, item.Outcome)
			}
		}
		if !got.OK() || len(answer.Items) != len(sets[i].Writes) {
			r.Fatalf("the control plane answered a set of %d reports with %d %.200s", len(sets[i].Writes), got.Status, got.Body)
		}
	}
}

// expectEachServes expects that each member accepts reports while the other is down.
func (r *replicas) expectEachServes() {
	r.Helper()
	accepted := proxy.Request.IsAcceptedWrite
	for i, away := range r.members {
		r.proxy.RemoveBackend(away.url)
		away.process.Kill()
		r.await(r.proxy.Count(accepted)+5, "while one replica is away", accepted)
		r.startMember(i)
	}
}

func randomUpTo(random *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(random.Int64N(int64(most)))
}

// Under load, the control plane is replaced by one without report sets on the same database, and that one by one with them.
// The agent falls back to v0 and returns to report sets.
func TestProtocol_ReportSetsComeAndGo(t *testing.T) {
	t.Parallel()
	w := newWorldWithoutControlPlane(t, shared.clusters.Take(t), reportSets)
	control, url := w.startAnotherControlPlane()
	w.setUp(url)
	w.start()
	load := w.startLoad(seed(t), 20, w.deployWeb())
	replace := func(delivery protocol) {
		w.protocol = delivery
		control.Kill()
		w.proxy.RemoveBackend(url)
		control, url = w.startAnotherControlPlane()
		w.Upstream.API = upstream.API{URL: url}
	}
	for _, restarted := range []bool{false, true} {
		w.expectSets(true)
		replace(v0)
		w.expectSets(false)
		replace(reportSets)
		if restarted { // the agent probes at its start; without a restart after half a minute
			w.kill()
			w.launch()
		}
	}
	w.expectSets(true)
	load.stop()
	w.awaitAgreement()
}

// expectSets waits until the agent has changed its protocol and many of its reports were accepted.
func (w *faultWorld) expectSets(want bool) {
	w.Helper()
	mode := 0.0
	if want {
		mode = 1
	}
	w.Eventually(fmt.Sprintf("the use of report sets to be %t", want), func() error {
		got, err := w.agent.Metric(w.Ctx, "threeport_agent_report_sets")
		if err == nil && got != mode {
			err = fmt.Errorf("the metric is %v", got)
		}
		return err
	})
	accepted := func(r proxy.Request) bool { return r.IsAcceptedWrite() && r.IsReportSet() == want }
	w.await(w.proxy.Count(accepted)+20, "accepted in this way", accepted)
}
