package browser

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// Sample returns a typical fleet: most workloads are Healthy, some are not, and one agent is offline. The workload [Checkout]
// has everything that a page can show.
func Sample(now time.Time) Fleet {
	frankfurt := newCluster("frankfurt-prod-1", now, 0)
	virginia := newCluster("virginia-prod-2", now, 2*time.Second)
	singapore := newCluster("singapore-prod-1", now, 94*time.Second)
	staging := newCluster("staging", now, 0)

	frankfurt.Workloads = append([]Workload{checkout(now)}, healthy(now, "storefront", "catalog", "search", "cart", "pricing", "inventory", "identity", "sessions", "notifications", "recommendations")...)
	frankfurt.Workloads = append(frankfurt.Workloads,
		withStatus("payments", status("Unhealthy", "Unschedulable", "2 pods Unschedulable: 0/9 nodes are available: 9 Insufficient memory → Deployment payments has 4 of 6 replicas ready", now, 47*time.Minute)))
	virginia.Workloads = append(healthy(now, "storefront", "catalog", "search", "cart", "pricing", "identity", "sessions", "media", "thumbnails"),
		withStatus("ledger", status("Down", "CrashLoopBackOff", "Pod ledger-0: container postgres CrashLoopBackOff: exit code 1, restarted 41 times → StatefulSet ledger has 0 of 3 replicas ready", now, 3*time.Hour+12*time.Minute)),
		withStatus("exports", status("Unhealthy", "BackoffLimitExceeded", "Job exports-nightly failed: 6 pods ended with exit code 137 (OOMKilled)", now, 6*time.Hour)),
		withStatus("fraud-model", status("Reconciling", "Progressing", "Deployment fraud-model: 2 of 5 replicas updated, within its deadline of 10 min", now, 2*time.Minute)))
	singapore.Workloads = append(healthy(now, "storefront", "catalog", "search", "cart", "identity"),
		withStatus("edge-gateway", status("Unhealthy", "NoAddress", "Service edge-gateway has no address yet: its load balancer is not provisioned", now, 26*time.Minute)),
		withStatus("geo-index", status("Unknown", "NoSignal", "GeoIndex geo-index says nothing of its health", now, 31*time.Hour)))
	staging.Workloads = append(healthy(now, "storefront", "catalog", "cart", "experiments"),
		withStatus("search", status("Error", "KindNotInstalled", "OpenSearchCluster search cannot be judged: its kind is not installed", now, 74*time.Minute)),
		withStatus("mailer", status("Healthy", "Suspended", "CronJob mailer is suspended", now, 5*24*time.Hour)))
	fleet := Fleet{Clusters: []Cluster{frankfurt, virginia, singapore, staging}}
	for _, c := range fleet.Clusters {
		for i := range c.Workloads {
			c.Workloads[i].addSampleTree()
			c.Workloads[i].addStarts(now)
		}
	}
	return fleet
}

// addStarts sets since when the objects have their health: Healthy ones for 40 days, others as long as the workload its status.
func (w *Workload) addStarts(now time.Time) {
	deployed := now.Add(-40 * 24 * time.Hour)
	for i := range w.Tree {
		if o := &w.Tree[i]; o.Health == "Healthy" {
			o.Since = &deployed
		} else {
			o.Since = w.Status.Since
		}
	}
}

// samplePods are the Healthy Pods and all Pods of the workloads that are not Healthy, with the kind of their owner.
var samplePods = map[string]struct {
	group, kind    string
	healthy, total int
}{
	"payments":     {"apps", "Deployment", 4, 6},
	"ledger":       {"apps", "StatefulSet", 0, 3},
	"exports":      {"batch", "Job", 0, 6},
	"fraud-model":  {"apps", "Deployment", 5, 5},
	"edge-gateway": {"", "Service", 0, 0},
	"geo-index":    {"search.example.com", "GeoIndex", 0, 0},
	"mailer":       {"batch", "CronJob", 0, 0},
}

// addSampleTree adds a listed object with its Pods, unless the workload has a tree. The agent does not see an object of a
// kind that is not installed.
func (w *Workload) addSampleTree() {
	if len(w.Tree) > 0 || w.Status.Reason == "KindNotInstalled" {
		return
	}
	of, special := samplePods[w.Name]
	if !special {
		of.group, of.kind, of.healthy, of.total = "apps", "Deployment", 3, 3
	}
	owner := object(of.group, of.kind, w.Name)
	w.addListed(owner, w.Status.Status, w.Status.Reason, w.Status.Cause)
	for i := range of.total {
		pod := object("", "Pod", fmt.Sprintf("%s-%d", w.Name, i))
		if i < of.healthy {
			w.addDerived(pod, owner, "Healthy", "", "")
		} else {
			w.addDerived(pod, owner, w.Status.Status, w.Status.Reason, w.Status.Cause)
		}
	}
}

