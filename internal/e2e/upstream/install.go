package upstream

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Install creates the generated CRD and the agent's role from config/ below the module's root, and binds the role to a user.
// Objects that exist already are not changed.
func (u *Upstream) Install(ctx context.Context, root, user string) error {
	files, err := filepath.Glob(filepath.Join(root, "config", "crd", "bases", "*.yaml"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("find the CRD below %s: %d files: %w", root, len(files), err)
	}
	for _, file := range append(files, filepath.Join(root, "config", "rbac", "role.yaml")) {
		text, err := os.ReadFile(file) //nolint:gosec // the project's own
		if err != nil {
			return fmt.Errorf("install the agent: %w", err)
		}
		objects, err := Parse(string(text))
		if err != nil {
			return fmt.Errorf("install the agent: %s: %w", file, err)
		}
		for _, obj := range objects {
			if err := u.ensure(ctx, obj); err != nil {
				return fmt.Errorf("install the agent: %w", err)
			}
			if obj.GetKind() != "ClusterRole" {
				continue
			}
			if err := u.ensure(ctx, ClusterRoleBinding(obj.GetName(), obj.GetName(), user)); err != nil {
				return fmt.Errorf("install the agent: %w", err)
			}
		}
	}
	return nil
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
