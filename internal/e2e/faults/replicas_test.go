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
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
	"github.com/threeport/threeport-agent/internal/testing/postgres"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// The agent, two replicas of the control plane and their PostgreSQL are killed at any moment, under load.
func TestControlPlane_ReplicasKilled(t *testing.T) {
	t.Parallel()
	if err := postgres.Find(); err != nil {
		t.Log("Not tested:", err)
		return
	}
	for _, delivery := range []way{inSets, inV0Only} {
		t.Run(delivery.name, func(t *testing.T) {
			t.Parallel()
			r := newReplicas(t, delivery)
			random := seed(t)
			objects := r.deployWeb()
			// Who was told of an object first is not known of a replica that is killed meanwhile.
			r.agree(patience)
			load := r.startLoad(seed(t), 20, objects)
			kills := r.kills(random, objects[0])
			for _, i := range random.Perm(len(kills)) {
				r.let(randomUpTo(random, 2*time.Second))
				kills[i]()
			}
			r.expectEachServes()
			load.stop()
			r.lookAt(r.members[random.IntN(len(r.members))].url)
			r.agree(patience)
			if delivery.name == inSets.name { // v0 has nothing by which it could refuse what is late
				r.expectLateSetsChangeNothing(random)
				r.agree(patience)
			}
		})
	}
}

// replicas is a world whose control plane are two processes on one PostgreSQL. The agent has one address for both.
type replicas struct {
	*world
	server  *postgres.Server
	members [2]replica
}

type replica struct {
	process *process.Process
	url     string
}

func newReplicas(t *testing.T, delivery way) *replicas {
	t.Helper()
	r := &replicas{world: newWorldWithoutControlPlane(t, takeCluster(t), delivery)}
	var err error
	// It waits for its disk, as it has to where it may be killed.
	r.server, err = postgres.Start(r.ctx, postgres.Options{})
	r.must(err)
	t.Cleanup(func() {
		if err := r.server.Stop(); err != nil {
			t.Error(err)
		}
	})
	r.database, err = r.server.CreateDatabase(r.ctx, "controlplane", "")
	r.must(err)
	for i := range r.members {
		r.startMember(i)
	}
	r.begin(r.members[0].url)
	r.start()
	return r
}

// startMember starts a member, again if it ends while the database is not there yet.
func (r *replicas) startMember(i int) {
	r.Helper()
	r.eventually(patience, "a replica to start", func() error {
		started := r.startControlPlane("--bind-address=127.0.0.1:0", "--auth-enabled=false")
		url, err := started.URL(r.ctx)
		r.members[i] = replica{started, url}
		return err
	})
	r.proxy.lead(r.members[i].url, true)
}

// moment is when something is killed, by the function that it gets.
type moment func(kill func())

// anyMoment is now.
func anyMoment(kill func()) { kill() }

// atAnAnswer is when a replica has just answered that it took a report: what it has not on disk by then is lost.
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
	r.proxy.setScript(func(q request) fault {
		if !q.write() {
			return fault{}
		}
		return fault{taken: killOnce}
	})
	select {
	case <-done:
	case <-r.ctx.Done():
		r.Fatal("nothing was answered")
	}
	r.proxy.setScript(nil)
}

// killMembers kills members at once, which is noticed on the way to them at once or late, and starts others in their
// places.
func (r *replicas) killMembers(random *rand.Rand, at moment, members ...int) {
	r.Helper()
	at(func() {
		for _, i := range members {
			r.members[i].process.Kill()
		}
	})
	r.let(randomUpTo(random, 200*time.Millisecond)) // they are asked all the same
	for _, i := range members {
		r.proxy.lead(r.members[i].url, false)
	}
	r.let(randomUpTo(random, time.Second))
	for _, i := range members {
		r.startMember(i)
	}
	r.expectKept()
}

// killDatabase kills PostgreSQL and starts it again on its files. Its port may be somebody else's for a moment.
func (r *replicas) killDatabase(random *rand.Rand, at moment) {
	r.Helper()
	at(r.server.Kill)
	r.let(randomUpTo(random, 2*time.Second))
	r.eventually(patience, "PostgreSQL to start again", func() error { return r.server.Restart(r.ctx) })
	r.expectKept()
}

// expectKept expects all that was accepted so far. An agent that starts again makes up for what is lost, so that it does
// not show in the end.
func (r *replicas) expectKept() {
	r.Helper()
	accepted := r.proxy.accepted()
	var held oracle.History
	r.eventually(patience, "a replica to say what it holds", func() (err error) {
		held, err = oracle.Read(r.ctx, upstream.API{URL: r.members[0].url})
		return err
	})
	if differences := oracle.CheckRetained(held, accepted); len(differences) > 0 {
		r.Fatalf("%d of %d writes are lost, the first: %s", len(differences), len(accepted), differences[0])
	}
}

