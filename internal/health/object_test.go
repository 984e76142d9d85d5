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
		{reason: "a ConfigMap runs nothing", object: `{apiVersion: v1, kind: ConfigMap, data: {k: v}}`, want: Healthy},
		{reason: "a Role runs nothing", object: `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role}`, want: Healthy},
		{
			reason: "the configuration of a webhook runs nothing",
			object: `{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration}`,
			want:   Healthy,
		},
		{reason: "a ConfigMap of another group has no rule", object: `{apiVersion: example.com/v1, kind: ConfigMap}`, want: Unknown, why: "NoSignal"},
		{
			reason: "a ConfigMap that is being deleted",
			object: `{apiVersion: v1, kind: ConfigMap, metadata: {deletionTimestamp: "2026-01-02T03:04:05Z"}}`,
			want:   Reconciling, why: "Terminating",
		},

		{reason: "a Job runs", object: `{apiVersion: batch/v1, kind: Job, status: {active: 1}}`, want: Reconciling, why: "Running"},
		{
			reason: "a Job has completed",
			object: `{apiVersion: batch/v1, kind: Job, status: {conditions: [{type: Complete, status: "True"}]}}`,
			want:   Healthy, why: Completed,
		},
		{
			reason: "a Job failed",
			object: `{apiVersion: batch/v1, kind: Job, status: {conditions: [{type: Failed, status: "True", reason: BackoffLimitExceeded}]}}`,
			want:   Down, why: "BackoffLimitExceeded",
		},
		{
			reason: "a Job is about to fail",
			object: `{apiVersion: batch/v1, kind: Job, status: {conditions: [{type: FailureTarget, status: "True"}]}}`,
			want:   Down, why: "JobFailed",
		},
		{
			reason: "a condition that is False is none",
			object: `{apiVersion: batch/v1, kind: Job, status: {conditions: [{type: Complete, status: "False"}, {type: Failed, status: "False"}]}}`,
			want:   Reconciling, why: "Running",
		},
		{
			reason: "a CronJob has nothing to run between its times",
			object: `{apiVersion: batch/v1, kind: CronJob, spec: {schedule: "* * * * *"}}`,
			want:   Healthy,
		},

		{reason: "a Service with a cluster address", object: `{apiVersion: v1, kind: Service, spec: {type: ClusterIP}}`, want: Healthy},
		{reason: "a Service whose type is defaulted", object: `{apiVersion: v1, kind: Service}`, want: Healthy},
		{
			reason: "a load balancer without an address",
			object: `{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}, status: {loadBalancer: {}}}`,
			want:   Reconciling, why: "LoadBalancerPending",
		},

		{
			reason: "a load balancer with an empty address",
			object: `{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}, status: {loadBalancer: {ingress: [{}, {ip: ""}]}}}`,
			want:   Reconciling, why: "LoadBalancerPending",
		},
		{
			reason: "a load balancer with an address",
			object: `{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}, status: {loadBalancer: {ingress: [{ip: 192.0.2.1}]}}}`,
			want:   Healthy,
		},
		{
			reason: "a load balancer with a name",
			object: `{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}, status: {loadBalancer: {ingress: [{hostname: lb.example.com}]}}}`,
			want:   Healthy,
		},

		{reason: "a claim that is bound", object: `{apiVersion: v1, kind: PersistentVolumeClaim, status: {phase: Bound}}`, want: Healthy},
		{
			reason: "a claim that waits",
			object: `{apiVersion: v1, kind: PersistentVolumeClaim, status: {phase: Pending}}`,
			want:   Reconciling, why: "Pending",
		},
		{reason: "a claim without a status", object: `{apiVersion: v1, kind: PersistentVolumeClaim}`, want: Reconciling, why: "Pending"},
		{
			reason: "a claim that lost its volume",
			object: `{apiVersion: v1, kind: PersistentVolumeClaim, status: {phase: Lost}}`,
			want:   Down, why: "Lost",
		},
		{reason: "a volume that is free", object: `{apiVersion: v1, kind: PersistentVolume, status: {phase: Available}}`, want: Healthy},
		{reason: "a volume that failed", object: `{apiVersion: v1, kind: PersistentVolume, status: {phase: Failed}}`, want: Down, why: "Failed"},

		{reason: "a namespace", object: `{apiVersion: v1, kind: Namespace, status: {phase: Active}}`, want: Healthy},
		{
			reason: "a namespace that is being deleted",
			object: `{apiVersion: v1, kind: Namespace, status: {phase: Terminating}}`,
			want:   Reconciling, why: "Terminating",
		},
	})
}

