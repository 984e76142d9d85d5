package browser

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// Fleet is a set of clusters with their workloads.
type Fleet struct {
	Clusters []Cluster
}

// Cluster is an agent with its workloads.
type Cluster struct {
	Agent     threeport.Agent
	Workloads []Workload
}

// Workload is a workload with all reports of its agent.
type Workload struct {
	Name       string
	Type       string // controlplane.TypeWorkloadInstance or TypeHelmWorkloadInstance
	Status     threeport.StatusReport
	Tree       []threeport.TreeObject
	Events     []threeport.EventReport
	Operations []Operation // of one object, in the order of time
}

// Operation is an object's definition with its version.
type Operation struct {
	threeport.OperationReport
	Version threeport.ID
}

// newCluster returns a cluster with a heartbeat now; delay is its delay of delivery.
func newCluster(name string, now time.Time, delay time.Duration) Cluster {
	return Cluster{Agent: threeport.Agent{
		ClusterUID: "uid-of-" + name, ClusterName: name, Version: "v0.9.0", Time: now, DelaySeconds: delay.Seconds(),
	}}
}

// status returns a verdict that has lasted for a while.
func status(word, reason, cause string, now time.Time, since time.Duration) threeport.StatusReport {
	at := now.Add(-since)
	return threeport.StatusReport{Status: word, Reason: reason, Cause: cause, Since: &at}
}

// ManyWorkloads returns a fleet of n workloads, most of them Healthy, in n/100 clusters, for tests of speed.
func ManyWorkloads(n int, now time.Time) Fleet {
	var fleet Fleet
	kinds := []string{"api", "worker", "cache", "gateway", "billing", "search", "mailer", "ledger"}
	for i := range n {
		if i%100 == 0 {
			fleet.Clusters = append(fleet.Clusters, newCluster(fmt.Sprintf("edge-%03d", i/100), now, time.Duration(i%3)*time.Second))
		}
		w := Workload{
			Name:   fmt.Sprintf("%s-%05d", kinds[i%len(kinds)], i),
			Type:   threeport.TypeWorkloadInstance,
			Status: status("Healthy", "", "", now, time.Duration(i)*time.Minute),
		}
		switch {
		case i%7 == 3:
			w.Type = threeport.TypeHelmWorkloadInstance
		case i%97 == 0:
			w.Status = status("Down", "CrashLoopBackOff", fmt.Sprintf("Deployment %s has 0 of 3 replicas ready ← 3 pods CrashLoopBackOff: exit code 1", w.Name), now, time.Hour)
		case i%41 == 0:
			w.Status = status("Unhealthy", "ImagePullBackOff", fmt.Sprintf("Deployment %s has 2 of 3 replicas ready ← 1 pod ImagePullBackOff", w.Name), now, 2*time.Hour)
		case i%53 == 0:
			w.Status = status("Reconciling", "Progressing", fmt.Sprintf("Deployment %s: 1 of 3 replicas updated", w.Name), now, time.Minute)
		}
		last := &fleet.Clusters[len(fleet.Clusters)-1]
		last.Workloads = append(last.Workloads, w)
	}
	return fleet
}

// Hostile returns a fleet whose texts all contain markup and scripts.
func Hostile(now time.Time) Fleet {
	script := `<script>document.title='owned'</script><img src=x onerror="alert(1)">`
	long := make([]rune, 10_000)
	for i := range long {
		long[i] = 'a' + rune(i%26)
	}
	names := []string{
		script,
		`"><svg/onload=alert(2)>`,
		"javascript:alert(3)",
		"right-\u202eot-tfel",
		"zero\u200bwidth\u2066isolate",
		"family 👩‍👩‍👧 and flag 🇨🇭",
		string(long[:250]),
	}
	c := newCluster(`<b onmouseover=alert(4)>cluster</b>`, now, 0)
	for i, name := range names {
		uid := fmt.Sprintf("hostile-%d", i)
		ref := threeport.ObjectRef{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "x", Name: script, UID: uid}
		c.Workloads = append(c.Workloads, Workload{
			Name:   name,
			Type:   threeport.TypeWorkloadInstance,
			Status: status("Down", "Script", "Deployment "+script+" is down ← "+string(long)+" ← \u202ereversed", now, time.Minute),
			Tree:   []threeport.TreeObject{{Object: ref, Listed: true, Health: "Down", State: "Present", Cause: script}},
			Events: []threeport.EventReport{{UID: uid + "-event", Involved: ref, Type: "Warning", Reason: "Script", Message: script + "\n" + string(long), Time: now}},
			Operations: []Operation{{Version: 1, OperationReport: threeport.OperationReport{
				Object: ref, Operation: "ADDED", Definition: definition(map[string]any{
					"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": script, "annotations": map[string]any{script: string(long), "big": json.Number("9007199254740993")}},
				}),
			}}},
		})
	}
	return Fleet{Clusters: []Cluster{c}}
}

// definition returns an object as JSON.
func definition(object map[string]any) json.RawMessage {
	raw, err := json.Marshal(object)
	if err != nil {
		panic(fmt.Sprintf("the definition of a test object is no JSON: %v", err)) // test objects are constants
	}
	return raw
}
