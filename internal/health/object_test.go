package health

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestObject_BuiltInKinds(t *testing.T) {
	runObjectCases(t, []objectCase{
		{"a ConfigMap runs nothing", `{apiVersion: v1, kind: ConfigMap, data: {k: v}}`, Healthy, ""},
		{"nor does a Role", `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role}`, Healthy, ""},
		{"nor a webhook's configuration", `{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration}`, Healthy, ""},
		{"another group's ConfigMap may", `{apiVersion: example.com/v1, kind: ConfigMap}`, Unknown, "NoSignal"},
		{"a ConfigMap that is being deleted", `{apiVersion: v1, kind: ConfigMap, metadata: {deletionTimestamp: "2026-01-02T03:04:05Z"}}`, Reconciling, "Terminating"},

		{"a Job runs", `{apiVersion: batch/v1, kind: Job, status: {active: 1}}`, Reconciling, "Running"},
		{"a Job has completed", `{apiVersion: batch/v1, kind: Job, status: {conditions: [{type: Complete, status: "True"}]}}`, Healthy, Completed},
		{"a Job failed", `{apiVersion: batch/v1, kind: Job, status: {conditions: [{type: Failed, status: "True", reason: BackoffLimitExceeded}]}}`, Down, "BackoffLimitExceeded"},
		{"a Job is about to fail", `{apiVersion: batch/v1, kind: Job, status: {conditions: [{type: FailureTarget, status: "True"}]}}`, Down, "JobFailed"},
		{"a condition that is False is none", `{apiVersion: batch/v1, kind: Job, status: {conditions: [{type: Complete, status: "False"}, {type: Failed, status: "False"}]}}`, Reconciling, "Running"},
		{"a CronJob has nothing to run between its times", `{apiVersion: batch/v1, kind: CronJob, spec: {schedule: "* * * * *"}}`, Healthy, ""},

		{"a Service with a cluster address", `{apiVersion: v1, kind: Service, spec: {type: ClusterIP}}`, Healthy, ""},
		{"a Service whose type is defaulted", `{apiVersion: v1, kind: Service}`, Healthy, ""},
		{"a load balancer without an address", `{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}, status: {loadBalancer: {}}}`, Reconciling, "LoadBalancerPending"},

		{"a load balancer with an empty address", `{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}, status: {loadBalancer: {ingress: [{}, {ip: ""}]}}}`, Reconciling, "LoadBalancerPending"},
		{"a load balancer with an address", `{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}, status: {loadBalancer: {ingress: [{ip: 192.0.2.1}]}}}`, Healthy, ""},
		{"a load balancer with a name", `{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}, status: {loadBalancer: {ingress: [{hostname: lb.example.com}]}}}`, Healthy, ""},

		{"a claim that is bound", `{apiVersion: v1, kind: PersistentVolumeClaim, status: {phase: Bound}}`, Healthy, ""},
		{"a claim that waits", `{apiVersion: v1, kind: PersistentVolumeClaim, status: {phase: Pending}}`, Reconciling, "Pending"},
		{"a claim without a status", `{apiVersion: v1, kind: PersistentVolumeClaim}`, Reconciling, "Pending"},
		{"a claim that lost its volume", `{apiVersion: v1, kind: PersistentVolumeClaim, status: {phase: Lost}}`, Down, "Lost"},
		{"a volume that is free", `{apiVersion: v1, kind: PersistentVolume, status: {phase: Available}}`, Healthy, ""},
		{"a volume that failed", `{apiVersion: v1, kind: PersistentVolume, status: {phase: Failed}}`, Down, "Failed"},

		{"a namespace", `{apiVersion: v1, kind: Namespace, status: {phase: Active}}`, Healthy, ""},
		{"a namespace that is being deleted", `{apiVersion: v1, kind: Namespace, status: {phase: Terminating}}`, Reconciling, "Terminating"},
	})
}