// Checkout is the name of the most complete workload of [Sample].
const Checkout = "checkout"

func healthy(now time.Time, names ...string) []Workload {
	var all []Workload
	for i, name := range names {
		w := Workload{Name: name, Type: threeport.TypeWorkloadInstance, Status: status("Healthy", "", "", now, time.Duration(i+2)*11*time.Hour)}
		if i%3 == 1 {
			w.Type = threeport.TypeHelmWorkloadInstance
		}
		all = append(all, w)
	}
	return all
}

func withStatus(name string, s threeport.StatusReport) Workload {
	return Workload{Name: name, Type: threeport.TypeWorkloadInstance, Status: s}
}

// checkout returns a Deployment whose new version cannot reach its database, with its other resources.
func checkout(now time.Time) Workload {
	w := Workload{
		Name: Checkout, Type: threeport.TypeWorkloadInstance,
		Status: status("Down", "CrashLoopBackOff", "6 pods CrashLoopBackOff: container app ended with exit code 1, restarted 9 times → "+
			"ReplicaSet checkout-7d9c8b6f5 has 0 of 6 pods ready → Deployment checkout has 0 of 6 replicas ready", now, 23*time.Minute),
	}
	w.Status.Pending, w.Status.Rejected, w.Status.Dropped = 14, 1, 212
	deployment := object("apps", "Deployment", "checkout")
	old, fresh := object("apps", "ReplicaSet", "checkout-5f6d7c4b9"), object("apps", "ReplicaSet", "checkout-7d9c8b6f5")
	cache, cronJob, job := object("apps", "StatefulSet", "checkout-cache"), object("batch", "CronJob", "checkout-cleanup"), object("batch", "Job", "checkout-cleanup-29381")
	w.addListed(deployment, "Down", "CrashLoopBackOff", "0 of 6 replicas ready")
	w.addListed(object("", "Service", "checkout"), "Unhealthy", "NoEndpoints", "no pod behind it is ready")
	w.addListed(object("", "ConfigMap", "checkout-config"), "Healthy", "", "")
	w.addListed(cache, "Healthy", "", "")
	w.addListed(cronJob, "Healthy", "", "")
	w.addDerived(fresh, deployment, "Down", "CrashLoopBackOff", "0 of 6 pods ready")
	w.addDerived(old, deployment, "Healthy", "", "")
	w.addDerived(job, cronJob, "Healthy", "Completed", "")
	w.addDerived(object("", "Pod", "checkout-cleanup-29381-x2x9k"), job, "Healthy", "Completed", "")
	var pods []threeport.ObjectRef
	for i := range 6 {
		pod := object("", "Pod", fmt.Sprintf("checkout-7d9c8b6f5-%s", []string{"4kq2n", "8xwzt", "c5mlp", "hh7vd", "p9r2j", "zt6bs"}[i]))
		pods = append(pods, pod)
		w.addDerived(pod, fresh, "Down", "CrashLoopBackOff", "container app ended with exit code 1, restarted 9 times")
		w.Tree[len(w.Tree)-1].Pod = crashingPod(now, i)
	}
	for i := range 12 {
		w.addDerived(object("", "Pod", fmt.Sprintf("checkout-cache-%d", i)), cache, "Healthy", "", "")
		w.Tree[len(w.Tree)-1].Pod = &threeport.PodFacts{Node: nodeOf(i), Containers: []threeport.ContainerFacts{
			{Name: "redis", Image: "registry.example.com/library/redis:7.4", State: "Running", Ready: true},
		}}
	}
	w.addDefinitions(now, deployment)
	w.addEvents(now, deployment, fresh, old, pods)
	return w
}

func nodeOf(i int) string { return fmt.Sprint("node-", i%4+1) }

