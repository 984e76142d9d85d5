package store

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// tree lists the stored nodes; those that are gone are in brackets.
func tree(t *testing.T, s *Store, of threeport.Instance) string {
	t.Helper()
	detail := readDetail(t, s, of)
	var nodes []string
	for _, o := range detail.Objects {
		text := o.Object.Name + " " + o.Health
		if o.Gone != nil {
			text = "(" + text + ")"
		}
		nodes = append(nodes, text)
	}
	slices.Sort(nodes)
	return strings.Join(nodes, ", ")
}

func TestApplyTrees_NewerReport_ReplacesTree(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		for version, step := range []struct {
			nodes []threeport.TreeObject
			want  string
		}{
			{nil, ""},
			{[]threeport.TreeObject{nodeOf("a", "1", "Healthy"), nodeOf("b", "2", "Down")}, "a Healthy, b Down"},
			{[]threeport.TreeObject{nodeOf("a", "1", "Healthy"), nodeOf("c", "", "Unknown")}, "(b Down), a Healthy, c Unknown"},
			{[]threeport.TreeObject{nodeOf("b", "2", "Healthy"), nodeOf("c", "", "Unknown")}, "(a Healthy), b Healthy, c Unknown"},
			{[]threeport.TreeObject{nodeOf("b", "2", "Healthy"), nodeOf("same", "2", "Down")}, "(a Healthy), (c Unknown), b Healthy"},
			{nil, "(a Healthy), (b Healthy), (c Unknown)"},
		} {
			apply(t, s, "one", treeOf(w.workload, int64(version+1), step.nodes...))
			if got := tree(t, s, w.workload); got != step.want {
				t.Errorf("version %d: %s, want %s", version+1, got, step.want)
			}
		}
		if got := tree(t, s, w.helm); got != "" {
			t.Errorf("another workload has %s, want none", got)
		}
	})
}

// The number of filtered objects changes the workload, also if no object of the tree does.
func TestApplyTrees_FilteredObjects_AreCounted(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		changed := threeport.ID(0)
		for version, filtered := range []int64{0, 2, 3, 0} {
			report := treeOf(w.workload, int64(version+1), nodeOf("a", "1", "Healthy"))
			report.Tree.Filtered = filtered
			apply(t, s, "one", report)
			got := readDetail(t, s, w.workload).Workload
			if got.Filtered != filtered || got.Changed <= changed {
				t.Errorf("version %d: %d objects are filtered, want %d; the change is %d after %d", version+1, got.Filtered, filtered, got.Changed, changed)
			}
			changed = got.Changed
		}
	})
}

// The rows of an agent's resources may be deleted or moved at any time. Its tree is still applied, without references
// to rows of other workloads.
func TestApplyTrees_ForeignResource_IsOmitted(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		rows, other := resource(t, "WorkloadResourceInstance"), create(t, s, workload, "other")
		row := func(of int64) int64 { return create(t, s, "WorkloadResourceInstance", "{}", of).ID }
		gone, moved, foreign := row(int64(w.workload.ID)), row(int64(w.workload.ID)), row(other.ID)
		if _, err := s.Remove(t.Context(), rows, gone); err != nil {
			t.Fatal(err)
		}
		nodes := make([]threeport.TreeObject, 6)
		for i, id := range []int64{w.resource, gone, moved, foreign, 1, 0} {
			nodes[i] = nodeOf(fmt.Sprint(i), fmt.Sprint("uid-", i), "Healthy")
			nodes[i].ResourceInstanceID = threeport.ID(id)
		}
		sent := slices.Clone(nodes)
		shows := func(of threeport.Instance, want ...int64) {
			t.Helper()
			detail := readDetail(t, s, of)
			if len(detail.Objects) != len(want) {
				t.Fatalf("the tree is %+v, want %d objects", detail.Objects, len(want))
			}
			for _, o := range detail.Objects {
				if i, _ := strconv.Atoi(o.Object.Name); int64(o.ResourceInstanceID) != want[i] {
					t.Errorf("object %d has resource %d, want %d", i, o.ResourceInstanceID, want[i])
				}
			}
		}
		expect(t, apply(t, s, "one", treeOf(w.workload, 1, nodes...), treeOf(w.helm, 1, nodes...)), "created", "created")
		shows(w.workload, w.resource, gone, moved, 0, 0, 0)
		shows(w.helm, 0, 0, 0, 0, 0, 0)
		if !slices.Equal(nodes, sent) {
			t.Error("Apply modified the set of the caller")
		}
		changed := func() int64 { return count(t, s, "SELECT changedat FROM workloads WHERE id = ?", int64(w.workload.ID)) }
		before := changed()
		expect(t, apply(t, s, "one", treeOf(w.workload, 2, nodes...)), "updated")
		if changed() != before {
			t.Error("an unchanged tree changed the workload row")
		}
		if _, err := s.Update(t.Context(), rows, moved, []any{nil, other.ID, nil, nil, nil, nil}); err != nil {
			t.Fatal(err)
		}
		expect(t, apply(t, s, "one", treeOf(w.workload, 3, nodes...)), "updated")
		shows(w.workload, w.resource, gone, 0, 0, 0, 0)
	})
}

