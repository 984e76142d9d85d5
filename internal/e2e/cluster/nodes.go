package cluster

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// kwok keeps the nodes with this annotation alive, and runs their pods.
const (
	nodeAnnotation      = "kwok.x-k8s.io/node"
	nodeAnnotationValue = "fake"
)

// nodeIP is the address that all nodes claim: one reserved for documentation (RFC 5737), so a connection to it
// cannot be mistaken for a connection to a pod.
const nodeIP = "192.0.2.1"

// fakeTaint keeps pods that do not tolerate it away from the fake nodes where there is a real one, as kwok's
// documentation advises.
var fakeTaint = corev1.Taint{Key: nodeAnnotation, Value: nodeAnnotationValue, Effect: corev1.TaintEffectNoSchedule}

// createNodes makes the nodes node-0, node-1, ….
func createNodes(ctx context.Context, client kubernetes.Interface, n int, taints ...corev1.Taint) error {
	for i := range n {
		name := fmt.Sprintf("node-%d", i)
		node := fakeNode(name)
		node.Spec.Taints = taints
		_, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create node %s: %w", name, err)
		}
	}
	return nil
}

func fakeNode(name string) *corev1.Node {
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("256"),
		corev1.ResourceMemory:           resource.MustParse("1Ti"),
		corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"),
		corev1.ResourcePods:             resource.MustParse("500"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Annotations: map[string]string{nodeAnnotation: nodeAnnotationValue},
			Labels: map[string]string{
				"type":                          "kwok",
				corev1.LabelHostname:            name,
				corev1.LabelOSStable:            "linux",
				corev1.LabelArchStable:          "amd64",
				"kubernetes.io/role":            "agent",
				"node-role.kubernetes.io/agent": "",
			},
		},
		Status: corev1.NodeStatus{Capacity: capacity, Allocatable: capacity},
	}
}

// nodesReady is nil once n nodes are ready and nothing keeps pods away from them.
func nodesReady(ctx context.Context, client kubernetes.Interface, n int) error {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: "type=kwok"})
	if err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	ready := 0
	for i := range nodes.Items {
		if nodeReady(&nodes.Items[i]) {
			ready++
		}
	}
	if ready < n {
		return fmt.Errorf("%d of %d nodes are ready", ready, n)
	}
	return nil
}

func nodeReady(node *corev1.Node) bool {
	if slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t != fakeTaint }) {
		return false // the controller manager removes the taint of a new node
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