// crashingPod returns the facts of a Pod whose container app crashes.
func crashingPod(now time.Time, i int) *threeport.PodFacts {
	ended := func(minutes int) *time.Time {
		at := now.Add(-time.Duration(minutes) * time.Minute).UTC().Truncate(time.Second)
		return &at
	}
	return &threeport.PodFacts{Node: nodeOf(i), Containers: []threeport.ContainerFacts{
		{
			Name: "migrate", Type: "init", Image: "registry.example.com/shop/migrate:4.18.0", State: "Terminated", Reason: "Completed",
			LastExit: &threeport.ContainerExit{Reason: "Completed", Time: ended(26)},
		},
		{
			Name: "app", Image: "registry.example.com/shop/checkout:4.18.0", State: "Waiting", Reason: "CrashLoopBackOff", Restarts: 9,
			LastExit: &threeport.ContainerExit{Code: 1, Reason: "Error", Time: ended(2)},
		},
		{Name: "metrics", Image: "registry.example.com/shop/metrics:1.2.0", State: "Running"},
	}}
}

func object(group, kind, name string) threeport.ObjectRef {
	return threeport.ObjectRef{Group: group, Version: "v1", Kind: kind, Namespace: "shop", Name: name, UID: "uid-of-" + kind + "-" + name}
}

func (w *Workload) addListed(ref threeport.ObjectRef, health, reason, cause string) {
	w.Tree = append(w.Tree, threeport.TreeObject{Object: ref, Listed: true, State: "Present", Health: health, Reason: reason, Cause: cause})
}

func (w *Workload) addDerived(ref, owner threeport.ObjectRef, health, reason, cause string) {
	w.Tree = append(w.Tree, threeport.TreeObject{Object: ref, Owner: owner.UID, Health: health, Reason: reason, Cause: cause})
}

// addDefinitions adds two versions of the Deployment. The second one has another image and another variable, which broke it.
func (w *Workload) addDefinitions(now time.Time, ref threeport.ObjectRef) {
	for i, image := range []string{"registry.example.com/shop/checkout:4.17.2", "registry.example.com/shop/checkout:4.18.0"} {
		env := []any{map[string]any{"name": "PAYMENTS_URL", "value": "http://payments.shop.svc:8080"}, map[string]any{"name": "LOG_LEVEL", "value": "info"}}
		ready := json.Number("6")
		if i == 1 {
			env = append(env, map[string]any{"name": "LEDGER_DSN", "valueFrom": map[string]any{"secretKeyRef": map[string]any{"name": "checkout-ledger", "key": "dsn"}}})
			ready = "0"
		}
		w.Operations = append(w.Operations, Operation{
			Version: threeport.ID(88211 + i*907),
			OperationReport: threeport.OperationReport{Object: ref, Operation: []string{"ADDED", "MODIFIED"}[i], Definition: definition(map[string]any{
				"apiVersion": "apps/v1", "kind": "Deployment",
				"metadata": map[string]any{
					"name": ref.Name, "namespace": ref.Namespace, "uid": ref.UID, "generation": 31 + i, "resourceVersion": fmt.Sprint(88211 + i*907),
					"creationTimestamp": now.Add(-40 * 24 * time.Hour).UTC().Truncate(time.Second).Format(time.RFC3339),
					"labels":            map[string]any{"app.kubernetes.io/name": "checkout", "app.kubernetes.io/part-of": "shop", "team": "payments"},
					"annotations":       map[string]any{"deployment.kubernetes.io/revision": fmt.Sprint(7 + i)},
				},
				"spec": map[string]any{
					"replicas": 6, "revisionHistoryLimit": 2,
					"selector": map[string]any{"matchLabels": map[string]any{"app.kubernetes.io/name": "checkout"}},
					"strategy": map[string]any{"type": "Recreate"},
					"template": map[string]any{
						"metadata": map[string]any{"labels": map[string]any{"app.kubernetes.io/name": "checkout"}},
						"spec": map[string]any{
							"serviceAccountName": "checkout",
							"containers": []any{map[string]any{
								"name": "app", "image": image, "ports": []any{map[string]any{"containerPort": 8080, "name": "http"}}, "env": env,
								"resources":      map[string]any{"requests": map[string]any{"cpu": "250m", "memory": "384Mi"}, "limits": map[string]any{"memory": "512Mi"}},
								"readinessProbe": map[string]any{"httpGet": map[string]any{"path": "/readyz", "port": "http"}, "periodSeconds": 5},
							}},
						},
					},
				},
				"status": map[string]any{
					"observedGeneration": 31 + i, "replicas": 6, "updatedReplicas": 6, "readyReplicas": ready, "unavailableReplicas": 6 * i,
					"conditions": []any{
						map[string]any{"type": "Available", "status": []string{"True", "False"}[i], "reason": []string{"MinimumReplicasAvailable", "MinimumReplicasUnavailable"}[i]},
						map[string]any{"type": "Progressing", "status": []string{"True", "False"}[i], "reason": []string{"NewReplicaSetAvailable", "ProgressDeadlineExceeded"}[i]},
					},
				},
			})},
		})
	}
}