// killAfterExpiry kills the agent when it can reach no replica and has an Event on its disk that the cluster has not any
// more.
func (r *replicas) killAfterExpiry(about *unstructured.Unstructured, name string) {
	r.Helper()
	r.leadToAll(false)
	expired := r.happen(about, name+"-expired")
	r.awaitInState(expired.UID)
	// What comes after is committed after.
	r.awaitInState(r.happen(about, name+"-next").UID)
	r.must(r.client.CoreV1().Events(r.namespace).Delete(r.ctx, expired.Name, metav1.DeleteOptions{}))
	r.kill()
	r.launch()
	r.leadToAll(true)
}

func (r *replicas) leadToAll(there bool) {
	for _, member := range r.members {
		r.proxy.lead(member.url, there)
	}
}

// awaitInState waits until the agent's state has something of an Event, which need not be committed yet.
func (r *replicas) awaitInState(event types.UID) {
	r.Helper()
	r.eventually(patience, "the Event to be in the agent's state", func() error {
		text, err := os.ReadFile(r.stateFile())
		if err == nil && !bytes.Contains(text, []byte(event)) {
			err = errors.New("it is not")
		}
		return err
	})
}

// kills are what is to be killed, each as often as it is to be: the agent, each of the replicas, both, PostgreSQL.
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

// expectLateSetsChangeNothing sends some sets again that were accepted, in any order and to any replica.
func (r *replicas) expectLateSetsChangeNothing(random *rand.Rand) {
	r.Helper()
	sets := r.proxy.sent(func(q request) bool { return q.write() && q.accepted })
	const some = 200
	for _, i := range random.Perm(len(sets))[:min(len(sets), some)] {
		got, err := r.proxy.send(sets[i], r.members[random.IntN(len(r.members))].url)
		r.must(err)
		var answer threeport.ReportSetAnswer
		r.must(json.Unmarshal(got.body, &answer))
		for n, item := range answer.Items {
			if item.Outcome == threeport.OutcomeCreated || item.Outcome == threeport.OutcomeUpdated {
				r.Fatalf("%s %s came again: it was %s, expected it to change nothing", sets[i].told[n].Path, sets[i].told[n].Body, item.Outcome)
			}
		}
		if !got.ok() || len(answer.Items) != len(sets[i].told) {
			r.Fatalf("a set of %d reports was answered %d %.200s", len(sets[i].told), got.status, got.body)
		}
	}
}

// lookAt makes the test itself ask one of the replicas from now on.
func (w *world) lookAt(url string) {
	w.api = upstream.API{URL: url}
	w.upstream.API = w.api
}

// expectEachServes expects that each of the members takes reports while the other is away.
func (r *replicas) expectEachServes() {
	r.Helper()
	accepted := func(r request) bool { return r.write() && r.accepted }
	for i, away := range r.members {
		r.proxy.lead(away.url, false)
		away.process.Kill()
		r.await(patience, r.proxy.count(accepted)+5, "while one replica is away", accepted)
		r.startMember(i)
	}
}

func randomUpTo(random *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(random.Int64N(int64(most)))
}

// The control plane is replaced by one that knows no report sets, and that by one that does, under load and on the same
// database: the agent falls back and comes back.
func TestProtocol_ReportSetsComeAndGo(t *testing.T) {
	t.Parallel()
	w := newWorldWithoutControlPlane(t, takeCluster(t), inSets)
	control, url := w.startAnotherControlPlane()
	w.begin(url)
	w.start()
	load := w.startLoad(seed(t), 20, w.deployWeb())
	replace := func(delivery way) {
		w.way = delivery
		control.Kill()
		w.proxy.lead(url, false)
		control, url = w.startAnotherControlPlane()
		w.api = upstream.API{URL: url}
	}
	for _, restarted := range []bool{false, true} {
		w.expectSets(true)
		replace(inV0)
		w.expectSets(false)
		replace(inSets)
		if restarted { // it asks at once, else after half a minute
			w.kill()
			w.launch()
		}
	}
	w.expectSets(true)
	load.stop()
	w.agree(patience)
}

// expectSets waits until much was accepted in sets, or in v0, after the agent said that it delivers so.
func (w *world) expectSets(want bool) {
	w.Helper()
	mode := 0.0
	if want {
		mode = 1
	}
	w.eventually(patience, fmt.Sprintf("report sets to be %t", want), func() error {
		page, _, err := fetch(w.ctx, w.metrics+"/metrics")
		if err != nil {
			return err
		}
		if got, err := metric(page, "threeport_agent_report_sets"); err != nil || got != mode {
			return fmt.Errorf("the metric is %v: %w", got, err)
		}
		return nil
	})
	accepted := func(r request) bool { return r.write() && r.accepted && r.asWrite().IsReportSet() == want }
	w.await(patience, w.proxy.count(accepted)+20, "accepted in this way", accepted)
}
