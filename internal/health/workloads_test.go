package health

import "testing"

func TestDeployment(t *testing.T) {
	const head = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {generation: 2}\n"
	runObjectCases(t, []objectCase{
		{
			reason: "all replicas are updated and available",
			object: head + `
spec: {replicas: 3}
status: {observedGeneration: 2, replicas: 3, updatedReplicas: 3, availableReplicas: 3}`,
			want: Healthy, why: "",
		},
		{reason: "no status yet", object: head + `spec: {replicas: 3}`, want: Reconciling, why: "SpecNotObserved"},
		{reason: "a status without a generation", object: head + `
spec: {replicas: 1}
status: {replicas: 1, updatedReplicas: 1, availableReplicas: 1}`, want: Reconciling, why: "SpecNotObserved"},
		{reason: "the status is about an earlier spec", object: head + `
spec: {replicas: 3}
status: {observedGeneration: 1, replicas: 3, updatedReplicas: 3, availableReplicas: 3}`, want: Reconciling, why: "SpecNotObserved"},
		{reason: "one replica is the default", object: head + `
spec: {}
status: {observedGeneration: 2, replicas: 0}`, want: Reconciling, why: "ReplicasNotReady"},
		{reason: "scaled to zero as declared", object: head + `
spec: {replicas: 0}
status: {observedGeneration: 2}`, want: Healthy, why: ScaledToZero},
		{reason: "some replicas are of the old template", object: head + `
spec: {replicas: 3}
status: {observedGeneration: 2, replicas: 3, updatedReplicas: 1, availableReplicas: 3}`, want: Reconciling, why: "RollingOut"},
		{reason: "the replicas that are available are the old ones, which wait for the new one", object: head + `
spec: {replicas: 1}
status: {observedGeneration: 2, replicas: 2, updatedReplicas: 1, availableReplicas: 1}`, want: Reconciling, why: "RollingOut"},
		{reason: "scaled down, and more are left", object: head + `
spec: {replicas: 1}
status: {observedGeneration: 2, replicas: 3, updatedReplicas: 3, availableReplicas: 3}`, want: Reconciling, why: "ScalingDown"},
		{reason: "too few are available", object: head + `
spec: {replicas: 3}
status: {observedGeneration: 2, replicas: 3, updatedReplicas: 3, availableReplicas: 2}`, want: Reconciling, why: "ReplicasNotReady"},
		{reason: "the rollout is past its deadline, while the old replicas serve", object: head + `
spec: {replicas: 1}
status:
  observedGeneration: 2
  replicas: 1
  updatedReplicas: 1
  availableReplicas: 1
  conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded, message: it timed out}]`, want: Unhealthy, why: "ProgressDeadlineExceeded"},
		{reason: "the rollout is past its deadline, and nothing serves", object: head + `
spec: {replicas: 1}
status:
  observedGeneration: 2
  replicas: 1
  updatedReplicas: 1
  conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded, message: it timed out}]`, want: Down, why: "ProgressDeadlineExceeded"},
		{reason: "a quota keeps pods from being created", object: head + `
spec: {replicas: 1}
status:
  observedGeneration: 2
  conditions:
  - {type: Progressing, status: "True"}
  - {type: ReplicaFailure, status: "True", reason: FailedCreate}`, want: Down, why: "FailedCreate"},
		{reason: "conditions that are fine", object: head + `
spec: {replicas: 1}
status:
  observedGeneration: 2
  replicas: 1
  updatedReplicas: 1
  availableReplicas: 1
  conditions:
  - {type: Available, status: "True"}
  - {type: Progressing, status: "True", reason: NewReplicaSetAvailable}`, want: Healthy, why: ""},
		{
			reason: "it is being deleted",
			object: `{apiVersion: apps/v1, kind: Deployment, metadata: {deletionTimestamp: "2026-01-02T03:04:05Z"}}`,
			want:   Reconciling, why: "Terminating",
		},
	})
}

