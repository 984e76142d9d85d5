package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Finalizer keeps a ThreeportWorkload until its last reports are delivered.
const Finalizer = "control-plane.threeport.io/threeport-workload-finalizer"

// AnnotationRetryRejected makes the agent send again what the control plane refused for good, whenever its value
// changes.
const AnnotationRetryRejected = "control-plane.threeport.io/retry-rejected"

// Labels that attribute an object to a workload where no chain of owner references does. The value is
// the instance's ID in decimal.
const (
	LabelWorkloadInstance     = "control-plane.threeport.io/workload-instance"
	LabelHelmWorkloadInstance = "control-plane.threeport.io/helm-workload-instance"
)

// WorkloadType names the control-plane object that a workload is an instance of.
//
// +kubebuilder:validation:Enum=WorkloadInstance;HelmWorkloadInstance
type WorkloadType string

// The workload types of the control-plane API.
const (
	WorkloadTypeInstance     WorkloadType = "WorkloadInstance"
	WorkloadTypeHelmInstance WorkloadType = "HelmWorkloadInstance"
)

// Condition types of a ThreeportWorkload.
const (
	// ConditionWatching is true when every listed resource is being watched, whether it exists or not.
	ConditionWatching = "Watching"
	// ConditionDelivered is true when the control plane has accepted everything that was seen.
	ConditionDelivered = "Delivered"
	// ConditionDurable is true when what only the agent remembers is on disk, so that its end loses nothing.
	ConditionDurable = "Durable"
	// ConditionHealthy is true when the workload is Healthy, Unknown when there is no signal to judge it by or it is not
	// judged yet, and false else.
	ConditionHealthy = "Healthy"
)