func TestObject_UnknownKinds_UseConditions(t *testing.T) {
	const head = "apiVersion: example.com/v1\nkind: Thing\nmetadata: {generation: 3}\n"
	runObjectCases(t, []objectCase{
		{"there is no status", head, Unknown, "NoSignal"},
		{"there are no conditions, and no word of its state", head + `status: {observedGeneration: 3, address: x}`, Unknown, "NoSignal"},

		{"there are no conditions, and a word of its state", head + `status: {observedGeneration: 3, phase: Running}`, Healthy, ""},
		{"no condition is known", head + `status: {conditions: [{type: Odd, status: "True"}]}`, Unknown, "NoSignal"},
		{"it is ready", head + `status: {conditions: [{type: Ready, status: "True"}]}`, Healthy, ""},
		{"it is ready, as of the latest spec", head + `status: {observedGeneration: 3, conditions: [{type: Ready, status: "True", observedGeneration: 3}]}`, Healthy, ""},

		{"it was, as of an earlier spec", head + `status: {observedGeneration: 2, conditions: [{type: Ready, status: "True"}]}`, Reconciling, "SpecNotObserved"},
		{"the condition is about an earlier spec", head + `status: {conditions: [{type: Ready, status: "True", observedGeneration: 2}]}`, Reconciling, "SpecNotObserved"},
		{"bad news about an earlier spec is none", head + `status: {conditions: [{type: Stalled, status: "True", observedGeneration: 2}, {type: Ready, status: "True"}]}`, Reconciling, "SpecNotObserved"},

		{"it is not ready", head + `status: {conditions: [{type: Ready, status: "False", reason: NoDisk, message: there is no disk}]}`, Unhealthy, "NoDisk"},
		{"it is not ready, without a reason", head + `status: {conditions: [{type: Ready, status: "False"}]}`, Unhealthy, "NotReady"},
		{"it does not know", head + `status: {conditions: [{type: Ready, status: Unknown}]}`, Reconciling, "ReadyUnknown"},

		{"one of two is bad", head + `status: {conditions: [{type: Ready, status: "True"}, {type: Synced, status: "False", reason: NoAccess}]}`, Unhealthy, "NoAccess"},
		{"it is stalled, and says that it is ready", head + `status: {conditions: [{type: Ready, status: "True"}, {type: Stalled, status: "True"}]}`, Unhealthy, "Stalled"},
		{"it is not degraded", head + `status: {conditions: [{type: Available, status: "True"}, {type: Degraded, status: "False"}]}`, Healthy, ""},

		{"it is at work", head + `status: {conditions: [{type: Progressing, status: "True", reason: Creating}]}`, Reconciling, "Creating"},
		{"it progressed", head + `status: {conditions: [{type: Available, status: "True"}, {type: Progressing, status: "True", reason: NewReplicaSetAvailable}]}`, Healthy, ""},

		{"it was ready, and is at work again", head + `status: {conditions: [{type: Ready, status: "True"}, {type: Reconciling, status: "True"}]}`, Reconciling, "Reconciling"},
		{"a definition is established", `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, status: {conditions: [{type: Established, status: "True"}]}}`, Healthy, ""},
	})
}

func TestObject_MetadataOnly(t *testing.T) {
	deleted := metav1.Now()
	tests := []struct {
		reason string
		kind   schema.GroupKind
		object runtime.Object
		want   Status
	}{
		{"a Secret is there", schema.GroupKind{Kind: "Secret"}, &metav1.PartialObjectMetadata{}, Healthy},
		{
			"a Secret that is being deleted",
			schema.GroupKind{Kind: "Secret"},
			&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &deleted}}, Reconciling,
		},
		{"anything else may not run", schema.GroupKind{Group: "apps", Kind: "Deployment"}, &metav1.PartialObjectMetadata{}, Unknown},
		{"nothing is there", schema.GroupKind{Kind: "Secret"}, nil, Unknown},
		{"it has no metadata", schema.GroupKind{Kind: "Secret"}, &metav1.Status{}, Unknown},
		{"a typed object", schema.GroupKind{Kind: "Pod"}, &corev1.Pod{}, Unknown},
	}
	for _, tt := range tests {
		if got := Object(tt.kind, tt.object, Context{}); got.Status != tt.want {
			t.Errorf("%s: got %+v, want %s", tt.reason, got, tt.want)
		}
	}
}