// addEvents adds the Events of the last 90 minutes.
func (w *Workload) addEvents(now time.Time, deployment, fresh, old threeport.ObjectRef, pods []threeport.ObjectRef) {
	ago := func(minutes float64) time.Time { return now.Add(-time.Duration(minutes * float64(time.Minute))) }
	n := 0
	addEvent := func(ref threeport.ObjectRef, level, reason, message string, at time.Time) *threeport.EventReport {
		n++
		w.Events = append(w.Events, threeport.EventReport{UID: fmt.Sprintf("%s-event-%d", w.Name, n), Involved: ref, Type: level, Reason: reason, Message: message, Time: at, Count: 1})
		return &w.Events[len(w.Events)-1]
	}
	workload := threeport.ObjectRef{Group: "control-plane.threeport.io", Version: "v1alpha1", Kind: "ThreeportWorkload", Name: "workload-instance-1"}
	addEvent(workload, "Normal", "WorkloadHealthy", "Workload is Healthy", ago(86))
	addEvent(workload, "Normal", "WorkloadReconciling", "Workload is Reconciling, it was Healthy: Deployment checkout is being updated", ago(27))
	addEvent(workload, "Warning", "WorkloadUnhealthy", "Workload is Unhealthy, it was Reconciling: 2 pods CrashLoopBackOff", ago(25))
	addEvent(workload, "Warning", "WorkloadDown", "Workload is Down, it was Unhealthy: Deployment checkout has 0 of 6 replicas ready", ago(23))

	addEvent(deployment, "Normal", "ScalingReplicaSet", "Scaled down replica set checkout-5f6d7c4b9 from 6 to 0", ago(27))
	addEvent(old, "Normal", "SuccessfulDelete", "Deleted pod: checkout-5f6d7c4b9-lq8sd", ago(26.8)).Count = 6
	addEvent(deployment, "Normal", "ScalingReplicaSet", "Scaled up replica set checkout-7d9c8b6f5 from 0 to 6", ago(26.5))
	addEvent(fresh, "Normal", "SuccessfulCreate", "Created pod: "+pods[0].Name, ago(26.4)).Count = 6
	for i, pod := range pods {
		shift := float64(i) * 0.15
		addEvent(pod, "Normal", "Scheduled", "Successfully assigned shop/"+pod.Name+" to node-"+fmt.Sprint(i%4+1), ago(26.3-shift))
		addEvent(pod, "Normal", "Pulled", "Successfully pulled image \"registry.example.com/shop/checkout:4.18.0\" in 2.114s", ago(26-shift))
		started := addEvent(pod, "Normal", "Started", "Container app started", ago(2.2+shift))
		started.Count, started.FirstTime = 9, new(ago(25.9-shift))
		addEvent(pod, "Warning", "ContainerRestarted", "container app ended with exit code 1 (Error), restart 9", ago(2.4+shift))
		for k := range 4 {
			addEvent(pod, "Warning", "Unhealthy", "Readiness probe failed: Get \"http://10.8.2.17:8080/readyz\": dial tcp 10.8.2.17:8080: connect: connection refused", ago(22-shift-float64(k)*4.5))
		}
		backOff := addEvent(pod, "Warning", "BackOff", "Back-off restarting failed container app in pod "+pod.Name, ago(0.6+shift))
		backOff.Count, backOff.FirstTime = 97+int64(i)*3, new(ago(25.2-shift))
	}
	addEvent(object("batch", "CronJob", "checkout-cleanup"), "Normal", "SawCompletedJob", "Saw completed job: checkout-cleanup-29381, condition: Complete", ago(58))
	gap := addEvent(workload, "Warning", "EventsDropped", "212 Events were dropped", ago(14))
	gap.Gap = &threeport.Gap{Normal: 180, Warning: 32, First: ago(18), Last: ago(14)}
	filtered := addEvent(workload, "Normal", "EventsFiltered", `17 Events were left out by the filter "image-pulls" of the agent`, ago(3))
	filtered.Gap = &threeport.Gap{Normal: 17, First: ago(59), Last: ago(3)}
}