func TestApplyTrees_Counts_AreOfTheLastTree(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		node := func(kind, name, namespace, health string, listed bool) threeport.TreeObject {
			return threeport.TreeObject{
				Object: threeport.ObjectRef{Kind: kind, Name: name, Namespace: namespace, UID: name}, Listed: listed, Health: health,
			}
		}
		show := func() string {
			list, err := s.Workloads(t.Context(), WorkloadQuery{Types: []string{w.workload.Type}})
			if err != nil || len(list.Items) != 1 {
				t.Fatalf("the list is %+v, %v, want one workload", list.Items, err)
			}
			row := list.Items[0]
			if row.Resources == nil || row.Pods == nil {
				return "none"
			}
			return fmt.Sprint(*row.Resources, *row.Pods, row.Namespaces)
		}
		if got := show(); got != "none" {
			t.Errorf("before the first tree the counts are %s, want none", got)
		}
		completed := node("Pod", "job-1", "shop", "Healthy", false)
		completed.Reason = "Completed"
		apply(t, s, "one", treeOf(w.workload, 1, completed,
			node("Deployment", "web", "shop", "Down", true), node("Service", "web-service", "shop", "Healthy", true),
			node("Namespace", "shop", "", "Healthy", true), node("ConfigMap", "rules", "audit", "Healthy", true),
			node("Pod", "web-1", "shop", "Healthy", false), node("Pod", "web-2", "shop", "Down", false), node("ReplicaSet", "web-0", "other", "Down", false)))
		if got, want := show(), "{4 3} {2 1} [audit shop]"; got != want {
			t.Errorf("the counts are %s, want %s", got, want)
		}
		var many []threeport.TreeObject
		for i := range 12 {
			many = append(many, node("Service", fmt.Sprint("s", i), fmt.Sprint("n", i%11), "Healthy", true))
		}
		apply(t, s, "one", treeOf(w.workload, 2, many...))
		if got, want := show(), "{12 12} {0 0} [n0 n1 n10 n2 n3 n4 n5 n6 n7 n8]"; got != want {
			t.Errorf("the counts are %s, want %s", got, want)
		}
	})
}

// podNode is a Pod with facts.
func podNode(name string, restarts int64) threeport.TreeObject {
	node := nodeOf(name, name, "Down")
	at := reportTime.Add(time.Duration(restarts) * time.Minute)
	node.Pod = &threeport.PodFacts{Node: "node-1", Containers: []threeport.ContainerFacts{
		{Name: "setup", Type: "init", State: "Terminated", Reason: "Completed", LastExit: &threeport.ContainerExit{}},
		{
			Name: "app", Image: "shop:1", State: "Waiting", Reason: "CrashLoopBackOff", Restarts: restarts,
			LastExit: &threeport.ContainerExit{Code: 137, Reason: "OOMKilled", Time: &at},
		},
	}}
	return node
}

