package store

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// history has all versions of the workloads of a cluster, and the expected final state.
type history struct {
	cluster string
	reports []threeport.Report
	// last is the newest version of each Event and status; ended has the deleted objects.
	events, statuses map[string]int64
	objects          map[string]int64
	ended            map[string]bool
	tree             map[threeport.Instance]string
	row              string // of the resource
	world            world
}

// newHistory generates a history. The content of a version follows from its number.
func newHistory(t *testing.T, s *Store, cluster string, random *rand.Rand) *history {
	t.Helper()
	of := &history{
		cluster: cluster, world: newWorld(t, s), events: map[string]int64{}, statuses: map[string]int64{},
		objects: map[string]int64{}, ended: map[string]bool{}, tree: map[threeport.Instance]string{},
	}
	for i := range 12 {
		uid := fmt.Sprint(cluster, " event ", i)
		for range 6 {
			version := random.Int64N(1000)
			of.events[uid] = max(of.events[uid], version)
			of.reports = append(of.reports, eventOf([]threeport.Instance{of.world.workload, of.world.helm}[i%2], uid, version))
		}
	}
	for _, instance := range []threeport.Instance{of.world.workload, of.world.helm} {
		for version := int64(1); version < 30; version++ {
			status := statuses[random.IntN(len(statuses))]
			of.reports = append(of.reports, statusOf(instance, status, version))
			var nodes []threeport.TreeObject
			var names []string
			for i := range 8 {
				if name := fmt.Sprint("node ", i); random.IntN(3) > 0 {
					nodes = append(nodes, nodeOf(name, name, status))
					names = append(names, name+" "+status)
				}
			}
			of.reports = append(of.reports, treeOf(instance, version, nodes...))
			of.tree[instance] = strings.Join(names, ", ")
		}
		of.statuses[instance.Type] = 29
	}
	of.addObjects(random)
	return of
}

// addObjects adds an object of the resource that is created, changed, deleted and created again with another UID, and
// objects of the Helm workload.
func (of *history) addObjects(random *rand.Rand) {
	for i := range 10 {
		uid, version := fmt.Sprint(of.cluster, " object ", i), int64(0)
		for range 2 + random.IntN(4) {
			version += 1 + random.Int64N(5)
			of.reports = append(of.reports, operationOf(of.world.helm, 0, uid, threeport.OperationModified, version))
		}
		of.objects[uid] = version
		if i%3 == 0 {
			of.ended[uid] = true
			of.reports = append(of.reports, operationOf(of.world.helm, 0, uid, threeport.OperationDeleted, 1))
		}
	}
	version := int64(0)
	for life := range 3 {
		uid := fmt.Sprint(of.cluster, " life ", life)
		for range 4 {
			version++
			of.reports = append(of.reports, operationOf(of.world.workload, of.world.resource, uid, threeport.OperationModified, version))
		}
		of.objects[uid] = version
		of.row = fmt.Sprintf(`MODIFIED {"uid":%q,"version":%d}`, uid, version)
		if life < 2 {
			version++
			of.reports = append(of.reports, operationOf(of.world.workload, of.world.resource, uid, threeport.OperationDeleted, version))
			of.ended[uid], of.objects[uid] = true, version
		}
	}
}

// check compares the stored rows with the expected ones.
func (of *history) check(t *testing.T, s *Store) {
	t.Helper()
	for uid, version := range of.events {
		if n := count(t, s, "SELECT COUNT(*) FROM workload_events WHERE runtimeeventuid = ?", uid); n != 1 {
			t.Errorf("%s has %d rows, want 1", uid, n)
			continue
		}
		var message string
		var got int64
		readRow(t, s, "SELECT objectversion, message FROM workload_events WHERE runtimeeventuid = ?", []any{uid}, &got, &message)
		if got != version || message != fmt.Sprint("message ", version) {
			t.Errorf("%s has version %d, want %d, and message %q", uid, got, version, message)
		}
	}
	for uid, version := range of.objects {
		var got int64
		var deleted bool
		readRow(t, s, "SELECT version, deleted FROM definitions WHERE clusteruid = ? AND uid = ?", []any{of.cluster, uid}, &got, &deleted)
		if deleted != of.ended[uid] || !deleted && got != version {
			t.Errorf("%s has version %d, deleted %t; want %d, %t", uid, got, deleted, version, of.ended[uid])
		}
	}
	for _, instance := range []threeport.Instance{of.world.workload, of.world.helm} {
		if got := workloadRowOf(t, s, instance); !strings.HasSuffix(got, fmt.Sprint("cause ", of.statuses[instance.Type])) {
			t.Errorf("the workload row is %s, want the newest status", got)
		}
		present := slices.DeleteFunc(strings.Split(tree(t, s, instance), ", "), func(node string) bool { return strings.HasPrefix(node, "(") })
		if got := strings.Join(present, ", "); got != of.tree[instance] {
			t.Errorf("tree is %s, want %s", got, of.tree[instance])
		}
	}
	if got := resourceOf(t, s, of.world.resource); got != of.row {
		t.Errorf("row is %s, want %s", got, of.row)
	}
}

