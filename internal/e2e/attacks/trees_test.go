package attacks

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// An agent sends Pods with as many containers as are accepted, whose texts are six times as long in some forms of JSON. Then the tree
// changes, and a viewer reads all.
func TestMemory_PodsWithManyContainers(t *testing.T) {
	onDatabases(t, func(t *testing.T, address string) {
		t.Helper()
		a := newAPI(t, address)
		a.start()
		const pods, senders, sets = 132, 3, 3
		text := func(length int) string { return strings.Repeat("<", length) }
		container := threeport.ContainerFacts{
			Name: text(253), Image: text(1024), State: "Waiting", Reason: text(256), LastExit: &threeport.ContainerExit{Reason: text(256)},
		}
		facts := &threeport.PodFacts{}
		for range threeport.MaxContainers {
			facts.Containers = append(facts.Containers, container)
		}
		var group errgroup.Group
		for sender := range senders {
			group.Go(func() error {
				for n := range sets {
					set := a.largeTree(pods, "")
					for i := range set.Reports[0].Tree.Objects {
						o := &set.Reports[0].Tree.Objects[i]
						o.Object.UID, o.Pod = fmt.Sprint(o.Object.Name, "-", sender, "-", n), facts
					}
					if err := a.trySendCompressed(t.Context(), a.agent, set); err != nil && !strings.Contains(err.Error(), "503") {
						return err
					}
				}
				return nil
			})
		}
		a.must(group.Wait())
		code, size, err := a.request(t.Context(), a.viewer, http.MethodGet, fmt.Sprintf("/v0/workloads/WorkloadInstance/%d", a.own.instance), http.NoBody)
		a.must(err)
		t.Logf("the answer to a viewer is %d with %d MiB", code, size>>20)
		if most := int64(32 << 20); code != http.StatusOK || size > most {
			t.Errorf("the answer to a viewer is %d with %d bytes, want %d with %d at most", code, size, http.StatusOK, most)
		}
		a.expectAlive()
	})
}

// Many clusters lose a large workload in an outage, and send its empty tree at once.
func TestMemory_ManyClustersSendEmptyTrees(t *testing.T) {
	const clusters, objects = 12, threeport.MaxTreeObjects
	onDatabases(t, func(t *testing.T, address string) {
		t.Helper()
		a := newAPI(t, address)
		s, err := store.Open(t.Context(), store.Config{Address: address})
		a.must(err)
		tokens, sets := make([]string, clusters), make([]threeport.ReportSet, clusters)
		for i := range clusters {
			cluster := fmt.Sprint("cluster-", i)
			tokens[i] = a.token(s, "agent", cluster, cluster)
			id := a.workload(s, cluster).instance
			a.exec(fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
				INSERT INTO objects (type, id, key, clusteruid, uid, kind, name, health, since, cause)
				SELECT 'WorkloadInstance', %d, 'pod-' || i, '%s', 'pod-' || i, 'Pod', 'web-' || i, 'Healthy', 1, '%s' FROM n`,
				objects, id, cluster, strings.Repeat("x", 690)))
			sets[i] = threeport.ReportSet{Agent: threeport.Agent{ClusterUID: cluster, Time: time.Now()}, Reports: []threeport.Report{{
				Instance: threeport.Instance{Type: threeport.TypeWorkloadInstance, ID: threeport.ID(id)},
				Version:  threeport.ID(time.Now().UnixMicro()), Tree: &threeport.TreeReport{Objects: []threeport.TreeObject{}},
			}}}
		}
		a.must(s.Close())
		a.start()
		began := time.Now()
		var group errgroup.Group
		for i := range clusters {
			group.Go(func() error { return a.trySendCompressed(t.Context(), tokens[i], sets[i]) })
		}
		a.must(group.Wait())
		t.Logf("all empty trees took %s", time.Since(began).Round(time.Millisecond))
		a.expectAlive()
	})
}