// An earlier agent reports no facts. The facts of a deleted Pod are kept.
func TestApplyTrees_PodFacts_AreStoredOnChange(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		shows := func(of threeport.Instance, name string, want *threeport.PodFacts) {
			t.Helper()
			for _, o := range readDetail(t, s, of).Objects {
				if o.Object.Name == name && !reflect.DeepEqual(o.Pod, want) {
					t.Errorf("%s has the facts %+v, want %+v", name, o.Pod, want)
				}
			}
		}
		row := func() int64 { return count(t, s, "SELECT changedat FROM workloads WHERE id = ?", int64(w.workload.ID)) }
		first := podNode("a", 4)
		apply(t, s, "one", treeOf(w.workload, 1, first, nodeOf("b", "b", "Healthy")))
		shows(w.workload, "a", first.Pod)
		shows(w.workload, "b", nil)
		if first.Pod == nil {
			t.Error("Apply modified the set of the caller")
		}
		before := row()
		apply(t, s, "one", treeOf(w.workload, 2, podNode("a", 4), nodeOf("b", "b", "Healthy")))
		if row() != before {
			t.Error("unchanged facts changed the workload row")
		}
		second := podNode("a", 5)
		apply(t, s, "one", treeOf(w.workload, 3, second, nodeOf("b", "b", "Healthy")))
		shows(w.workload, "a", second.Pod)
		if row() == before {
			t.Error("changed facts did not change the workload row")
		}
		apply(t, s, "one", treeOf(w.workload, 4, nodeOf("b", "b", "Healthy")))
		shows(w.workload, "a", second.Pod)
		apply(t, s, "one", treeOf(w.workload, 5, nodeOf("a", "a", "Down")))
		shows(w.workload, "a", nil)
	})
}

func TestApplyTrees_Since_ChangesWithHealth(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		since := func() int64 { return count(t, s, "SELECT since FROM objects WHERE key = '1'") }
		node := nodeOf("a", "1", "Healthy")
		apply(t, s, "one", treeOf(w.workload, 1, node))
		first := since()
		node.Cause = "another"
		apply(t, s, "one", treeOf(w.workload, 2, node))
		apply(t, s, "one", treeOf(w.workload, 3))
		apply(t, s, "one", treeOf(w.workload, 4, node))
		if got := since(); got != first {
			t.Errorf("since is %d after an unchanged tree, want %d", got, first)
		}
		node.Health = "Down"
		apply(t, s, "one", treeOf(w.workload, 5, node))
		if got := since(); got <= first {
			t.Errorf("since is %d after another health, want more than %d", got, first)
		}
		down := since()
		for i, tc := range []struct {
			reason, health string
			reported       time.Time
			want           int64 // 0 for later than down
		}{
			{"the same health with another time", "Down", time.UnixMicro(down + 1), down},
			{"another health, before the one before", "Unhealthy", time.UnixMicro(down - 1), down},
			{"another health", "Down", time.UnixMicro(down + 1), down + 1},
			{"a clock that is ahead", "Unhealthy", time.Now().Add(time.Hour), 0},
		} {
			node.Health, node.Since = tc.health, &tc.reported
			apply(t, s, "one", treeOf(w.workload, int64(6+i), node))
			if got := since(); tc.want != 0 && got != tc.want || got <= first || got > time.Now().Add(time.Minute).UnixMicro() {
				t.Errorf("%s: since is %d, want %d", tc.reason, got, tc.want)
			}
		}
		created := time.UnixMicro(first - 1)
		other := nodeOf("b", "2", "Down")
		other.Since = &created
		apply(t, s, "one", treeOf(w.workload, 20, node, other))
		if got := count(t, s, "SELECT since FROM objects WHERE key = '2'"); got != created.UnixMicro() {
			t.Errorf("since of a new object is %d, want the reported %d", got, created.UnixMicro())
		}
		absent := nodeOf("conf", "", "Down")
		for i := range int64(2) { // it is created and deleted again in between
			begin := created.Add(time.Duration(i-2) * time.Minute)
			absent.Since = &begin
			apply(t, s, "one", treeOf(w.workload, 30+2*i, absent))
			apply(t, s, "one", treeOf(w.workload, 31+2*i))
			if got := count(t, s, "SELECT since FROM objects WHERE name = 'conf'"); got != begin.UnixMicro() {
				t.Errorf("absence %d is since %d, want %d", i, got, begin.UnixMicro())
			}
		}
	})
}

