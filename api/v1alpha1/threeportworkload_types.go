package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Finalizer keeps a ThreeportWorkload until its last reports are delivered.
const Finalizer = "control-plane.threeport.io/threeport-workload-finalizer"

// AnnotationRetryRejected makes the agent send rejected reports again whenever its value changes.
const AnnotationRetryRejected = "control-plane.threeport.io/retry-rejected"

// AnnotationReportAgain makes the agent send the status, the objects and the tree of the instance again whenever its value changes.
const AnnotationReportAgain = "control-plane.threeport.io/report-again"

// AnnotationNamespaces names, separated by commas, namespaces in which the workload's label counts besides those of the listed
// resources.
const AnnotationNamespaces = "control-plane.threeport.io/namespaces"

// AnnotationEvents is on any object. With the value [EventsDrop], the agent does not report the Events of the object and of the objects that
// it owns.
const (
	AnnotationEvents = "control-plane.threeport.io/events"
	EventsDrop       = "drop"
)

// AnnotationAgentVersion is on the Lease of the agent's heartbeat, and has the version of the agent.
const AnnotationAgentVersion = "control-plane.threeport.io/agent-version"

// Labels that attribute an object to a workload if none of its owners is listed. The value is the instance's ID in
// decimal. A label counts in the namespaces of the listed resources and in those of [AnnotationNamespaces]. If a Helm workload
// has neither, its label counts in all namespaces.
const (
	LabelWorkloadInstance     = "control-plane.threeport.io/workload-instance"
	LabelHelmWorkloadInstance = "control-plane.threeport.io/helm-workload-instance"
)

// WorkloadType is the type of a workload instance in the control plane.
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
	// ConditionWatching is true if every listed resource is watched, whether it exists or not.
	ConditionWatching = "Watching"
	// ConditionDelivered is true if the control plane has accepted all reports.
	ConditionDelivered = "Delivered"
	// ConditionDurable is true if undelivered reports are on disk and survive a restart of the agent.
	ConditionDurable = "Durable"
	// ConditionHealthy is true if the workload is Healthy, Unknown if its health is Unknown or has not been assessed yet, and
	// false otherwise.
	ConditionHealthy = "Healthy"
	// ConditionInstanceShared is true while other ThreeportWorkloads have the same instance, and absent otherwise.
	ConditionInstanceShared = "InstanceShared"
	// ConditionResourcesShared is true while ThreeportWorkloads of other instances list some of the resources, and absent
	// otherwise.
	ConditionResourcesShared = "ResourcesShared"
)