// TestApply_AnyOrder_KeepsNewestVersions applies two histories at once: each report once or more, in any order, in sets
// of any size, through two replicas, while v0 clients write the same rows.
func TestApply_AnyOrder_KeepsNewestVersions(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		random := rand.New(rand.NewPCG(seed, 0))
		replicas := []*Store{s, open(t, s.config)}
		stories := []*history{newHistory(t, s, "one", random), newHistory(t, s, "two", random)}
		var created sync.Map // how often each Event was answered as created
		var telling, writing sync.WaitGroup
		stop := make(chan struct{})
		for teller := range 8 {
			of := stories[teller%2]
			reports := append(slices.Clone(of.reports), of.reports[:len(of.reports)/2]...)
			random.Shuffle(len(reports), func(i, j int) { reports[i], reports[j] = reports[j], reports[i] })
			r := rand.New(rand.NewPCG(seed, uint64(teller+1)))
			telling.Go(func() {
				for len(reports) > 0 {
					set := reports[:min(len(reports), 1+r.IntN(40))]
					reports = reports[len(set):]
					answer, err := replicas[r.IntN(2)].Apply(t.Context(), setOf(of.cluster, set...))
					if err != nil {
						t.Error(err)
						return
					}
					for i, item := range answer.Items {
						if item.Problem != nil {
							t.Errorf("the store rejected a report: %+v", *item.Problem)
						}
						if e := set[i].Event; e != nil && item.Outcome == threeport.OutcomeCreated {
							if _, twice := created.LoadOrStore(e.UID, true); twice {
								t.Errorf("the store created Event %s more than once", e.UID)
							}
						}
					}
				}
			})
		}
		writing.Go(func() { writeV0(t, replicas[1], stories, stop) })
		telling.Wait()
		close(stop)
		writing.Wait()
		for _, of := range stories {
			// v0 has no versions: its last status stays until a report is newer.
			for _, instance := range []threeport.Instance{of.world.workload, of.world.helm} {
				apply(t, s, of.cluster, statusOf(instance, "Healthy", 30))
			}
			of.statuses = map[string]int64{workload: 30, helm: 30}
			of.check(t, s)
		}
	})
}

// writeV0 patches instances and posts Events as v0 agents do, and marks silent clusters, until stop.
func writeV0(t *testing.T, s *Store, stories []*history, stop <-chan struct{}) {
	t.Helper()
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		default:
		}
		of := stories[i%2]
		if _, err := s.Update(t.Context(), resource(t, workload), int64(of.world.workload.ID), []any{nil, "Down", nil}); err != nil {
			t.Error(err)
		}
		values := []any{fmt.Sprint(of.cluster, " event ", i%12), "Normal", "Created", "of v0", reportTime.UnixMicro(), nil, nil, nil}
		values[[]int{5, 7}[i%2]] = int64([]threeport.Instance{of.world.workload, of.world.helm}[i%2].ID)
		if _, _, err := s.Create(t.Context(), resource(t, "WorkloadEvent"), values); err != nil {
			t.Error(err)
		}
		if _, err := s.MarkSilent(t.Context(), time.Microsecond); err != nil {
			t.Error(err)
		}
		if _, err := s.Prune(t.Context(), Retention{EventAge: 1e5 * time.Hour, EventCount: 5000, TombstoneAge: time.Hour}); err != nil {
			t.Error(err)
		}
	}
}
