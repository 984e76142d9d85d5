package browser

import (
	"fmt"
	"testing"
	"time"
)

// offlineTimeout is the agent timeout of tests whose agents are offline.
const offlineTimeout = time.Second

// names is a JavaScript expression: the names of the rows in the list.
const names = "[...document.querySelectorAll('.grid-list .row .open')].map((a) => a.innerText).join()"

// chipNumber is a JavaScript expression: the number of the chip of a status.
func chipNumber(status string) string {
	return fmt.Sprintf(`document.querySelector('.chip[data-status="%s"] .number').innerText`, status)
}

func newClusterWith(name string, workloads ...Workload) Cluster {
	c := newCluster(name, time.Now(), 0)
	c.Workloads = workloads
	return c
}

// Workloads of offline agents are all Unknown. The last status orders them.
func TestWorkloadList_OfflineClusters_SortByLastStatus(t *testing.T) {
	now := time.Now()
	api, _ := startAPI(t, offlineTimeout, Fleet{Clusters: []Cluster{
		newClusterWith("a", withStatus("was-healthy", status("Healthy", "", "", now, time.Minute))),
		newClusterWith("b", withStatus("was-down", status("Down", "Reason", "cause", now, time.Hour))),
		newClusterWith("c", withStatus("was-unhealthy", status("Unhealthy", "Reason", "cause", now, time.Minute))),
	}})
	tab := openTab(t)
	visit(t, tab, api.URL+"/", listShown+" && "+chipNumber("Unknown")+" === '3'")
	until(t, tab, names+" === 'was-down,was-unhealthy,was-healthy'")
	visit(t, tab, api.URL+"/?sort=-worst", listShown+" && "+names+" === 'was-healthy,was-unhealthy,was-down'")
}
