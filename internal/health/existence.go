package health

import "k8s.io/apimachinery/pkg/runtime/schema"

// existenceRules has the kinds that are Healthy if they exist. They run nothing, and have no status about their health.
//
// Source: https://kubernetes.io/docs/reference/kubernetes-api/: each kind has no status, or one that only counts the use
// by others, such as status.used of a ResourceQuota.
var existenceRules = func() map[schema.GroupKind]rule {
	all := map[schema.GroupKind]rule{}
	for group, kinds := range map[string][]string{
		"": {
			"ConfigMap", "Secret", "ServiceAccount", "LimitRange", "ResourceQuota", "Endpoints", "PodTemplate", "Event",
		},
		"apps":                      {"ControllerRevision"},
		"events.k8s.io":             {"Event"},
		"coordination.k8s.io":       {"Lease", "LeaseCandidate"},
		"scheduling.k8s.io":         {"PriorityClass"},
		"node.k8s.io":               {"RuntimeClass"},
		"certificates.k8s.io":       {"ClusterTrustBundle"},
		"networking.k8s.io":         {"NetworkPolicy", "IngressClass", "IPAddress"},
		"policy.networking.k8s.io":  {"AdminNetworkPolicy", "BaselineAdminNetworkPolicy"},
		"gateway.networking.k8s.io": {"ReferenceGrant"},
		"rbac.authorization.k8s.io": {"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"},
		"storage.k8s.io": {
			"StorageClass", "CSIDriver", "CSINode", "CSIStorageCapacity", "VolumeAttributesClass",
		},
		"snapshot.storage.k8s.io":      {"VolumeSnapshotClass"},
		"groupsnapshot.storage.k8s.io": {"VolumeGroupSnapshotClass"},
		"resource.k8s.io":              {"DeviceClass", "ResourceClaimTemplate", "ResourceSlice"},
		"flowcontrol.apiserver.k8s.io": {"PriorityLevelConfiguration"},
		"admissionregistration.k8s.io": {
			"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "ValidatingAdmissionPolicyBinding",
			"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding",
		},
	} {
		for _, kind := range kinds {
			all[schema.GroupKind{Group: group, Kind: kind}] = exists
		}
	}
	return all
}()

func exists(*fields, Context) Assessment { return healthy }
