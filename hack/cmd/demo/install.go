package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/threeport/threeport-agent/internal/e2e/upstream"
)

// installTimeout is how long the cluster may take to act on what is installed.
const installTimeout = 30 * time.Second

var moduleLine = regexp.MustCompile(`(?m)^module github\.com/threeport/threeport-agent$`)

// sourceTree returns the root of the source tree that the working directory is in.
func sourceTree() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the working directory: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod")) //nolint:gosec // looking for our own
		if err == nil && moduleLine.Match(text) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is not in the source tree of threeport-agent: the demo builds from it, so run it there", start)
		}
	}
}

// install applies the CRD of ThreeportWorkload, and the role that lets the agent do what it needs to and no
// more, bound to the agent's user.
func (s *stack) install(ctx context.Context) error {
	up, err := upstream.New(s.cluster.Config(), upstream.API{})
	if err != nil {
		return err
	}
	crds, err := s.generated("CustomResourceDefinition", "config/crd/*.yaml", "config/crd/bases/*.yaml")
	if err != nil {
		return err
	}
	if err := installCRDs(ctx, up, crds); err != nil {
		return err
	}
	roles, err := s.generated("ClusterRole", "config/rbac/role.yaml")
	if err != nil {
		return err
	}
	for _, role := range roles {
		for _, obj := range []*unstructured.Unstructured{role, binding(role.GetName())} {
			if _, err := up.Create(ctx, obj); err != nil {
				return fmt.Errorf("install the agent's role: %w", err)
			}
		}
	}
	return nil
}

// generated reads the objects of one kind from the source tree.
func (s *stack) generated(kind string, patterns ...string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, pattern := range patterns {
		files, err := filepath.Glob(filepath.Join(s.root, filepath.FromSlash(pattern)))
		if err != nil {
			return nil, fmt.Errorf("find %s: %w", pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file) //nolint:gosec // a file of the source tree
			if err != nil {
				return nil, fmt.Errorf("read %s: %w", kind, err)
			}
			objects, err := upstream.Parse(string(text))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			for _, obj := range objects {
				if obj.GetKind() == kind {
					out = append(out, obj)
				}
			}
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("there is no %s in %v of %s: run 'make manifests'", kind, patterns, s.root)
	}
	return out, nil
}

func binding(role string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1",
		"kind":       "ClusterRoleBinding",
		"metadata":   map[string]any{"name": role},
		"roleRef":    map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
		"subjects":   []any{map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": agentUser}},
	}}
}

// installCRDs creates CustomResourceDefinitions and waits until their kinds are served.
func installCRDs(ctx context.Context, up *upstream.Upstream, crds []*unstructured.Unstructured) error {
	ctx, cancel := context.WithTimeout(ctx, installTimeout)
	defer cancel()
	for _, crd := range crds {
		if _, err := up.Create(ctx, crd); err != nil {
			return err
		}
		sample, err := sampleOf(crd)
		if err != nil {
			return err
		}
		err = poll(ctx, func(ctx context.Context) (again bool, err error) {
			resource, err := up.Resource(sample)
			if err != nil {
				return true, err
			}
			_, err = resource.List(ctx, metav1.ListOptions{Limit: 1})
			return true, err
		})
		if err != nil {
			return fmt.Errorf("wait until %s is served: %w", crd.GetName(), err)
		}
	}
	return nil
}

// sampleOf returns an object of the kind that a CustomResourceDefinition defines, in its first version.
func sampleOf(crd *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	if len(versions) == 0 {
		return nil, fmt.Errorf("%s has no versions", crd.GetName())
	}
	first, _ := versions[0].(map[string]any)
	version, _ := first["name"].(string)
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": group + "/" + version, "kind": kind}}, nil
}

// prepareNamespace creates the workloads' namespace and waits until pods can be created in it.
func prepareNamespace(ctx context.Context, up *upstream.Upstream) error {
	ctx, cancel := context.WithTimeout(ctx, installTimeout)
	defer cancel()
	objects, err := upstream.Parse("{apiVersion: v1, kind: Namespace, metadata: {name: " + namespace + "}}\n---\n" +
		"{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: " + namespace + "}}")
	if err != nil {
		return err
	}
	if _, err := up.Create(ctx, objects[0]); err != nil {
		return err
	}
	account, err := up.Resource(objects[1])
	if err != nil {
		return err
	}
	err = poll(ctx, func(ctx context.Context) (again bool, err error) {
		_, err = account.Get(ctx, "default", metav1.GetOptions{})
		return apierrors.IsNotFound(err), err
	})
	if err != nil {
		return errors.Join(errors.New("wait for the default ServiceAccount of namespace "+namespace), err)
	}
	return nil
}
