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

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/e2e/cluster"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
)

// installTimeout limits the reaction of the cluster to an installation.
const installTimeout = 5 * time.Minute

var moduleLine = regexp.MustCompile(`(?m)^module github\.com/threeport/threeport-agent$`)

// sourceTree returns the root of the source tree that contains the working directory.
func sourceTree() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the working directory: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod")) //nolint:gosec // a parent of the working directory
		if err == nil && moduleLine.Match(text) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is not in the source tree of threeport-agent: the demo builds from it, so run it there", start)
		}
	}
}

// installForUser applies the CRD and the roles of the agent, and binds the roles to a user. It returns the namespace in which the
// user may write the agent's Leases.
func installForUser(ctx context.Context, c *cluster.Cluster, root, user string) (leaseNamespace string, err error) {
	up, err := upstream.New(c.Config(), upstream.API{})
	if err != nil {
		return "", err
	}
	if err := up.Install(ctx, root, user); err != nil {
		return "", err
	}
	if leaseNamespace, err = up.InstallLeases(ctx, root, user); err != nil {
		return "", err
	}
	sample := &unstructured.Unstructured{}
	sample.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("ThreeportWorkload"))
	return leaseNamespace, awaitServed(ctx, up, sample)
}

// awaitServed waits until the API server serves the kind of an object.
func awaitServed(ctx context.Context, up *upstream.Upstream, sample *unstructured.Unstructured) error {
	ctx, cancel := context.WithTimeout(ctx, installTimeout)
	defer cancel()
	err := poll(ctx, func(ctx context.Context) (again bool, err error) {
		resource, err := up.Resource(sample)
		if err != nil {
			return true, err
		}
		_, err = resource.List(ctx, metav1.ListOptions{Limit: 1})
		return true, err
	})
	if err != nil {
		return fmt.Errorf("wait until %s is served: %w", sample.GetKind(), err)
	}
	return nil
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
