package catalogue

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/threeport/threeport-agent/internal/health"
)

// summaries has the types of conditions that are about the whole object.
var summaries = []string{"Ready", "Available", "Healthy", "Synced", "Programmed", "Accepted", "Succeeded"}

// exceptions has the cases by kind that are Healthy by their rule and not by the conventions, with the reason.
var exceptions = map[string]string{
	"scaled to zero: PodAutoscaler.autoscaling.internal.knative.dev":  "it receives no requests, and Ready is False as long",
	"trial stopped early: Trial.kubeflow.org":                         "early stopping is one of its regular ends",
	"rolled back on request: MilvusUpgrade.milvus.io":                 "spec.operation asks for it",
	"an upgrade to approve: Subscription.operators.coreos.com":        "the installed version works",
	"stopped: ClusterQueue.kueue.x-k8s.io":                            "spec.stopPolicy holds it",
	"mariadb backup suspended: Backup.k8s.mariadb.com":                "it is Complete only after a run",
	"catalogue switched off: ClusterCatalog.olm.operatorframework.io": "spec.availabilityMode asks for it",
	"no target: BackupTarget.longhorn.io":                             "none is declared",
	"pool: CiliumLoadBalancerIPPool.cilium.io":                        "IPsAvailable is always Unknown: it has a count for a message",
	"being renewed, in time: Certificate.cert-manager.io":             "the previous certificate is still valid",
	"redpanda without a licence: Redpanda.cluster.redpanda.com":       "it works without one",
	"artemis scaled to zero: ActiveMQArtemis.broker.amq.io":           "Deployed is False for size 0",
	"artemis blocked: ActiveMQArtemis.broker.amq.io":                  "an annotation asks for it",

	"stream runs: JetJob.hazelcast.com":    "a stream has no end",
	"job cancelled: JetJob.hazelcast.com":  "spec.state asks for it",
	"shut down: Infinispan.infinispan.org": "spec.replicas is 0",

	"migration rejected: Migration.schemas.schemahero.io":      "a user has rejected it",
	"operation cancelled: OpsRequest":                          "spec.cancel asks for it",
	"statefulset with a partition: StatefulSet.apps.kruise.io": "spec.updateStrategy.rollingUpdate.partition holds the others",

	"work applied: Work.work.karmada.io": "Dispatching is True unless the Work is suspended",
	"chaos injected: ":                   "AllRecovered is False until the end",
	"chaos ended: ":                      "AllInjected is False after the end",

	"engine stopped: ChaosEngine.litmuschaos.io": "spec.engineState asks for it",
	"test finished: K6.k6.io":                    "TestRunRunning is False after the end",

	"monitor synced: DatadogMonitor.datadoghq.com": "monitorState is about the watched service",

	"runner waits for a job: EphemeralRunner.actions.github.com": "it is online, and Pending means that it has no job",
	"runner ended: EphemeralRunner.actions.github.com":           "it is not ready after its job",
	"keycloak ready: ": "reconciling is the phase of its watched resources",

	"network active: ":                        "its conditions are not removed, and the reason is the present one",
	"rolled back: Rollout.rollouts.kruise.io": "the workload runs its stable revision, as declared",
}

// mayChange has the conditions that do not affect a Healthy object, with the reason.
var mayChange = map[string]string{
	"Running: kubeflow.org":    "the run has succeeded and ended.",
	"NoWarnings: rabbitmq.com": "it is about the spec, such as a limit that is not the request",
	"Running: stackgres.io":    "the operation has completed",

	"ValidReleaseImage: hypershift.openshift.io": "it is about a later release; the nodes of now are ready",
	"Created: kubeflow.org":                      "it is a step, and the run is suspended",

	"PendingUpgrade: stackgres.io":   "it is about a newer version, and the cluster works",
	"Synchronizing: volsync.backube": "an earlier copy has succeeded",
	"PreBackupPodReady: k8up.io":     "its reason shows whether it failed",

	"cilium.io/IPsAvailable: cilium.io": "it has a count for a message, and its status says nothing",
}

// healthyCases calls a function for each case that is Healthy.
func healthyCases(t *testing.T, each func(caseFile, schema.GroupKind, *unstructured.Unstructured)) {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, path := range paths {
		for _, c := range read(t, path) {
			if c.Want.Status != health.Healthy {
				continue
			}
			for _, object := range c.objects(t) {
				total++
				each(c, object.GroupVersionKind().GroupKind(), object)
			}
		}
	}
	if total < 300 {
		t.Errorf("only %d cases are Healthy", total)
	}
}

// listed returns the key of a list that a name starts with, and marks it as used.
func listed(list, unused map[string]string, name string) bool {
	for key := range list {
		if strings.HasPrefix(name, key) {
			delete(unused, key)
			return true
		}
	}
	return false
}

