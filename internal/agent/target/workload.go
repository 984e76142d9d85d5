package target

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
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

// Ref names an object, whichever version of its kind is asked for.
type Ref struct {
	Group, Kind     string
	Namespace, Name string
}

// GroupKind returns the kind that the reference names an object of.
func (r Ref) GroupKind() schema.GroupKind { return schema.GroupKind{Group: r.Group, Kind: r.Kind} }

// String returns the reference for a person: "Deployment app-0/web", "ClusterRole reader".
func (r Ref) String() string {
	if r.Namespace == "" {
		return r.Kind + " " + r.Name
	}
	return r.Kind + " " + r.Namespace + "/" + r.Name
}

// Identity is one incarnation of an object: a name that was deleted and created again is two.
type Identity struct {
	Ref
	UID types.UID
}

// Resource is an object that a workload lists.
type Resource struct {
	Ref
	// Version is the listed API version.
	Version string
	// ID is the WorkloadResourceInstance in the control plane; 0 where there is none.
	ID int64
}

// GroupVersionKind returns the kind in the version that is listed.
func (r Resource) GroupVersionKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
}

// Workload is what the controller declares: an instance and its objects.
type Workload struct {
	// Name is the name of the ThreeportWorkload, and the workload's key in the registry.
	Name      string
	Instance  Instance
	Resources []Resource
	// Declared is when the ThreeportWorkload was created, by the API server's clock; zero if it is not known.
	Declared time.Time
}

// defaultNamespace is where a namespaced resource that is listed without a namespace is looked for: the
// only namespace that the workload's other resources name (a chart's release namespace), else "default".
func (w Workload) defaultNamespace() string {
	namespace := ""
	for _, r := range w.Resources {
		switch {
		case r.Namespace == "" || r.Namespace == namespace:
		case namespace == "":
			namespace = r.Namespace
		default:
			return "default"
		}
	}
	return cmp.Or(namespace, "default")
}

func (w Workload) equal(other Workload) bool {
	return w.Name == other.Name && w.Instance == other.Instance && slices.Equal(w.Resources, other.Resources)
}

// Object is what the watch knows of one incarnation of an object.
type Object struct {
	Identity
	// Owners are the objects that it is owned by, its controller first.
	Owners []Identity
	// Instances are the workloads that its labels name.
	Instances []Instance
	// LookedUp is when it was asked for, if it is of a kind that is not watched; else zero.
	LookedUp time.Time
}

// Attribution says that an object belongs to a workload.
type Attribution struct {
	// Workload is the name of the ThreeportWorkload.
	Workload string
	Instance Instance
	// Resource is the listed resource that the object is or descends from; zero if only a label tells.
	Resource Resource
	// Listed is true if the object is the listed resource itself, and not derived from it.
	Listed bool
}