// WorkloadResourceInstance names one object of a workload.
type WorkloadResourceInstance struct {
	// group is the API group of the object's kind; empty for the core group.
	// +optional
	// +kubebuilder:default=""
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`
	Group string `json:"group,omitempty"`

	// version is the API version of the object's kind, such as v1. If the API server does not serve this version, the agent
	// watches another one, and the status shows which.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Version string `json:"version"`

	// kind is the object's kind, such as Deployment.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$`
	Kind string `json:"kind"`

	// name is the object's name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// namespace is the object's namespace; empty for a cluster-scoped kind. For a namespaced kind it defaults to the namespace
	// of the workload's other resources if they all have the same one, else to "default".
	// +optional
	// +kubebuilder:default=""
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`

	// threeportID is the ID of the object's WorkloadResourceInstance in the control plane. The agent reports operations on the
	// object to it. Resources of a Helm workload have no ID: the agent reports their Events and their share of the workload's
	// status, and no operations.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ThreeportID int64 `json:"threeportID,omitempty"`
}

// ThreeportWorkloadSpec lists the resources of a workload instance.
type ThreeportWorkloadSpec struct {
	// workloadType is the type of the workload instance in the control plane.
	// +required
	WorkloadType WorkloadType `json:"workloadType"`

	// workloadInstanceId is the ID of the workload instance in the control plane.
	// +required
	// +kubebuilder:validation:Minimum=1
	WorkloadInstanceID int64 `json:"workloadInstanceId"`

	// The rules of the next field reject a threeportID that is listed twice. In a list of n different IDs the index of each
	// is its position, so the indexes add up to 0+1+…+(n-1). The API server limits the cost of a rule to 1,000,000, and the
	// cost is about n². So there are seven rules, one for each remainder of the ID. With IDs of the control plane's database,
	// 2,000 resources take a fifth of the limit; 900 resources stay within it for any IDs. The estimated cost of all rules
	// and messages is 85% of the limit of a CRD.

	// workloadResourceInstances are the workload's objects. Each object and each threeportID is listed at most once.
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

// ResourceState is what the agent knows about a listed resource.
type ResourceState string

// States of a listed resource.
const (
	// ResourcePending means that the API server has not answered yet.
	ResourcePending ResourceState = "Pending"
	// ResourcePresent means that the object exists and is watched.
	ResourcePresent ResourceState = "Present"
	// ResourceAbsent means that the kind is watched and the object does not exist.
	ResourceAbsent ResourceState = "Absent"
	// ResourceKindNotInstalled means that the API server does not serve the kind.
	ResourceKindNotInstalled ResourceState = "KindNotInstalled"
	// ResourceForbidden means that the agent lacks the permission to watch the kind in the namespace.
	ResourceForbidden ResourceState = "Forbidden"
	// ResourceUnavailable means that the API server fails requests for the kind.
	ResourceUnavailable ResourceState = "Unavailable"
)

// ResourceStatus is the observed status of one listed resource.
type ResourceStatus struct {
	// group, version, kind, namespace and name identify the watched resource: the version is one that the API server serves,
	// and the namespace is defaulted.
	// +optional
	Group string `json:"group,omitempty"`
	// version is the watched API version.
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
	// state says whether the resource is watched and exists.
	// +required
	State ResourceState `json:"state"`
	// message explains state and health to a person. It names the missing permission, the version that is watched instead of
	// the listed one, or the cause why the resource is not Healthy, down to the object at fault.
	// +optional
	Message string `json:"message,omitempty"`
	// health is Healthy, Reconciling, Unhealthy, Down or Unknown.
	// +optional
	Health string `json:"health,omitempty"`
	// healthSince is the time of the latest change of health, as the cluster records it, or else when the agent saw it. It is absent
	// while the resource is Healthy.
	// +optional
	HealthSince *metav1.Time `json:"healthSince,omitempty"`
	// reason is the CamelCase reason why the resource is not Healthy.
	// +optional
	Reason string `json:"reason,omitempty"`
	// pods counts the pods of the resource that have not completed; absent if there are none.
	// +optional
	Pods *Count `json:"pods,omitempty"`
	// lastOperation is the latest operation on the resource that the control plane has accepted: ADDED, MODIFIED or DELETED.
	// Absent before the first one, and for a resource without threeportID.
	// +optional
	LastOperation string `json:"lastOperation,omitempty"`
	// reportedResourceVersion is the metadata.resourceVersion of the object in that operation.
	// +optional
	ReportedResourceVersion string `json:"reportedResourceVersion,omitempty"`
}

// Count is a number of objects, and the number of Healthy ones among them. A pod is Healthy if it is Ready or has
// completed.
type Count struct {
	// total is the number of objects.
	// +required
	Total int32 `json:"total"`
	// healthy is the number of Healthy objects.
	// +required
	Healthy int32 `json:"healthy"`
}

// HealthChange is the latest change of a workload's health.
type HealthChange struct {
	// from is the previous health; absent for the first one.
	// +optional
	From string `json:"from,omitempty"`
	// to is the new health.
	// +required
	To string `json:"to"`
	// reason is the reason of the new health at that time.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message is the message of the new health at that time.
	// +optional
	Message string `json:"message,omitempty"`
}

// Rejection is a report that the control plane rejected permanently.
type Rejection struct {
	// report names the report, such as "operation of Deployment app-0/web".
	// +required
	Report string `json:"report"`
	// reason is the control plane's answer.
	// +required
	Reason string `json:"reason"`
	// time is the time of the rejection.
	// +required
	Time metav1.Time `json:"time"`
}

// DeliveryStatus is the progress of delivery to the control plane.
type DeliveryStatus struct {
	// pending is the number of reports that the control plane has not accepted yet.
	// +optional
	Pending int64 `json:"pending,omitempty"`
	// pendingSince is the time of the oldest pending report.
	// +optional
	PendingSince *metav1.Time `json:"pendingSince,omitempty"`
	// delaySeconds is the age of the oldest pending report. The agent rounds it down to 5, 10, 30, 60, 120, 300, 600, 1800 or
	// full hours. The rounding keeps status updates rare.
	// +optional
	DelaySeconds int64 `json:"delaySeconds,omitempty"`
	// lastError is the latest error of a delivery.
	// +optional
	LastError string `json:"lastError,omitempty"`
	// rejected is the number of reports that the control plane rejected permanently. They are sent again if the reported
	// object or the annotation control-plane.threeport.io/retry-rejected changes.
	// +optional
	Rejected int64 `json:"rejected,omitempty"`
	// rejections are the latest rejected reports, newest first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Rejections []Rejection `json:"rejections,omitempty"`
	// retried is the value of the annotation control-plane.threeport.io/retry-rejected at the last retry.
	// +optional
	Retried string `json:"retried,omitempty"`
	// dropped is the number of Events that were dropped because the agent's queue was full.
	// +optional
	Dropped int64 `json:"dropped,omitempty"`
}

// LeaseReference names a Lease of coordination.k8s.io.
type LeaseReference struct {
	// namespace is the namespace of the Lease.
	// +required
	Namespace string `json:"namespace"`
	// name is the name of the Lease.
	// +required
	Name string `json:"name"`
}

// ThreeportWorkloadStatus is the health of a workload and the progress of its reports.
type ThreeportWorkloadStatus struct {
	// observedGeneration is the generation of the spec that the status belongs to.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions are Watching, Delivered, Durable, Healthy, InstanceShared and ResourcesShared.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// health is the reported health of the workload: the worst of its resources. While the workload has not been assessed, as
	// after a change of the spec, it is the latest one, and the condition Healthy is Unknown.
	// +optional
	Health string `json:"health,omitempty"`
	// reason is the CamelCase reason why the workload is not Healthy.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message explains to a person why the workload is not Healthy: the cause, down to the object at fault.
	// +optional
	Message string `json:"message,omitempty"`
	// healthSince is the time of the latest change of health.
	// +optional
	HealthSince *metav1.Time `json:"healthSince,omitempty"`
	// notHealthySince is the time of the latest change of health from Healthy; absent while it is Healthy. For a workload that was never
	// Healthy it is the time of the first health.
	// +optional
	NotHealthySince *metav1.Time `json:"notHealthySince,omitempty"`
	// causeSince is the time since which reason holds; the reasons of a crash loop count as one. It is absent without a reason, and if
	// it is not known.
	// +optional
	CauseSince *metav1.Time `json:"causeSince,omitempty"`
	// healthChange is the latest change of health.
	// +optional
	HealthChange *HealthChange `json:"healthChange,omitempty"`
	// ready is the number of Healthy resources and of listed resources, such as 3/4.
	// +optional
	Ready string `json:"ready,omitempty"`
	// podsReady is the number of the workload's Healthy pods and of all its pods, such as 5/5. Completed pods do not count.
	// +optional
	PodsReady string `json:"podsReady,omitempty"`
	// resourceCount contains the numbers of ready.
	// +optional
	ResourceCount *Count `json:"resourceCount,omitempty"`
	// podCount contains the numbers of podsReady.
	// +optional
	PodCount *Count `json:"podCount,omitempty"`
	// resources are the listed resources, in the order of the spec. If the object would be too large to be stored, resources
	// are omitted, Healthy ones first.
	// +optional
	// +listType=atomic
	Resources []ResourceStatus `json:"resources,omitempty"`
	// resourcesOmitted is the number of listed resources that were omitted from resources.
	// +optional
	ResourcesOmitted int64 `json:"resourcesOmitted,omitempty"`
	// delivery is the progress of delivery to the control plane.
	// +optional
	Delivery DeliveryStatus `json:"delivery,omitzero"`
	// confirmedAt is when the agent last wrote this status. It writes an unchanged status again after about five minutes. An older
	// time means that no agent confirms the status.
	// +optional
	ConfirmedAt *metav1.Time `json:"confirmedAt,omitempty"`
	// lease names the Lease that the agent renews while it reports. Absent if the agent does not know its namespace.
	// +optional
	Lease *LeaseReference `json:"lease,omitempty"`
}

// ThreeportWorkload lists the resources of a deployed workload. The agent watches them and reports their status to the
// control plane.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=tpw,categories=threeport
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.health`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.ready`
// +kubebuilder:printcolumn:name="Pods",type=string,JSONPath=`.status.podsReady`
// +kubebuilder:printcolumn:name="Delivered",type=string,JSONPath=`.status.conditions[?(@.type=="Delivered")].status`
// +kubebuilder:printcolumn:name="Confirmed",type=date,JSONPath=`.status.confirmedAt`
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
