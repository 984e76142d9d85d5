package world

import (
	"errors"
	"fmt"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/e2e/upstream"
)

// clusterScoped are the kinds of the tests' objects without a namespace.
var clusterScoped = []string{
	"Namespace", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "PriorityClass", "ThreeportWorkload",
}

// Objects parses manifests. An object without a namespace gets the test's, unless its kind is cluster-scoped.
func (w *World) Objects(manifests string) []*unstructured.Unstructured {
	w.Helper()
	objects, err := upstream.Parse(manifests)
	w.Must(err)
	for _, obj := range objects {
		if obj.GetNamespace() == "" && !slices.Contains(clusterScoped, obj.GetKind()) {
			obj.SetNamespace(w.Namespace)
		}
	}
	return objects
}

// Object is Objects for a manifest of one object.
func (w *World) Object(manifest string) *unstructured.Unstructured {
	w.Helper()
	objects := w.Objects(manifest)
	if len(objects) != 1 {
		w.Fatalf("the manifest has %d objects, want 1: %s", len(objects), manifest)
	}
	return objects[0]
}

// Create creates an object from a manifest.
func (w *World) Create(manifest string) *unstructured.Unstructured {
	w.Helper()
	return w.CreateObject(w.Object(manifest))
}

// CreateObject creates an object, and returns the stored object.
func (w *World) CreateObject(obj *unstructured.Unstructured) *unstructured.Unstructured {
	w.Helper()
	created, err := w.Upstream.Create(w.Ctx, obj)
	w.Must(err)
	return created
}

// CreateOwned creates an object with another one as its controller.
func (w *World) CreateOwned(manifest string, owner *unstructured.Unstructured) *unstructured.Unstructured {
	w.Helper()
	obj := w.Object(manifest)
	obj.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID(), Controller: new(true),
	}})
	return w.CreateObject(obj)
}

// Get returns the stored object.
func (w *World) Get(obj *unstructured.Unstructured) *unstructured.Unstructured {
	w.Helper()
	resource, err := w.Upstream.Resource(obj)
	w.Must(err)
	got, err := resource.Get(w.Ctx, obj.GetName(), metav1.GetOptions{})
	w.Must(err)
	return got
}

// Patch applies a JSON merge patch to an object or a subresource, such as "status".
func (w *World) Patch(obj *unstructured.Unstructured, patch string, subresources ...string) *unstructured.Unstructured {
	w.Helper()
	resource, err := w.Upstream.Resource(obj)
	w.Must(err)
	patched, err := resource.Patch(w.Ctx, obj.GetName(), types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...)
	w.Must(err)
	return patched
}

// Remove deletes an object as kubectl does.
func (w *World) Remove(obj *unstructured.Unstructured) {
	w.Helper()
	w.Must(w.Upstream.DeleteObject(w.Ctx, obj))
}

// InstallCRD installs the CRD of a namespaced kind without a schema, and adds the kind to the agent's permissions and to the
// oracle. It waits for the end of an earlier deletion of the CRD.
func (w *World) InstallCRD(group, kind, plural string) *unstructured.Unstructured {
	w.Helper()
	crd := w.InstallForbiddenCRD(group, kind, plural)
	w.Must(w.Upstream.Grant(w.Ctx, upstream.WatchRole(crd.GetName(), group, plural), AgentUser))
	w.AwaitAgentMayWatch(group, plural)
	return crd
}

// AwaitAgentMayWatch waits until the API server permits the agent's user to list and watch a resource.
func (w *World) AwaitAgentMayWatch(group, resource string) {
	w.Helper()
	w.awaitMayWatch(AgentUser, group, resource, true)
}

// awaitMayWatch waits until the API server permits a user to list and watch a resource, or forbids both.
func (w *World) awaitMayWatch(user, group, resource string, want bool) {
	w.Helper()
	for _, verb := range []string{"list", "watch"} {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               user,
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Group: group, Resource: resource},
		}}
		w.Eventually(fmt.Sprintf("the permission of %s to %s %s.%s to be %t", user, verb, resource, group, want), func() error {
			got, err := w.Client.AuthorizationV1().SubjectAccessReviews().Create(w.Ctx, review, metav1.CreateOptions{})
			if err == nil && got.Status.Allowed != want {
				err = fmt.Errorf("allowed is %t: %s", got.Status.Allowed, got.Status.Reason)
			}
			return err
		})
	}
}

// InstallForbiddenCRD is InstallCRD without the permission for the agent.
func (w *World) InstallForbiddenCRD(group, kind, plural string) *unstructured.Unstructured {
	w.Helper()
	var crd *unstructured.Unstructured
	w.Eventually("the installation of the CRD of "+kind, func() error {
		var err error
		crd, err = w.Upstream.Create(w.Ctx, w.Object(CRD(group, kind, plural)))
		return err
	})
	w.AwaitCondition(crd, "Established")
	served := schema.GroupVersion{Group: group, Version: "v1"}
	w.Eventually("the API server to serve "+kind, func() error {
		_, err := w.Client.Discovery().ServerResourcesForGroupVersion(served.String())
		return err
	})
	w.Must(w.Oracle.Add(w.Ctx, served.WithKind(kind).GroupKind(), served.WithResource(plural)))
	return crd
}

// AwaitCondition waits until an object's condition is True in the cluster.
func (w *World) AwaitCondition(obj *unstructured.Unstructured, condition string) {
	w.Helper()
	w.Eventually(fmt.Sprintf("condition %s of %s %s in the cluster", condition, obj.GetKind(), obj.GetName()), func() error {
		conditions, _, err := unstructured.NestedSlice(w.Get(obj).Object, "status", "conditions")
		for _, c := range conditions {
			if c, ok := c.(map[string]any); ok && c["type"] == condition && c["status"] == "True" {
				return nil
			}
		}
		return errors.Join(err, fmt.Errorf("the conditions are %v", conditions))
	})
}
