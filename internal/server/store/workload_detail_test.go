package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/threeport"
)

func putObject(t *testing.T, s *Store, instance threeport.Instance, uid string, goneAt any) {
	t.Helper()
	mustExec(t, s, `INSERT INTO objects (type, id, key, clusteruid, uid, kind, name, health, since, goneat) VALUES (?, ?, ?, 'uid-a', ?, 'Pod', ?, 'Healthy', 1, ?)`,
		instance.Type, int64(instance.ID), uid, uid, uid, goneAt)
}

// readDetail reads a workload with its whole tree.
func readDetail(t *testing.T, s *Store, instance threeport.Instance) (detail threeport.WorkloadDetail) {
	t.Helper()
	tree, err := s.Workload(t.Context(), instance)
	if err != nil {
		t.Fatal(err)
	}
	detail.Workload = tree.Workload
	for {
		objects, err := tree.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(objects) == 0 {
			return detail
		}
		size := 0
		for _, object := range objects[:len(objects)-1] {
			size += objectBytes(object)
		}
		if len(objects) > maxChunkRows || size >= maxPageBytes {
			t.Fatalf("a chunk has %d objects and %d bytes without the last, want at most %d and %d", len(objects), size, maxChunkRows, maxPageBytes)
		}
		detail.Objects = append(detail.Objects, objects...)
	}
}

// Each object is returned once, in the order of the tree, from chunks that end at a number of rows or of bytes.
func TestTree_ManyChunks_HaveEachObjectOnce(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		instance := put(t, s, fixture{id: 1, cluster: "uid-a"}).instance()
		const small, large = maxChunkRows + 5, 50
		for i := range small {
			putObject(t, s, instance, fmt.Sprintf("a-%04d", i), nil)
		}
		for i := range large {
			putObject(t, s, instance, fmt.Sprintf("b-%04d", i), nil)
			putObject(t, s, instance, fmt.Sprintf("gone-%04d", i), i/2+1)
		}
		mustExec(t, s, "UPDATE objects SET cause = ? WHERE uid >= 'b'", strings.Repeat("<", maxMessage))
		seen := map[string]bool{}
		var gone []time.Time
		for _, object := range readDetail(t, s, instance).Objects {
			if seen[object.Object.UID] {
				t.Errorf("object %s is returned twice", object.Object.UID)
			}
			seen[object.Object.UID] = true
			if object.Gone != nil {
				gone = append(gone, *object.Gone)
			} else if len(gone) > 0 {
				t.Errorf("object %s follows a deleted one", object.Object.UID)
			}
		}
		if len(seen) != small+2*large || len(gone) != large {
			t.Errorf("%d objects, of them %d deleted, want %d and %d", len(seen), len(gone), small+2*large, large)
		}
		if !slices.IsSortedFunc(gone, func(a, b time.Time) int { return b.Compare(a) }) {
			t.Errorf("the deleted objects are not in the order of their deletion, newest first: %v", gone)
		}
	})
}

func TestJSONBytes_IsAtLeastTheSizeAsJSON(t *testing.T) {
	for _, text := range []string{"", "plain", "<>&", "\"\\", "\x00\n\x1f\x7f", "\u2028\u2029", "Grüße 日本 😀", strings.Repeat("<", 1000)} {
		body, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := jsonBytes(text); got < len(body) || got > 2*len(body) {
			t.Errorf("%q has %d bytes as JSON, estimated %d", text, len(body), got)
		}
	}
}

func TestWorkload_ReturnsTree(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		instance := put(t, s, fixture{id: 1, cluster: "uid-a"}).instance()
		other := put(t, s, fixture{id: 1, kind: helm, cluster: "uid-a"}).instance()
		putObject(t, s, other, "hers", nil)
		putObject(t, s, instance, "b", nil)
		putObject(t, s, instance, "a", nil)
		putObject(t, s, instance, "old", 5)
		putObject(t, s, instance, "late", 6)
		mustExec(t, s, `INSERT INTO definitions (clusteruid, uid, type, id, kind, name, operation, version, at, goneat) VALUES
			('uid-a', 'a', 'WorkloadInstance', 1, 'Pod', 'a', 'ADDED', 1, 1, NULL), ('uid-other', 'b', 'WorkloadInstance', 1, 'Pod', 'b', 'ADDED', 1, 1, NULL),
			('uid-a', 'late', 'WorkloadInstance', 1, 'Pod', 'late', 'DELETED', 2, 2, 4)`)

		detail := readDetail(t, s, instance)
		var got []string
		for _, object := range detail.Objects {
			got = append(got, fmt.Sprintf("%s defined=%t gone=%t deleted=%t", object.Object.UID, object.Defined, object.Gone != nil, object.Deleted != nil))
		}
		want := "a defined=true gone=false deleted=false, b defined=false gone=false deleted=false, " +
			"late defined=true gone=true deleted=true, old defined=false gone=true deleted=false"
		if got := strings.Join(got, ", "); got != want || detail.Workload.Instance != instance {
			t.Errorf("%v has %s; want %s", detail.Workload.Instance, got, want)
		}
	})
}