// WorkloadResourceInstance names one object of a workload.
type WorkloadResourceInstance struct {
	// group is the API group of the object's kind; empty for the core group.
	// +optional
	// +kubebuilder:default=""
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group,omitempty"`

	// version is the API version of the object's kind, such as v1. If the API server serves the kind in
	// other versions only, one of those is watched, and the status says which.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Version string `json:"version"`

	// kind is the object's kind, such as Deployment.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`

	// name is the object's name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// namespace is the object's namespace; empty for a cluster-scoped kind. For a namespaced kind that is
	// listed without one it is the only namespace that the workload's other resources name, else "default".
	// +optional
	// +kubebuilder:default=""
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`

	// threeportID is the ID of the WorkloadResourceInstance in the control plane that the object's
	// operations are reported to. Without one (resources of a Helm workload have none) only its Events and
	// its part in the workload's status are reported.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ThreeportID int64 `json:"threeportID,omitempty"`
}

// ThreeportWorkloadSpec lists what to report about, and where.
type ThreeportWorkloadSpec struct {
	// workloadType tells which kind of control-plane object workloadInstanceId is the ID of.
	// +required
	WorkloadType WorkloadType `json:"workloadType"`

	// workloadInstanceId is the ID of the workload instance in the control plane.
	// +required
	// +kubebuilder:validation:Minimum=1
	WorkloadInstanceID int64 `json:"workloadInstanceId"`

	// The rules of the next field find a threeportID that is listed twice. If none is, each is first found at its
	// own place, and the places add up to 0+1+…+(n-1). The API server allows a rule a cost of 1,000,000, and this
	// one costs about n²; so there are seven, each for the IDs of one remainder. With IDs as the control plane's
	// database makes them, 2,000 resources cost each rule a fifth of that. However they are distributed, 900 are
	// within it. What the API server estimates for all rules and messages is 85% of what it allows a CRD.

	// workloadResourceInstances are the workload's objects, each listed once; no two with the same threeportID.
	// +optional
	// +listType=map
	// +listMapKey=group
	// +listMapKey=kind
	// +listMapKey=namespace
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=2000
	// +kubebuilder:validation:XValidation:rule="[self.filter(r, has(r.threeportID) && r.threeportID > 0 && r.threeportID % 7 == 0).map(r, r.threeportID)].all(ids, ids.map(id, ids.indexOf(id)).sum() == ids.size() * (ids.size() - 1) / 2)",message="two resources have the same threeportID: give each resource the ID of its own WorkloadResourceInstance",messageExpression="[self.filter(r, has(r.threeportID) && r.threeportID > 0 && r.threeportID % 7 == 0).map(r, r.threeportID)].map(ids, 'threeportID %d is listed twice: give each resource the ID of its own WorkloadResourceInstance'.format([ids.filter(id, ids.indexOf(id) != ids.lastIndexOf(id))[0]]))[0]"
	// +kubebuilder:validation:XValidation:rule="[self.filter(r, has(r.threeportID) && r.threeportID > 0 && r.threeportID % 7 == 1).map(r, r.threeportID)].all(ids, ids.map(id, ids.indexOf(id)).sum() == ids.size() * (ids.size() - 1) / 2)",message="two resources have the same threeportID: give each resource the ID of its own WorkloadResourceInstance",messageExpression="[self.filter(r, has(r.threeportID) && r.threeportID > 0 && r.threeportID % 7 == 1).map(r, r.threeportID)].map(ids, 'threeportID %d is listed twice: give each resource the ID of its own WorkloadResourceInstance'.format([ids.filter(id, ids.indexOf(id) != ids.lastIndexOf(id))[0]]))[0]"
	// +kubebuilder:validation:XValidation:rule="[self.filter(r, has(r.threeportID) && r.threeportID > 0 && r.threeportID % 7 == 2).map(r, r.threeportID)].all(ids, ids.map(id, ids.indexOf(id)).sum() == ids.size() * (ids.size() - 1) / 2)",message="two resources have the same threeportID: give each resource the ID of its own WorkloadResourceInstance",messageExpression="[self.filter(r, has(r.threeportID) && r.threeportID > 0 && r.threeportID % 7 == 2).map(r, r.threeportID)].map(ids, 'threeportID %d is listed twice: give each resource the ID of its own WorkloadResourceInstance'.format([ids.filter(id, ids.indexOf(id) != ids.lastIndexOf(id))[0]]))[0]"
	// +kubebuilder:validation:XValidation:rule="[self.filter(r, has(r.threeportID) && r.threeportID > 0 && r.threeportID % 7 == 3).map(r, r.threeportID)].all(ids, ids.map(id, ids.indexOf(id)).sum() == ids.size() * (ids.size() - 1) / 2)",message="two resources have the same threeportID: give each resource the ID of its own WorkloadResourceInstance",messageExpression="[self.filter(r, has(r.threeportID) && r.threeportID > 0 && r.threeportID % 7 == 3).map(r, r.threeportID)].map(ids, 'threeportID %d is listed twice: give each resource the ID of its own WorkloadResourceInstance'.format([ids.filter(id, ids.indexOf(id) != ids.lastIndexOf(id))[0]]))[0]"
	// +kubebuilder:validation:XValidation:rule="[self.filter(r, has(r.threeportID) && r.threeportID > 0 && r.threeportID % 7 == 4).map(r, r.threeportID)].all(ids, ids.map(id, ids.indexOf(id)).sum() == ids.size() * (ids.size() - 1) / 2)",message="two resources have the same threeportID: give each resource the ID of its own WorkloadResourceInstance",messageExpression="[self.filter(r, has(r.threeportID) && r.threeportID > 0 && r.threeportID % 7 == 4).map(r, r.threeportID)].map(ids, 'threeportID %d is listed twice: give each resource the ID of its own WorkloadResourceInstance'.format([ids.filter(id, ids.indexOf(id) != ids.lastIndexOf(id))[0]]))[0]"
	// +kubebuilder:validation:XValidation:rule="[self.filter(r, has(r.threeportID) && r.threeportID > 0 && r.threeportID % 7 == 5).map(r, r.threeportID)].all(ids, ids.map(id, ids.indexOf(id)).sum() == ids.size() * (ids.size() - 1) / 2)",message="two resources have the same threeportID: give each resource the ID of its own WorkloadResourceInstance",messageExpression="[self.filter(r, has(r.threeportID) && r.threeportID > 0 && r.threeportID % 7 == 5).map(r, r.threeportID)].map(ids, 'threeportID %d is listed twice: give each resource the ID of its own WorkloadResourceInstance'.format([ids.filter(id, ids.indexOf(id) != ids.lastIndexOf(id))[0]]))[0]"
	// +kubebuilder:validation:XValidation:rule="[self.filter(r, has(r.threeportID) && r.threeportID > 0 && r.threeportID % 7 == 6).map(r, r.threeportID)].all(ids, ids.map(id, ids.indexOf(id)).sum() == ids.size() * (ids.size() - 1) / 2)",message="two resources have the same threeportID: give each resource the ID of its own WorkloadResourceInstance",messageExpression="[self.filter(r, has(r.threeportID) && r.threeportID > 0 && r.threeportID % 7 == 6).map(r, r.threeportID)].map(ids, 'threeportID %d is listed twice: give each resource the ID of its own WorkloadResourceInstance'.format([ids.filter(id, ids.indexOf(id) != ids.lastIndexOf(id))[0]]))[0]"
	WorkloadResourceInstances []WorkloadResourceInstance `json:"workloadResourceInstances,omitempty"`
}

// ResourceState tells what the agent sees of a listed resource.
type ResourceState string

// States of a listed resource.
const (
	// ResourcePending means that the first answer of the API server is awaited.
	ResourcePending ResourceState = "Pending"
	// ResourcePresent means that the object exists and is watched.
	ResourcePresent ResourceState = "Present"
	// ResourceAbsent means that the kind is watched and no such object exists.
	ResourceAbsent ResourceState = "Absent"
	// ResourceKindNotInstalled means that the API server does not serve the kind.
	ResourceKindNotInstalled ResourceState = "KindNotInstalled"
	// ResourceForbidden means that the agent is not permitted to watch the kind there.
	ResourceForbidden ResourceState = "Forbidden"
	// ResourceUnavailable means that the API server fails to answer for the kind.
	ResourceUnavailable ResourceState = "Unavailable"
)

// ResourceStatus tells what the agent sees of one listed resource.
type ResourceStatus struct {
	// group, version, kind, namespace and name identify the resource as it is watched: in a version that
	// the API server serves, and with its namespace defaulted.
	// +optional
	Group string `json:"group,omitempty"`
	// version is the API version in which the resource is watched.
	// +required
	Version string `json:"version"`
	// kind is the resource's kind.
	// +required
	Kind string `json:"kind"`
	// namespace is the resource's namespace, defaulted; empty for a cluster-scoped kind.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name is the resource's name.
	// +required
	Name string `json:"name"`
	// state tells whether the resource is watched and exists.
	// +required
	State ResourceState `json:"state"`
	// message says why, for a person: the missing verb, the version watched instead of the listed one; or the cause why
	// the resource is not Healthy, down to the object at fault.
	// +optional
	Message string `json:"message,omitempty"`
	// health is Healthy, Reconciling, Unhealthy, Down or Unknown.
	// +optional
	Health string `json:"health,omitempty"`
	// reason says in a word why the resource is not Healthy.
	// +optional
	Reason string `json:"reason,omitempty"`
	// pods counts the pods that descend from the resource, or that it is; absent if there are none.
	// +optional
	Pods *Count `json:"pods,omitempty"`
	// lastOperation is the latest operation on the resource that the control plane has accepted: ADDED, MODIFIED or
	// DELETED. Absent while it has accepted none, and for a resource without threeportID.
	// +optional
	LastOperation string `json:"lastOperation,omitempty"`
	// reportedResourceVersion is the metadata.resourceVersion of the object that was accepted with it.
	// +optional
	ReportedResourceVersion string `json:"reportedResourceVersion,omitempty"`
}

// Count tells how many objects there are, and how many of them are Healthy. A pod is Healthy if it is Ready, or has
// completed.
type Count struct {
	// total is how many there are.
	// +required
	Total int32 `json:"total"`
	// healthy is how many of them are Healthy.
	// +required
	Healthy int32 `json:"healthy"`
}

// HealthChange tells how a workload's health came to be what it is.
type HealthChange struct {
	// from is the health before; absent for the first.
	// +optional
	From string `json:"from,omitempty"`
	// to is the health since.
	// +required
	To string `json:"to"`
	// reason and message are those of the workload when its health changed.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message is for a person.
	// +optional
	Message string `json:"message,omitempty"`
}

// Rejection is a report that the control plane refused for good.
type Rejection struct {
	// report names what was refused, such as "operation of Deployment app-0/web".
	// +required
	Report string `json:"report"`
	// reason is the control plane's answer.
	// +required
	Reason string `json:"reason"`
	// time is when it was refused.
	// +required
	Time metav1.Time `json:"time"`
}

// DeliveryStatus tells how far the control plane is behind what was seen.
type DeliveryStatus struct {
	// pending is the number of reports that are not accepted yet.
	// +optional
	Pending int64 `json:"pending,omitempty"`
	// pendingSince is when the oldest of them was seen.
	// +optional
	PendingSince *metav1.Time `json:"pendingSince,omitempty"`
	// delaySeconds is how long the oldest of them has waited, at least: 5, 10, 30, 60, 120, 300, 600, 1800, or hours in
	// seconds, so that it does not change all the time.
	// +optional
	DelaySeconds int64 `json:"delaySeconds,omitempty"`
	// lastError is the latest failure to deliver one of them.
	// +optional
	LastError string `json:"lastError,omitempty"`
	// rejected is the number of reports that the control plane refused for good. They are sent again when what they
	// report changes, or when the annotation control-plane.threeport.io/retry-rejected does.
	// +optional
	Rejected int64 `json:"rejected,omitempty"`
	// rejections are the latest of those, newest first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Rejections []Rejection `json:"rejections,omitempty"`
	// retried is the value of the annotation control-plane.threeport.io/retry-rejected when the agent sent them again.
	// +optional
	Retried string `json:"retried,omitempty"`
	// dropped is the number of Events that were dropped because the agent may keep no more.
	// +optional
	Dropped int64 `json:"dropped,omitempty"`
}

// ThreeportWorkloadStatus tells what is watched, what is reported and what was given up.
type ThreeportWorkloadStatus struct {
	// observedGeneration is the generation of the spec that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions are Watching, Delivered, Durable and Healthy.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// health is the workload's status as it is reported: the worst of its resources'. While the workload is not judged,
	// as after a change of the spec, it is the latest that was reported, and the condition Healthy is Unknown.
	// +optional
	Health string `json:"health,omitempty"`
	// reason says in a word why the workload is not Healthy.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message says why the workload is not Healthy, for a person: the cause, down to the object at fault.
	// +optional
	Message string `json:"message,omitempty"`
	// healthSince is when health last changed.
	// +optional
	HealthSince *metav1.Time `json:"healthSince,omitempty"`
	// healthChange tells of that change.
	// +optional
	HealthChange *HealthChange `json:"healthChange,omitempty"`
	// ready is how many of the listed resources are Healthy, and how many are listed, such as 3/4.
	// +optional
	Ready string `json:"ready,omitempty"`
	// podsReady is how many of the workload's pods are Healthy, and how many there are, such as 5/5.
	// +optional
	PodsReady string `json:"podsReady,omitempty"`
	// resourceCount is ready in numbers.
	// +optional
	ResourceCount *Count `json:"resourceCount,omitempty"`
	// podCount is podsReady in numbers.
	// +optional
	PodCount *Count `json:"podCount,omitempty"`
	// resources are the listed resources, in the order of the spec. If all of them would make the object too large to be
	// stored, Healthy ones are left out, and resourcesOmitted counts them.
	// +optional
	// +listType=atomic
	Resources []ResourceStatus `json:"resources,omitempty"`
	// resourcesOmitted is how many of the listed resources are not among resources, because the object would become too
	// large.
	// +optional
	ResourcesOmitted int64 `json:"resourcesOmitted,omitempty"`
	// delivery tells how far the control plane is behind.
	// +optional
	Delivery DeliveryStatus `json:"delivery,omitzero"`
}

// ThreeportWorkload lists the resources of a deployed workload, for the agent to watch them and to
// report their status to the control plane.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.health`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.ready`
// +kubebuilder:printcolumn:name="Pods",type=string,JSONPath=`.status.podsReady`
// +kubebuilder:printcolumn:name="Delivered",type=string,JSONPath=`.status.conditions[?(@.type=="Delivered")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.message`,priority=1
type ThreeportWorkload struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// +required
	Spec ThreeportWorkloadSpec `json:"spec"`
	// +optional
	Status ThreeportWorkloadStatus `json:"status,omitzero"`
}

// ThreeportWorkloadList is a list of ThreeportWorkloads.
//
// +kubebuilder:object:root=true
type ThreeportWorkloadList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []ThreeportWorkload `json:"items"`
}
