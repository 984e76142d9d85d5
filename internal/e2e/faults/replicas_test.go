package faults

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/hack/postgres"
	"github.com/threeport/threeport-agent/internal/e2e/process"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
)

// The agent, two replicas of the control plane and their PostgreSQL are killed at any moment, under load.
func TestReplicasKilled(t *testing.T) {
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
			kills := r.kills(random)
			for _, i := range random.Perm(len(kills)) {
				r.let(randomUpTo(random, 2*time.Second))
				kills[i]()
			}
			r.expectEachServes()
			load.stop()
			r.lookAt(r.members[random.IntN(len(r.members))].url)
			r.agree(patience)
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

// killMembers kills members at once, which is noticed on the way to them at once or late, and starts others in their
// places.
func (r *replicas) killMembers(random *rand.Rand, members ...int) {
	r.Helper()
	for _, i := range members {
		r.members[i].process.Kill()
	}
	r.let(randomUpTo(random, 200*time.Millisecond)) // they are asked all the same
	for _, i := range members {
		r.proxy.lead(r.members[i].url, false)
	}
	r.let(randomUpTo(random, time.Second))
	for _, i := range members {
		r.startMember(i)
	}
}

// killDatabase kills PostgreSQL and starts it again on its files. Its port may be somebody else's for a moment.
func (r *replicas) killDatabase(random *rand.Rand) {
	r.Helper()
	r.server.Kill()
	r.let(randomUpTo(random, 2*time.Second))
	r.eventually(patience, "PostgreSQL to start again", func() error { return r.server.Restart(r.ctx) })
}

// kills are what is to be killed, each as often as it is to be: the agent, each of the replicas, both, PostgreSQL.
func (r *replicas) kills(random *rand.Rand) []func() {
	var all []func()
	for range 7 {
		all = append(all,
			func() { r.kill(); r.launch() },
			func() { r.killMembers(random, 0) },
			func() { r.killMembers(random, 1) },
			func() { r.killMembers(random, 0, 1) })
	}
	for range 2 {
		all = append(all, func() { r.killDatabase(random) })
	}
	return all
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
func TestReportSetsComeAndGo(t *testing.T) {
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