func TestApplyTrees_LargeTree_WritesOnlyChanges(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		nodes := make([]threeport.TreeObject, 5000)
		for i := range nodes {
			nodes[i] = nodeOf(fmt.Sprint("pod-", i), fmt.Sprint("uid-", i), "Healthy")
			nodes[i].Owner, nodes[i].State, nodes[i].Cause = "owner", "Present", "a cause"
		}
		apply(t, s, "one", treeOf(w.workload, 1, nodes...))
		if s.dialect == postgresDialect {
			mustExec(t, s, `CREATE TABLE writes (n INTEGER); CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
				$$BEGIN INSERT INTO writes VALUES (1); RETURN NEW; END$$;
				CREATE TRIGGER note AFTER INSERT OR UPDATE ON objects FOR EACH ROW EXECUTE FUNCTION note()`)
		} else {
			mustExec(t, s, "CREATE TABLE writes (n INTEGER)")
			mustExec(t, s, "CREATE TRIGGER note AFTER UPDATE ON objects BEGIN INSERT INTO writes VALUES (1); END")
			mustExec(t, s, "CREATE TRIGGER added AFTER INSERT ON objects BEGIN INSERT INTO writes VALUES (1); END")
		}
		nodes[1234].Health = "Down"
		apply(t, s, "one", treeOf(w.workload, 2, nodes...))
		if n := count(t, s, "SELECT COUNT(*) FROM writes"); n != 1 {
			t.Errorf("%d rows were written, want 1", n)
		}
		before := count(t, s, "SELECT changedat FROM workloads WHERE type = ?", workload)
		apply(t, s, "one", treeOf(w.workload, 3, nodes...))
		if got := count(t, s, "SELECT changedat FROM workloads WHERE type = ?", workload); got != before {
			t.Error("an unchanged tree changed the workload row")
		}
		apply(t, s, "one", treeOf(w.workload, 4, nodes[1:]...))
		if n := count(t, s, "SELECT COUNT(*) FROM writes"); n != 2 {
			t.Errorf("%d rows were written, want 2", n)
		}
	})
}

// Another cluster does not wait until a large tree is written.
func TestApplyTrees_LargeTree_OthersWriteBetweenItsParts(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		second := make([]threeport.TreeObject, nodesPerTx*7/2) // the last part must not follow the first before this process is scheduled
		for i := range second {
			second[i] = nodeOf(fmt.Sprint("b-", i), fmt.Sprint("second-", i), "Healthy")
		}
		expect(t, apply(t, s, "one", treeOf(w.workload, 1, nodeOf("a", "first", "Healthy"))), "created")

		newObjects := func() int64 { return count(t, s, "SELECT COUNT(*) FROM objects WHERE key LIKE 'second-%'") }
		sent, cancel := context.WithCancel(t.Context())
		defer cancel()
		applied := make(chan error, 1)
		go func() {
			_, err := s.Apply(sent, setOf("one", treeOf(w.workload, 2, second...)))
			applied <- err
		}()
		written := int64(0)
		for ; written == 0; written = newObjects() {
			apply(t, s, "other")
		}
		if written == int64(len(second)) {
			t.Errorf("another cluster could write only after all %d new objects", written)
		}
		cancel()
		version := int64(1)
		if err := <-applied; err == nil { // the cancellation was too late
			version = 2
		}
		if got := count(t, s, "SELECT treeversion FROM workloads WHERE type = ?", workload); got != version {
			t.Errorf("the tree has version %d, want %d", got, version)
		}

		expect(t, apply(t, s, "one", treeOf(w.workload, 3, second...)), "updated")
		if n := count(t, s, "SELECT COUNT(*) FROM objects WHERE goneat IS NULL"); n != int64(len(second)) || newObjects() != n {
			t.Errorf("the tree has %d objects, %d of them new, want %d", n, newObjects(), len(second))
		}
		expect(t, apply(t, s, "one", treeOf(w.workload, 4), treeOf(w.workload, 5)), "updated", "updated")
		if n := count(t, s, "SELECT COUNT(*) FROM objects WHERE goneat IS NULL"); n != 0 {
			t.Errorf("the empty tree has %d objects", n)
		}
		if got, want := storedBytesOf(t, s), count(t, s, "SELECT SUM("+objectBytesSQL+") FROM objects o"); got != want {
			t.Errorf("the cluster's row says %d stored bytes, want %d", got, want)
		}
	})
}