func TestReplicaSet(t *testing.T) {
	const head = "apiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {generation: 1}\nspec: {replicas: 2}\n"
	runObjectCases(t, []objectCase{
		{reason: "all are ready", object: head + `status: {observedGeneration: 1, replicas: 2, readyReplicas: 2}`, want: Healthy},
		{
			reason: "one is not",
			object: head + `status: {observedGeneration: 1, replicas: 2, readyReplicas: 1}`,
			want:   Reconciling, why: "ReplicasNotReady",
		},
		{
			reason: "one is too many",
			object: head + `status: {observedGeneration: 1, replicas: 3, readyReplicas: 3}`,
			want:   Reconciling, why: "ScalingDown",
		},
		{reason: "none was seen", object: head, want: Reconciling, why: "SpecNotObserved"},
		{
			reason: "pods cannot be created",
			object: head + `status: {observedGeneration: 1, conditions: [{type: ReplicaFailure, status: "True"}]}`,
			want:   Down, why: "ReplicaFailure",
		},
	})
}

func TestStatefulSet(t *testing.T) {
	const head = "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {generation: 1}\n"
	runObjectCases(t, []objectCase{
		{reason: "all are ready and updated", object: head + `
spec: {replicas: 2}
status: {observedGeneration: 1, replicas: 2, readyReplicas: 2, updatedReplicas: 2}`, want: Healthy, why: ""},
		{reason: "the ready ones are of the old template", object: head + `
spec: {replicas: 2}
status: {observedGeneration: 1, replicas: 2, readyReplicas: 2, updatedReplicas: 1}`, want: Reconciling, why: "RollingOut"},
		{reason: "a partition holds the old ones back", object: head + `
spec: {replicas: 3, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 2}}}
status: {observedGeneration: 1, replicas: 3, readyReplicas: 3, updatedReplicas: 1}`, want: Healthy, why: ""},
		{reason: "a partition above the replicas", object: head + `
spec: {replicas: 3, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 9}}}
status: {observedGeneration: 1, replicas: 3, readyReplicas: 3}`, want: Healthy, why: ""},
		{reason: "pods are updated when somebody deletes them", object: head + `
spec: {replicas: 3, updateStrategy: {type: OnDelete}}
status: {observedGeneration: 1, replicas: 3, readyReplicas: 3}`, want: Healthy, why: ""},
		{reason: "one is not ready", object: head + `
spec: {replicas: 2}
status: {observedGeneration: 1, replicas: 2, readyReplicas: 1, updatedReplicas: 2}`, want: Reconciling, why: "ReplicasNotReady"},
		{reason: "one is too many", object: head + `
spec: {replicas: 1}
status: {observedGeneration: 1, replicas: 2, readyReplicas: 2, updatedReplicas: 2}`, want: Reconciling, why: "ScalingDown"},
	})
}

func TestDaemonSet(t *testing.T) {
	const head = "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {generation: 1}\n"
	runObjectCases(t, []objectCase{
		{
			reason: "all are ready and updated",
			object: head + `status: {observedGeneration: 1, desiredNumberScheduled: 3, numberReady: 3, updatedNumberScheduled: 3}`,
			want:   Healthy,
		},
		{
			reason: "no node is to have one",
			object: head + `status: {observedGeneration: 1, desiredNumberScheduled: 0, numberReady: 0}`,
			want:   Healthy, why: NoNodeSelected,
		},
		{
			reason: "one is not ready",
			object: head + `status: {observedGeneration: 1, desiredNumberScheduled: 3, numberReady: 2, updatedNumberScheduled: 3}`,
			want:   Reconciling, why: "ReplicasNotReady",
		},
		{
			reason: "the ready ones are of the old template",
			object: head + `status: {observedGeneration: 1, desiredNumberScheduled: 3, numberReady: 3, updatedNumberScheduled: 1}`,
			want:   Reconciling, why: "RollingOut",
		},
		{reason: "pods are updated when somebody deletes them", object: head + `
spec: {updateStrategy: {type: OnDelete}}
status: {observedGeneration: 1, desiredNumberScheduled: 3, numberReady: 3}`, want: Healthy, why: ""},
		{reason: "the desired number is missing", object: head + `status: {observedGeneration: 1}`, want: Unknown, why: "Malformed"},
		{reason: "no status yet", object: head, want: Reconciling, why: "SpecNotObserved"},
	})
}