func TestWorkload_ObjectHasAllFields(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		instance := put(t, s, fixture{id: 1}).instance()
		putObject(t, s, instance, "a", nil)
		mustExec(t, s, `UPDATE objects SET apigroup = 'apps', apiversion = 'v1', namespace = 'app', owner = 'o', listed = TRUE,
			resourceinstanceid = ?, state = 'Present', health = 'Down', reason = 'r', cause = 'c', since = ?`, int64(1<<60), noon.UnixMicro())
		detail := readDetail(t, s, instance)
		if len(detail.Objects) != 1 {
			t.Fatal(detail)
		}
		got := detail.Objects[0]
		if !got.Since.Equal(noon) {
			t.Errorf("since is %v, want %v", got.Since, noon)
		}
		got.Since = nil
		want := threeport.Object{TreeObject: threeport.TreeObject{
			Object: threeport.ObjectRef{Group: "apps", Version: "v1", Kind: "Pod", Namespace: "app", Name: "a", UID: "a"},
			Owner:  "o", Listed: true, ResourceInstanceID: 1 << 60, State: "Present", Health: "Down", Reason: "r", Cause: "c",
		}}
		if got != want {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	})
}

func TestWorkload_DeletedObjects_AreLimited(t *testing.T) {
	s := open(t, Config{Address: "sqlite::memory:"})
	instance := put(t, s, fixture{id: 1}).instance()
	for i := range maxDeletedObjects + 5 {
		putObject(t, s, instance, fmt.Sprintf("pod-%d", i), i+1)
	}
	detail := readDetail(t, s, instance)
	newest := fmt.Sprintf("pod-%d", maxDeletedObjects+4)
	if len(detail.Objects) != maxDeletedObjects || detail.Objects[0].Object.UID != newest {
		t.Errorf("got %d objects beginning with %s; want %d beginning with %s", len(detail.Objects), detail.Objects[0].Object.UID, maxDeletedObjects, newest)
	}
}

func TestDefinition(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		mustExec(t, s, `INSERT INTO definitions (clusteruid, uid, type, id, apigroup, apiversion, kind, namespace, name, operation, version, current, previous, at, previousat)
			VALUES ('uid-a', 'd', 'HelmWorkloadInstance', ?, 'apps', 'v1', 'Deployment', 'app', 'web', 'MODIFIED', ?, '{"a":2}', '{"a":1}', ?, ?)`,
			int64(1<<60), int64(1<<61), noon.UnixMicro(), noon.Add(-1).UnixMicro())
		mustExec(t, s, `INSERT INTO definitions (clusteruid, uid, type, id, kind, name, operation, version, deleted, at) VALUES ('uid-a', 'e', 'WorkloadInstance', 1, 'Pod', 'x', 'DELETED', 1, TRUE, 1)`)

		got, err := s.Definition(t.Context(), "uid-a", "d")
		if err != nil {
			t.Fatal(err)
		}
		object := threeport.ObjectRef{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "app", Name: "web", UID: "d"}
		if got.Instance != (threeport.Instance{Type: helm, ID: 1 << 60}) || got.Object != object || got.Operation != "MODIFIED" ||
			got.Version != 1<<61 || !got.At.Equal(noon) || got.PreviousAt == nil || string(got.Current) != `{"a":2}` || string(got.Previous) != `{"a":1}` {
			t.Errorf("the definition is %+v", got)
		}
		if got, err := s.Definition(t.Context(), "uid-a", "e"); err != nil || got.Current != nil || got.Previous != nil || got.PreviousAt != nil {
			t.Errorf("the definition of a deleted object is %+v, error %v; want no content", got, err)
		}
		for _, key := range [][2]string{{"uid-b", "d"}, {"uid-a", "f"}, {"uid-a\x00", "d"}, {"", ""}} {
			if _, err := s.Definition(t.Context(), key[0], key[1]); !errors.Is(err, ErrNotFound) {
				t.Errorf("%q: %v, want %v", key, err, ErrNotFound)
			}
		}
	})
}

