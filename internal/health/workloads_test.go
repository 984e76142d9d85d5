package health

import "testing"

func TestDeployment(t *testing.T) {
	const head = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {generation: 2}\n"
	runObjectCases(t, []objectCase{
		{
			"all replicas are updated and available",
			head + `
spec: {replicas: 3}
status: {observedGeneration: 2, replicas: 3, updatedReplicas: 3, availableReplicas: 3}`,
			Healthy, "",
		},
		{"no status yet", head + `spec: {replicas: 3}`, Reconciling, "SpecNotObserved"},
		{"a status without a generation", head + `
spec: {replicas: 1}
status: {replicas: 1, updatedReplicas: 1, availableReplicas: 1}`, Reconciling, "SpecNotObserved"},
		{"the status is about an earlier spec", head + `
spec: {replicas: 3}
status: {observedGeneration: 1, replicas: 3, updatedReplicas: 3, availableReplicas: 3}`, Reconciling, "SpecNotObserved"},
		{"one replica is the default", head + `
spec: {}
status: {observedGeneration: 2, replicas: 0}`, Reconciling, "ReplicasNotReady"},
		{"scaled to zero as declared", head + `
spec: {replicas: 0}
status: {observedGeneration: 2}`, Healthy, ""},
		{"some replicas are of the old template", head + `
spec: {replicas: 3}
status: {observedGeneration: 2, replicas: 3, updatedReplicas: 1, availableReplicas: 3}`, Reconciling, "RollingOut"},
		{"the replicas that are available are the old ones, which wait for the new one", head + `
spec: {replicas: 1}
status: {observedGeneration: 2, replicas: 2, updatedReplicas: 1, availableReplicas: 1}`, Reconciling, "RollingOut"},
		{"scaled down, and more are left", head + `
spec: {replicas: 1}
status: {observedGeneration: 2, replicas: 3, updatedReplicas: 3, availableReplicas: 3}`, Reconciling, "ScalingDown"},
		{"too few are available", head + `
spec: {replicas: 3}
status: {observedGeneration: 2, replicas: 3, updatedReplicas: 3, availableReplicas: 2}`, Reconciling, "ReplicasNotReady"},
		{"the rollout is past its deadline, while the old replicas serve", head + `
spec: {replicas: 1}
status:
  observedGeneration: 2
  replicas: 1
  updatedReplicas: 1
  availableReplicas: 1
  conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded, message: it timed out}]`, Unhealthy, "ProgressDeadlineExceeded"},
		{"the rollout is past its deadline, and nothing serves", head + `
spec: {replicas: 1}
status:
  observedGeneration: 2
  replicas: 1
  updatedReplicas: 1
  conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded, message: it timed out}]`, Down, "ProgressDeadlineExceeded"},
		{"a quota keeps pods from being created", head + `
spec: {replicas: 1}
status:
  observedGeneration: 2
  conditions:
  - {type: Progressing, status: "True"}
  - {type: ReplicaFailure, status: "True", reason: FailedCreate}`, Down, "FailedCreate"},
		{"conditions that are fine", head + `
spec: {replicas: 1}
status:
  observedGeneration: 2
  replicas: 1
  updatedReplicas: 1
  availableReplicas: 1
  conditions:
  - {type: Available, status: "True"}
  - {type: Progressing, status: "True", reason: NewReplicaSetAvailable}`, Healthy, ""},
		{"it is being deleted", `{apiVersion: apps/v1, kind: Deployment, metadata: {deletionTimestamp: "2026-01-02T03:04:05Z"}}`, Reconciling, "Terminating"},
	})
}

func TestReplicaSet(t *testing.T) {
	const head = "apiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {generation: 1}\nspec: {replicas: 2}\n"
	runObjectCases(t, []objectCase{
		{"all are ready", head + `status: {observedGeneration: 1, replicas: 2, readyReplicas: 2}`, Healthy, ""},
		{"one is not", head + `status: {observedGeneration: 1, replicas: 2, readyReplicas: 1}`, Reconciling, "ReplicasNotReady"},
		{"one is too many", head + `status: {observedGeneration: 1, replicas: 3, readyReplicas: 3}`, Reconciling, "ScalingDown"},
		{"none was seen", head, Reconciling, "SpecNotObserved"},
		{"pods cannot be created", head + `status: {observedGeneration: 1, conditions: [{type: ReplicaFailure, status: "True"}]}`, Down, "ReplicaFailure"},
	})
}

func TestStatefulSet(t *testing.T) {
	const head = "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {generation: 1}\n"
	runObjectCases(t, []objectCase{
		{"all are ready and updated", head + `
spec: {replicas: 2}
status: {observedGeneration: 1, replicas: 2, readyReplicas: 2, updatedReplicas: 2}`, Healthy, ""},
		{"the ready ones are of the old template", head + `
spec: {replicas: 2}
status: {observedGeneration: 1, replicas: 2, readyReplicas: 2, updatedReplicas: 1}`, Reconciling, "RollingOut"},
		{"a partition holds the old ones back", head + `
spec: {replicas: 3, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 2}}}
status: {observedGeneration: 1, replicas: 3, readyReplicas: 3, updatedReplicas: 1}`, Healthy, ""},
		{"a partition above the replicas", head + `
spec: {replicas: 3, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 9}}}
status: {observedGeneration: 1, replicas: 3, readyReplicas: 3}`, Healthy, ""},
		{"pods are updated when somebody deletes them", head + `
spec: {replicas: 3, updateStrategy: {type: OnDelete}}
status: {observedGeneration: 1, replicas: 3, readyReplicas: 3}`, Healthy, ""},
		{"one is not ready", head + `
spec: {replicas: 2}
status: {observedGeneration: 1, replicas: 2, readyReplicas: 1, updatedReplicas: 2}`, Reconciling, "ReplicasNotReady"},
		{"one is too many", head + `
spec: {replicas: 1}
status: {observedGeneration: 1, replicas: 2, readyReplicas: 2, updatedReplicas: 2}`, Reconciling, "ScalingDown"},
	})
}

func TestDaemonSet(t *testing.T) {
	const head = "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {generation: 1}\n"
	runObjectCases(t, []objectCase{
		{"all are ready and updated", head + `status: {observedGeneration: 1, desiredNumberScheduled: 3, numberReady: 3, updatedNumberScheduled: 3}`, Healthy, ""},
		{"no node is to have one", head + `status: {observedGeneration: 1, desiredNumberScheduled: 0, numberReady: 0}`, Healthy, ""},
		{"one is not ready", head + `status: {observedGeneration: 1, desiredNumberScheduled: 3, numberReady: 2, updatedNumberScheduled: 3}`, Reconciling, "ReplicasNotReady"},
		{"the ready ones are of the old template", head + `status: {observedGeneration: 1, desiredNumberScheduled: 3, numberReady: 3, updatedNumberScheduled: 1}`, Reconciling, "RollingOut"},
		{"pods are updated when somebody deletes them", head + `
spec: {updateStrategy: {type: OnDelete}}
status: {observedGeneration: 1, desiredNumberScheduled: 3, numberReady: 3}`, Healthy, ""},
		{"the desired number is missing", head + `status: {observedGeneration: 1}`, Unknown, "Malformed"},
		{"no status yet", head, Reconciling, "SpecNotObserved"},
	})
}
