package target

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/attribution"
)

// Type is the kind of control-plane object that a workload is an instance of.
type Type string

// The workload types of the control-plane API.
const (
	WorkloadInstance     Type = "WorkloadInstance"
	HelmWorkloadInstance Type = "HelmWorkloadInstance"
)

// Instance identifies a workload in the control plane.
type Instance struct {
	Type Type
	ID   int64
}

func (i Instance) String() string { return fmt.Sprintf("%s %d", i.Type, i.ID) }

// Ref names an object, independent of the API version.
type Ref struct {
	Group, Kind     string
	Namespace, Name string
}

// GroupKind returns the kind of the object.
func (r Ref) GroupKind() schema.GroupKind { return schema.GroupKind{Group: r.Group, Kind: r.Kind} }

// String returns the reference in readable form: "Deployment app-0/web", "ClusterRole reader".
func (r Ref) String() string {
	if r.Namespace == "" {
		return r.Kind + " " + r.Name
	}
	return r.Kind + " " + r.Namespace + "/" + r.Name
}

// Identity is one incarnation of an object. Deleting an object and creating it again makes a second one.
type Identity struct {
	Ref
	UID types.UID
}

// Resource is an object that a workload lists.
type Resource struct {
	Ref
	// Version is the listed API version.
	Version string
	// ID is the ID of the WorkloadResourceInstance in the control plane; 0 if there is none.
	ID int64
}

// GroupVersionKind returns the kind in the listed version.
func (r Resource) GroupVersionKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
}

// Workload is a declaration by the controller: an instance and its objects.
type Workload struct {
	// Name is the name of the ThreeportWorkload, and the workload's key in the registry.
	Name      string
	Instance  Instance
	Resources []Resource
	// LabelNamespaces are namespaces in which the workload's label counts, besides those of the resources.
	LabelNamespaces []string
	// Declared is the creation time of the ThreeportWorkload, by the API server's clock; zero if unknown.
	Declared time.Time
}

// defaultNamespace is the namespace of namespaced resources that are listed without one.
func (w Workload) defaultNamespace() string {
	return attribution.DefaultNamespace(w.writtenNamespaces())
}

// writtenNamespaces returns the namespaces of the resources as they are written, which may be empty.
func (w Workload) writtenNamespaces() iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range w.Resources {
			if !yield(w.Resources[i].Namespace) {
				return
			}
		}
	}
}

func (w Workload) equal(other Workload) bool {
	return w.Name == other.Name && w.Instance == other.Instance && w.Declared.Equal(other.Declared) && slices.Equal(w.Resources, other.Resources) &&
		slices.Equal(w.LabelNamespaces, other.LabelNamespaces)
}

// Object is one incarnation of an object with the facts that attribute it.
type Object struct {
	Identity
	// Owners are the object's owners, its controller first.
	Owners []Identity
	// Instances are the workload instances that the object's labels name.
	Instances []Instance
	// DropsEvents is true if the object's annotation says that its Events, and those of its descendants, are not reported.
	DropsEvents bool
	// LookedUp is the time of the look-up, for an object of a kind without a watch; else zero.
	LookedUp time.Time `json:",omitzero"`
}

// Attribution assigns an object to a workload.
type Attribution struct {
	// Workload is the name of the ThreeportWorkload.
	Workload string
	Instance Instance
	// Resource is the listed resource that the object is or descends from; zero for an attribution by label.
	Resource Resource
	// Listed is true for the listed resource itself, and false for its descendants.
	Listed bool
}
