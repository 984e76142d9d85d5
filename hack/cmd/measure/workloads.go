package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/e2e/oracle"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
)

// workload is a Deployment with a ConfigMap, a Secret and a Service, in a namespace of its own.
func workload(i, pods int) (upstream.Workload, error) {
	name := fmt.Sprintf("app-%d", i)
	objects, err := upstream.Parse(fmt.Sprintf(`
apiVersion: v1
kind: ConfigMap
metadata: {name: conf, namespace: %[1]s}
data: {key: value}
---
apiVersion: v1
kind: Secret
metadata: {name: credentials, namespace: %[1]s}
stringData: {password: hunter2}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: %[1]s}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: %[1]s}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: app, image: "example/app:1"}]}
`, name, pods))
	return upstream.Workload{Name: name, Type: v1alpha1.WorkloadTypeInstance, Objects: objects}, err
}

// createWorkloads registers workloads and creates their objects without the ThreeportWorkloads, and waits until their pods
// are ready.
func (s *stack) createWorkloads(ctx context.Context, from, to, pods int) ([]upstream.Deployed, error) {
	out := make([]upstream.Deployed, to-from)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(4)
	for i := from; i < to; i++ {
		group.Go(func() error {
			w, err := workload(i, pods)
			if err != nil {
				return err
			}
			namespace, err := upstream.Parse(fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s}}", w.Name))
			if err != nil {
				return err
			}
			if _, err := s.upstream.Create(ctx, namespace[0]); err != nil {
				return err
			}
			if out[i-from], err = s.upstream.Register(ctx, w); err != nil {
				return err
			}
			for _, obj := range w.Objects {
				if _, err := s.upstream.Create(ctx, obj); err != nil {
					return err
				}
			}
			return s.awaitReady(ctx, w.Name, pods)
		})
	}
	return out, group.Wait()
}

// declareWorkloads creates the workloads' ThreeportWorkloads, and waits until the control plane matches the cluster.
func (s *stack) declareWorkloads(ctx context.Context, all []oracle.Expected, added []upstream.Deployed) error {
	for _, d := range added {
		if err := s.upstream.Declare(ctx, d); err != nil {
			return err
		}
	}
	return s.awaitAgreement(ctx, all)
}

func (s *stack) awaitAgreement(ctx context.Context, all []oracle.Expected) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	return s.oracle.Await(ctx, s.upstream.API, all)
}

// patchAll changes every Deployment, and waits until all are ready again.
func (s *stack) patchAll(ctx context.Context, all []oracle.Expected, patch string, pods func(oracle.Expected) int) error {
	for _, w := range all {
		_, err := s.client.AppsV1().Deployments(w.Name).Patch(ctx, "web", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		if err != nil {
			return fmt.Errorf("patch Deployment of %s: %w", w.Name, err)
		}
	}
	for _, w := range all {
		if err := s.awaitReady(ctx, w.Name, pods(w)); err != nil {
			return err
		}
	}
	return nil
}

// awaitReady waits until a rollout is complete with a number of pods.
func (s *stack) awaitReady(ctx context.Context, namespace string, pods int) error {
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		d, err := s.client.AppsV1().Deployments(namespace).Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("get Deployment of %s: %w", namespace, err)
		}
		want := int32(pods) //nolint:gosec // a few
		if d.Status.ObservedGeneration == d.Generation && d.Status.Replicas == want &&
			d.Status.UpdatedReplicas == want && d.Status.ReadyReplicas == want {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for Deployment of %s: %w", namespace, ctx.Err())
		}
	}
}
