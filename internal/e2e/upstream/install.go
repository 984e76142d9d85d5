package upstream

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// AggregateLabel is the label of the ClusterRoles whose rules the agent's ClusterRole has.
const AggregateLabel = "rbac.threeport.io/aggregate-to-agent"

// agentRoles are the files with the agent's ClusterRoles in config/rbac.
var agentRoles = []string{"role.yaml", "built_in_kinds_role.yaml", "workloads_role.yaml"}

// Install creates the generated CRD, the admission policy and the agent's ClusterRoles from config/ below the module's root,
// and binds each role to a user. So the user has the permissions of config/default, also in a cluster without the controller
// that aggregates roles. Objects that exist already are not changed.
func (u *Upstream) Install(ctx context.Context, root, user string) error {
	files, err := filepath.Glob(filepath.Join(root, "config", "crd", "bases", "*.yaml"))
	if err != nil {
		return fmt.Errorf("find the CRD below %s: %w", root, err)
	}
	if len(files) == 0 {
		return fmt.Errorf("no file below %s has the CRD", root)
	}
	for _, file := range agentRoles {
		files = append(files, filepath.Join(root, "config", "rbac", file))
	}
	for _, file := range []string{"policy.yaml", "binding.yaml"} {
		files = append(files, filepath.Join(root, "config", "admission", file))
	}
	for _, file := range files {
		objects, err := readObjects(file)
		if err != nil {
			return err
		}
		for _, obj := range objects {
			if obj.GetKind() == "ClusterRole" {
				err = u.Grant(ctx, obj, user)
			} else {
				err = u.ensure(ctx, obj)
			}
			if err != nil {
				return fmt.Errorf("install the agent: %w", err)
			}
		}
	}
	return nil
}

// InstallComponent creates the ClusterRole of a folder of config/components. Kubernetes adds its rules to those of the agent.
func (u *Upstream) InstallComponent(ctx context.Context, root, name string) (*unstructured.Unstructured, error) {
	objects, err := readObjects(filepath.Join(root, "config", "components", name, "role.yaml"))
	if err != nil {
		return nil, err
	}
	if len(objects) != 1 {
		return nil, fmt.Errorf("component %s has %d objects, want its ClusterRole", name, len(objects))
	}
	return objects[0], u.ensure(ctx, objects[0])
}

// InstallLeases creates the agent's namespace and the Role for its Leases from config/ below the module's root, and binds the Role
// to a user. It returns the namespace.
func (u *Upstream) InstallLeases(ctx context.Context, root, user string) (namespace string, err error) {
	for _, file := range []string{"manager/namespace.yaml", "rbac/leader_election_role.yaml", "rbac/leader_election_role_binding.yaml"} {
		objects, err := readObjects(filepath.Join(root, "config", filepath.FromSlash(file)))
		if err != nil {
			return "", err
		}
		for _, obj := range objects {
			if obj.GetKind() == "RoleBinding" {
				obj.Object["subjects"] = []any{map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}}
			}
			if err := u.ensure(ctx, obj); err != nil {
				return "", fmt.Errorf("install the agent: %w", err)
			}
			if obj.GetKind() == "Namespace" {
				namespace = obj.GetName()
			}
		}
	}
	return namespace, nil
}

// Grant creates a ClusterRole and binds it to a user.
func (u *Upstream) Grant(ctx context.Context, role *unstructured.Unstructured, user string) error {
	if err := u.ensure(ctx, role); err != nil {
		return err
	}
	return u.ensure(ctx, ClusterRoleBinding(role.GetName(), role.GetName(), user))
}

// WatchRole returns a ClusterRole to list and watch a resource. Its label adds it to the agent's permissions.
func WatchRole(name, group, resource string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1",
		"kind":       "ClusterRole",
		"metadata":   map[string]any{"name": name, "labels": map[string]any{AggregateLabel: "true"}},
		"rules": []any{map[string]any{
			"apiGroups": []any{group}, "resources": []any{resource}, "verbs": []any{"list", "watch"},
		}},
	}}
}

func readObjects(file string) ([]*unstructured.Unstructured, error) {
	text, err := os.ReadFile(file) //nolint:gosec // the project's own
	if err != nil {
		return nil, fmt.Errorf("install the agent: %w", err)
	}
	objects, err := Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("install the agent: %s: %w", file, err)
	}
	return objects, nil
}

// ClusterRoleBinding binds a ClusterRole to a user.
func ClusterRoleBinding(name, role, user string) *unstructured.Unstructured {
	const group = "rbac.authorization.k8s.io"
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": group + "/v1",
		"kind":       "ClusterRoleBinding",
		"metadata":   map[string]any{"name": name},
		"roleRef":    map[string]any{"apiGroup": group, "kind": "ClusterRole", "name": role},
		"subjects":   []any{map[string]any{"apiGroup": group, "kind": "User", "name": user}},
	}}
}

func (u *Upstream) ensure(ctx context.Context, obj *unstructured.Unstructured) error {
	if _, err := u.Create(ctx, obj); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return nil
}