func TestObject_UnknownKinds_UseConditions(t *testing.T) {
	const head = "apiVersion: example.com/v1\nkind: Thing\nmetadata: {generation: 3}\n"
	runObjectCases(t, []objectCase{
		{reason: "there is no status", object: head, want: Unknown, why: "NoSignal"},
		{
			reason: "there are no conditions, and no word of its state", object: head + `status: {observedGeneration: 3, address: x}`,
			want: Unknown, why: "NoSignal",
		},

		{
			reason: "there are no conditions, and a word of its state", object: head + `status: {observedGeneration: 3, phase: Running}`,
			want: Healthy,
		},
		{reason: "no condition is known", object: head + `status: {conditions: [{type: Odd, status: "True"}]}`, want: Unknown, why: "NoSignal"},
		{reason: "it is ready", object: head + `status: {conditions: [{type: Ready, status: "True"}]}`, want: Healthy},
		{
			reason: "it is ready, as of the latest spec",
			object: head + `status: {observedGeneration: 3, conditions: [{type: Ready, status: "True", observedGeneration: 3}]}`,
			want:   Healthy,
		},

		{
			reason: "it was ready, as of an earlier spec",
			object: head + `status: {observedGeneration: 2, conditions: [{type: Ready, status: "True"}]}`,
			want:   Reconciling, why: "SpecNotObserved",
		},
		{
			reason: "the condition is about an earlier spec",
			object: head + `status: {conditions: [{type: Ready, status: "True", observedGeneration: 2}]}`,
			want:   Reconciling, why: "SpecNotObserved",
		},
		{
			reason: "a fault about an earlier spec does not count",
			object: head + `status: {conditions: [{type: Stalled, status: "True", observedGeneration: 2}, {type: Ready, status: "True"}]}`,
			want:   Reconciling, why: "SpecNotObserved",
		},

		{
			reason: "it is not ready",
			object: head + `status: {conditions: [{type: Ready, status: "False", reason: NoDisk, message: there is no disk}]}`,
			want:   Unhealthy, why: "NoDisk",
		},
		{
			reason: "it is not ready, without a reason",
			object: head + `status: {conditions: [{type: Ready, status: "False"}]}`,
			want:   Unhealthy, why: "NotReady",
		},
		{
			reason: "the readiness is unknown",
			object: head + `status: {conditions: [{type: Ready, status: Unknown}]}`,
			want:   Reconciling, why: "ReadyUnknown",
		},

		{
			reason: "one of two is bad",
			object: head + `status: {conditions: [{type: Ready, status: "True"}, {type: Synced, status: "False", reason: NoAccess}]}`,
			want:   Unhealthy, why: "NoAccess",
		},
		{
			reason: "it is stalled, and says that it is ready",
			object: head + `status: {conditions: [{type: Ready, status: "True"}, {type: Stalled, status: "True"}]}`,
			want:   Unhealthy, why: "Stalled",
		},
		{
			reason: "it is not degraded",
			object: head + `status: {conditions: [{type: Available, status: "True"}, {type: Degraded, status: "False"}]}`,
			want:   Healthy,
		},

		{
			reason: "it is progressing",
			object: head + `status: {conditions: [{type: Progressing, status: "True", reason: Creating}]}`,
			want:   Reconciling, why: "Creating",
		},
		{
			reason: "it has finished progressing",
			object: head + `status: {conditions: [{type: Available, status: "True"}, {type: Progressing, status: "True", reason: NewReplicaSetAvailable}]}`,
			want:   Healthy,
		},

		{
			reason: "it was ready, and is at work again",
			object: head + `status: {conditions: [{type: Ready, status: "True"}, {type: Reconciling, status: "True"}]}`,
			want:   Reconciling, why: "Reconciling",
		},
		{
			reason: "a definition is established",
			object: `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, status: {conditions: [{type: Established, status: "True"}]}}`,
			want:   Healthy,
		},
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
		{reason: "a Secret is there", kind: schema.GroupKind{Kind: "Secret"}, object: &metav1.PartialObjectMetadata{}, want: Healthy},
		{
			reason: "a Secret that is being deleted",
			kind:   schema.GroupKind{Kind: "Secret"},
			object: &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &deleted}}, want: Reconciling,
		},
		{
			reason: "anything else may not run", kind: schema.GroupKind{Group: "apps", Kind: "Deployment"},
			object: &metav1.PartialObjectMetadata{}, want: Unknown,
		},
		{reason: "there is no object", kind: schema.GroupKind{Kind: "Secret"}, want: Unknown},
		{reason: "it has no metadata", kind: schema.GroupKind{Kind: "Secret"}, object: &metav1.Status{}, want: Unknown},
		{reason: "a typed object", kind: schema.GroupKind{Kind: "Pod"}, object: &corev1.Pod{}, want: Unknown},
	}
	for _, tt := range tests {
		if got := Object(tt.kind, tt.object, Context{}); got.Status != tt.want {
			t.Errorf("%s: got %+v, want %s", tt.reason, got, tt.want)
		}
	}
}