// TestRules_HealthyCases_AgreeWithConventions assesses each Healthy case by the conventions. They may give Unknown. If they
// find a fault, the rule ignores one, or exceptions has a reason.
func TestRules_HealthyCases_AgreeWithConventions(t *testing.T) {
	unused := maps.Clone(exceptions)
	healthyCases(t, func(c caseFile, kind schema.GroupKind, object *unstructured.Unstructured) {
		alone := health.Object(kind, object, health.Context{Now: c.now()})
		if alone.Status == health.Healthy || alone.Status == health.Unknown || listed(exceptions, unused, c.Name+": "+kind.String()) {
			return
		}
		t.Errorf("%s: %s is Healthy, and by the conventions %s %s: %s", c.Name, kind, alone.Status, alone.Reason, alone.Message)
	})
	for key := range unused {
		t.Errorf("%s need not be listed", key)
	}
}

// TestRules_EveryConditionCounts changes one condition of each Healthy case. The object must not stay Healthy if the
// condition is about the whole object, or if the conventions find a fault.
func TestRules_EveryConditionCounts(t *testing.T) {
	unused, changed := maps.Clone(mayChange), 0
	healthyCases(t, func(c caseFile, kind schema.GroupKind, object *unstructured.Unstructured) {
		conditions, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
		if err != nil {
			return // a table of them
		}
		for i := range conditions {
			was, _ := conditions[i].(map[string]any)
			name, _ := was["type"].(string)
			for _, status := range []string{"True", "False", "Unknown"} {
				if was["status"] == status {
					continue
				}
				changed++
				other := withCondition(t, object, i, status)
				got := health.Object(kind, other, health.Context{Now: c.now(), Rules: Rules()})
				if got.Status != health.Healthy || got.Reason == "Suspended" && status == "Unknown" {
					continue // the status of a suspended object does not change
				}
				alone := health.Object(kind, other, health.Context{Now: c.now()})
				whole := slices.Contains(summaries, name) && was["status"] == "True"
				seen := alone.Status != health.Healthy && alone.Status != health.Unknown
				if (whole || seen) && !listed(mayChange, unused, name+": "+kind.Group) && exceptions[c.Name+": "+kind.String()] == "" {
					t.Errorf("%s: %s is Healthy even if %s is %s; by the conventions it is %s", c.Name, kind, name, status, alone.Status)
				}
			}
		}
	})
	if changed < 500 {
		t.Errorf("only %d conditions were changed", changed)
	}
	for key := range unused {
		t.Errorf("%s need not be listed", key)
	}
}

// withCondition returns an object with a changed status of one condition.
func withCondition(t *testing.T, object *unstructured.Unstructured, i int, status string) *unstructured.Unstructured {
	t.Helper()
	other := object.DeepCopy()
	conditions, _, err := unstructured.NestedSlice(other.Object, "status", "conditions")
	if err != nil {
		t.Fatal(err)
	}
	conditions[i].(map[string]any)["status"] = status
	if err := unstructured.SetNestedSlice(other.Object, conditions, "status", "conditions"); err != nil {
		t.Fatal(err)
	}
	return other
}

// TestRules_TerminatingObject_IsNotHealthy adds a condition to an object that the conventions call Healthy. Nodes and
// machines are Ready until they are gone.
func TestRules_TerminatingObject_IsNotHealthy(t *testing.T) {
	for _, leaving := range []string{"Deleting", "Disrupting", "Draining", "Terminating"} {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": map[string]any{"name": "x"},
			"status": map[string]any{"conditions": []any{
				map[string]any{"type": "Ready", "status": "True"}, map[string]any{"type": leaving, "status": "True"},
			}},
		}}
		a := health.Object(object.GroupVersionKind().GroupKind(), object, health.Context{Now: caseTime, Rules: Rules()})
		if a.Status != health.Reconciling {
			t.Errorf("a NodeClaim that is %s is %s %s: %s", leaving, a.Status, a.Reason, a.Message)
		}
	}
}

// TestRules_BuiltInKinds_HaveNone checks that no rule of the catalogue replaces a built-in one, not even by a pattern.
func TestRules_BuiltInKinds_HaveNone(t *testing.T) {
	groups := []string{
		"", "admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "apps",
		"authentication.k8s.io", "authorization.k8s.io", "autoscaling", "batch", "certificates.k8s.io",
		"coordination.k8s.io", "discovery.k8s.io", "events.k8s.io", "extensions", "flowcontrol.apiserver.k8s.io",
		"gateway.networking.k8s.io", "gateway.networking.x-k8s.io", "groupsnapshot.storage.k8s.io",
		"internal.apiserver.k8s.io", "metrics.k8s.io", "networking.k8s.io", "node.k8s.io", "policy",
		"policy.networking.k8s.io", "rbac.authorization.k8s.io", "resource.k8s.io", "scheduling.k8s.io",
		"snapshot.storage.k8s.io", "storage.k8s.io", "storagemigration.k8s.io",
	}
	for _, group := range groups {
		if Rules().Covers(schema.GroupKind{Group: group, Kind: "Any"}) {
			t.Errorf("there is a rule for all kinds of %q", group)
		}
	}
	for _, kind := range Rules().Kinds() {
		if slices.Contains(groups, kind.Group) {
			t.Errorf("there is a rule for %s", kind)
		}
	}
}
