package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/threeport/threeport-agent/api/v1alpha1"
)

// Workload is a workload to deploy.
type Workload struct {
	// Name is the name of the instance in the control plane and of the ThreeportWorkload.
	Name string
	Type v1alpha1.WorkloadType
	// Objects are created in this order.
	Objects []*unstructured.Unstructured
}

// Deployed is a registered workload.
type Deployed struct {
	Workload
	InstanceID int64
	// Resources is the list of the ThreeportWorkload, in the order of Objects.
	Resources []v1alpha1.WorkloadResourceInstance
}

// Upstream deploys workloads. It is safe for concurrent use.
type Upstream struct {
	API     API
	dynamic dynamic.Interface

	mu     sync.Mutex
	mapper *restmapper.DeferredDiscoveryRESTMapper
}

// New returns an upstream controller for a cluster and a control plane.
func New(config *rest.Config, api API) (*Upstream, error) {
	dyn, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("dynamic client: %w", err)
	}
	disco, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("discovery client: %w", err)
	}
	return &Upstream{API: api, dynamic: dyn, mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(disco))}, nil
}

// Parse reads objects from YAML documents.
func Parse(manifests string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(manifests), 4096); ; {
		object := map[string]any{}
		switch err := decoder.Decode(&object); {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, fmt.Errorf("parse manifests: %w", err)
		case len(object) > 0:
			out = append(out, &unstructured.Unstructured{Object: object})
		}
	}
}

// Register creates the workload's instance in the control plane and, except for a Helm workload, an instance of each of its
// resources.
func (u *Upstream) Register(ctx context.Context, w Workload) (Deployed, error) {
	d := Deployed{Workload: w}
	objects := WorkloadInstances
	if w.Type == v1alpha1.WorkloadTypeHelmInstance {
		objects = HelmWorkloadInstances
	}
	id, err := u.API.Create(ctx, objects, map[string]any{"Name": w.Name})
	if err != nil {
		return d, fmt.Errorf("register workload %s: %w", w.Name, err)
	}
	d.InstanceID = id
	for _, obj := range w.Objects {
		res, err := u.RegisterResource(ctx, d, obj)
		if err != nil {
			return d, err
		}
		d.Resources = append(d.Resources, res)
	}
	return d, nil
}

// RegisterResource creates an instance of another resource of a workload in the control plane, except for a Helm workload,
// and returns its entry in the list of the ThreeportWorkload.
func (u *Upstream) RegisterResource(
	ctx context.Context, of Deployed, obj *unstructured.Unstructured,
) (v1alpha1.WorkloadResourceInstance, error) {
	gvk := obj.GroupVersionKind()
	res := v1alpha1.WorkloadResourceInstance{
		Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Name: obj.GetName(), Namespace: obj.GetNamespace(),
	}
	if of.Type != v1alpha1.WorkloadTypeInstance {
		return res, nil
	}
	definition, err := json.Marshal(obj)
	if err != nil {
		return res, fmt.Errorf("register %s %s: %w", gvk.Kind, obj.GetName(), err)
	}
	res.ThreeportID, err = u.API.Create(ctx, WorkloadResourceInstances, map[string]any{
		"WorkloadInstanceID": of.InstanceID, "JSONDefinition": json.RawMessage(definition),
	})
	if err != nil {
		return res, fmt.Errorf("register %s %s: %w", gvk.Kind, obj.GetName(), err)
	}
	return res, nil
}

// Deploy registers a workload, creates its objects, and then its ThreeportWorkload.
func (u *Upstream) Deploy(ctx context.Context, w Workload) (Deployed, error) {
	d, err := u.Register(ctx, w)
	if err != nil {
		return d, err
	}
	for _, obj := range w.Objects {
		if _, err := u.Create(ctx, obj); err != nil {
			return d, err
		}
	}
	return d, u.Declare(ctx, d)
}

// Declare creates or updates the workload's ThreeportWorkload.
func (u *Upstream) Declare(ctx context.Context, d Deployed) error {
	cr := &v1alpha1.ThreeportWorkload{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "ThreeportWorkload"},
		ObjectMeta: metav1.ObjectMeta{Name: d.Name},
		Spec: v1alpha1.ThreeportWorkloadSpec{
			WorkloadType: d.Type, WorkloadInstanceID: d.InstanceID, WorkloadResourceInstances: d.Resources,
		},
	}
	encoded, err := json.Marshal(cr)
	if err != nil {
		return fmt.Errorf("declare workload %s: %w", d.Name, err)
	}
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(encoded); err != nil {
		return fmt.Errorf("declare workload %s: %w", d.Name, err)
	}
	unstructured.RemoveNestedField(obj.Object, "status")
	_, err = u.Create(ctx, obj)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	resource, err := u.Resource(obj)
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"spec": cr.Spec})
	if err != nil {
		return fmt.Errorf("declare workload %s: %w", d.Name, err)
	}
	if _, err = resource.Patch(ctx, d.Name, "application/merge-patch+json", patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("update ThreeportWorkload %s: %w", d.Name, err)
	}
	return nil
}

// Delete deletes the workload's objects in reverse order, and then its ThreeportWorkload.
func (u *Upstream) Delete(ctx context.Context, d Deployed) error {
	for _, obj := range slices.Backward(d.Objects) {
		if err := u.DeleteObject(ctx, obj); err != nil {
			return err
		}
	}
	cr := &unstructured.Unstructured{}
	cr.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("ThreeportWorkload"))
	cr.SetName(d.Name)
	return u.DeleteObject(ctx, cr)
}

// Create creates an object in the cluster, and returns the stored object.
func (u *Upstream) Create(ctx context.Context, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	resource, err := u.Resource(obj)
	if err != nil {
		return nil, err
	}
	created, err := resource.Create(ctx, obj, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("create %s %s: %w", obj.GetKind(), obj.GetName(), err)
	}
	return created, nil
}

// DeleteObject deletes an object as kubectl does. A missing object is no error.
func (u *Upstream) DeleteObject(ctx context.Context, obj *unstructured.Unstructured) error {
	resource, err := u.Resource(obj)
	if err != nil {
		return err
	}
	background := metav1.DeletePropagationBackground
	err = resource.Delete(ctx, obj.GetName(), metav1.DeleteOptions{PropagationPolicy: &background})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete %s %s: %w", obj.GetKind(), obj.GetName(), err)
	}
	return nil
}

// Resource returns the client of an object's kind, in its namespace.
func (u *Upstream) Resource(obj *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	mapping, err := u.mapping(obj.GroupVersionKind())
	if err != nil {
		return nil, fmt.Errorf("find resource of %s: %w", obj.GetKind(), err)
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return u.dynamic.Resource(mapping.Resource), nil
	}
	return u.dynamic.Resource(mapping.Resource).Namespace(obj.GetNamespace()), nil
}

func (u *Upstream) mapping(gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	mapping, err := u.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		u.mapper.Reset()
		mapping, err = u.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	}
	return mapping, err
}