// The texts of a Pod are stored as they were sent, and those of one that is gone only if they are short.
func TestApplyTrees_LongPodFacts_AreBounded(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		podOf := func(uid string, containers, image int) threeport.TreeObject {
			o := nodeOf(uid, uid, "Healthy")
			o.Pod = &threeport.PodFacts{Node: "n"}
			for range containers {
				o.Pod.Containers = append(o.Pod.Containers, threeport.ContainerFacts{Name: "c", Image: strings.Repeat("<", image), State: "Running"})
			}
			return o
		}
		bytesOf := func(uid string) int64 { return count(t, s, "SELECT octet_length(pod) FROM objects WHERE uid = ?", uid) }
		apply(t, s, "one", treeOf(w.workload, 1, podOf("small", 2, 1000), podOf("medium", 8, 1000), podOf("large", 64, 1000)))
		small, medium, large := bytesOf("small"), bytesOf("medium"), bytesOf("large")
		if small > 2200 || medium > 8800 || large > maxPod || large < maxPod/4 {
			t.Errorf("the Pods take %d, %d and %d bytes, want each character once, and %d at most", small, medium, large, maxPod)
		}
		apply(t, s, "one", treeOf(w.workload, 2))
		if got := []int64{bytesOf("small"), bytesOf("medium"), bytesOf("large")}; !slices.Equal(got, []int64{small, 0, 0}) {
			t.Errorf("the Pods that are gone take %v bytes, want %d, 0 and 0", got, small)
		}
		if got, want := storedBytesOf(t, s), count(t, s, "SELECT SUM("+objectBytesSQL+") FROM objects o"); got != want {
			t.Errorf("the cluster's row says %d stored bytes, want %d", got, want)
		}
	})
}

// A v0 write of the workload between two parts is no reason to write the rest at once.
func TestApplyTrees_WorkloadChangesBetweenParts_RestIsStillSplit(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		nodes := make([]threeport.TreeObject, 3*nodesPerTx)
		for i := range nodes {
			nodes[i] = nodeOf(fmt.Sprint("pod-", i), fmt.Sprint("uid-", i), "Healthy")
		}
		set := []threeport.Report{treeOf(w.workload, 1, nodes...)}
		items := validItems(set, make([]threeport.ReportAnswer, 1), time.Now())
		agent := &reportingAgent{Agent: &threeport.Agent{ClusterUID: "one", Time: reportTime}, policy: ClaimsAllowed}
		var stored []int64
		for range 3 {
			applied, err := s.applyInTx(t.Context(), agent, items)
			if err != nil {
				t.Fatal(err)
			}
			items = applied.itemsWithRest()
			stored = append(stored, count(t, s, "SELECT COUNT(*) FROM objects"))
			mustExec(t, s, "UPDATE workloads SET changedat = changedat + 1") // as a v0 write
		}
		if want := []int64{nodesPerTx, 2 * nodesPerTx, 3 * nodesPerTx}; !slices.Equal(stored, want) || len(items) > 0 {
			t.Errorf("%v objects are stored after each transaction, and %d items are unfinished; want %v and 0", stored, len(items), want)
		}
	})
}

func TestApplyTrees_LongNameWithoutUID_IsHashed(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		long := strings.Repeat("𝄞", maxName)
		a, b := nodeOf(long, "", "Unknown"), nodeOf(long[4:], "", "Unknown")
		for _, o := range []*threeport.ObjectRef{&a.Object, &b.Object} {
			o.Group, o.Kind, o.Namespace = long, long, long
		}
		expect(t, apply(t, s, "one", treeOf(w.workload, 1, a, b)), "created")
		expect(t, apply(t, s, "one", treeOf(w.workload, 2, a, b)), "updated")
		if n := count(t, s, "SELECT COUNT(*) FROM objects WHERE goneat IS NULL"); n != 2 {
			t.Errorf("there are %d nodes, want 2", n)
		}
	})
}