func TestClusters_SortsAndCounts(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		if got, err := s.Clusters(t.Context()); err != nil || got == nil || len(got) != 0 {
			t.Errorf("without clusters the list is %v, error %v; want an empty list", got, err)
		}
		putCluster(t, s, "uid-b", "berlin")
		putCluster(t, s, "uid-a", "Amsterdam")
		mustExec(t, s, "UPDATE clusters SET agentversion = 'v1', pending = 1, deadletters = 2, dropped = 3, silent = TRUE WHERE uid = 'uid-a'")
		put(t, s, fixture{id: 1, cluster: "uid-a"})
		put(t, s, fixture{id: 2, cluster: "uid-a"})
		put(t, s, fixture{id: 3, cluster: "uid-a", deleted: 1})
		got, err := s.Clusters(t.Context())
		if err != nil || len(got) != 2 || got[1].ClusterUID != "uid-b" || got[1].Workloads != 0 {
			t.Fatal(got, err)
		}
		first := got[0]
		if !first.HeardAt.Equal(noon) || !first.Time.Before(first.HeardAt) {
			t.Errorf("the heartbeat is at %v, the agent's time %v", first.HeardAt, first.Time)
		}
		want := threeport.Cluster{
			Agent: threeport.Agent{
				ClusterUID: "uid-a", ClusterName: "Amsterdam", Version: "v1", Time: first.Time, DelaySeconds: 1.5, Pending: 1, DeadLetters: 2, Dropped: 3,
			},
			HeardAt: first.HeardAt, Silent: true, Workloads: 2,
		}
		if first != want {
			t.Errorf("got  %+v\nwant %+v", first, want)
		}
	})
}

// Definitions of earlier releases have no digest. Their previous version may differ in the status only.
func TestDefinition_OfEarlierRelease_ShowsNoStatusChange(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, s *Store) {
		t.Helper()
		w := newWorld(t, s)
		insert := func(uid, current, previous string) {
			t.Helper()
			mustExec(t, s, `INSERT INTO definitions (clusteruid, uid, type, id, apigroup, apiversion, kind, namespace, name, operation, version, current, previous, at, previousat)
				VALUES ('one', ?, ?, ?, 'apps', 'v1', 'Deployment', 'default', 'web', 'MODIFIED', 5, ?, ?, ?, ?)`,
				uid, helm, int64(w.helm.ID), current, previous, noon.UnixMicro(), noon.UnixMicro()-1)
		}
		insert("status", `{"spec":1,"status":2}`, `{"spec":1,"status":1}`)
		insert("spec", `{"spec":2,"status":2}`, `{"spec":1,"status":1}`)
		expectDefinition := func(uid, want string, changeKnown bool) {
			t.Helper()
			d, err := s.Definition(t.Context(), "one", uid)
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprintf("%s < %s", d.Current, d.Previous); got != want || (d.PreviousAt != nil) != (d.Previous != nil) || (d.ChangedAt != nil) != changeKnown {
				t.Errorf("%s: the definition is %s, previous at %v, changed at %v; want %s with a time of the change: %t",
					uid, got, d.PreviousAt, d.ChangedAt, want, changeKnown)
			}
		}
		expectDefinition("status", `{"spec":1,"status":2} < `, false)
		expectDefinition("spec", `{"spec":2,"status":2} < {"spec":1,"status":1}`, false)

		report := func(uid, definition string, version int64) {
			t.Helper()
			one := operationOf(w.helm, 0, uid, threeport.OperationModified, version)
			one.Operation.Definition = json.RawMessage(definition)
			expect(t, apply(t, s, "one", one), "updated")
		}
		for _, uid := range []string{"status", "spec"} { // the first report after the upgrade changes the status
			d, err := s.Definition(t.Context(), "one", uid)
			if err != nil {
				t.Fatal(err)
			}
			report(uid, strings.Replace(string(d.Current), `"status":2`, `"status":3`, 1), 6)
		}
		expectDefinition("status", `{"spec":1,"status":3} < `, false)
		expectDefinition("spec", `{"spec":2,"status":3} < {"spec":1,"status":1}`, false)
		report("status", `{"spec":2,"status":3}`, 7)
		expectDefinition("status", `{"spec":2,"status":3} < {"spec":1,"status":3}`, true)

		insert("other", `{"spec":1,"status":2}`, `{"spec":1,"status":1}`)
		report("other", `{"spec":2,"status":2}`, 6) // the first report after the upgrade changes the spec
		expectDefinition("other", `{"spec":2,"status":2} < {"spec":1,"status":2}`, true)
	})
}
