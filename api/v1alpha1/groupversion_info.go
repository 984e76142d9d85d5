// Package v1alpha1 holds the types of the control-plane.threeport.io/v1alpha1 API:
// ThreeportWorkload, the list of resources that the agent reports about.
//
// +kubebuilder:object:generate=true
// +groupName=control-plane.threeport.io
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of every type in this package.
var GroupVersion = schema.GroupVersion{Group: "control-plane.threeport.io", Version: "v1alpha1"}

// AddToScheme registers the types of this package with a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &ThreeportWorkload{}, &ThreeportWorkloadList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
