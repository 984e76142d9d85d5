package recording

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

const (
	eventKind = "Event"
	nodeKind  = "Node"
	podKind   = "Pod"
)

// RootCertificates is a ConfigMap of every namespace. Recordings omit it.
const RootCertificates = "kube-root-ca.crt"

// Resource is a resource to record. Its objects have a namespace.
type Resource struct {
	Kind string
	schema.GroupVersionResource
}

// resources are the resources of every recording, in its order: owners before the objects that they own. Custom resources follow.
var resources = []Resource{
	{"ConfigMap", schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}},
	{"Secret", schema.GroupVersionResource{Version: "v1", Resource: "secrets"}},
	{"PersistentVolumeClaim", schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}},
	{"Service", schema.GroupVersionResource{Version: "v1", Resource: "services"}},
	{"Deployment", schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}},
	{"StatefulSet", schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}},
	{"DaemonSet", schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "daemonsets"}},
	{"CronJob", schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "cronjobs"}},
	{"ReplicaSet", schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}},
	{"Job", schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}},
	{podKind, schema.GroupVersionResource{Version: "v1", Resource: "pods"}},
}

var (
	events = schema.GroupVersionResource{Version: "v1", Resource: "events"}
	nodes  = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
)

// rank returns the position of a kind in a recording.
func rank(kind string) int {
	for i, r := range resources {
		if r.Kind == kind {
			return i
		}
	}
	return len(resources)
}

// Scope is what a recording has of a cluster.
type Scope struct {
	Namespace string
	// Also are custom resources.
	Also []Resource
	// Nodes are names of nodes.
	Nodes []string
	// Addresses are the addresses of this run, such as 127.0.0.1:10123, and their replacements.
	Addresses map[string]string
}

// Take reads a namespace and some nodes. The lists are read one after the other, so an object may be newer than its owner; a
// state that lasts is still read consistently. Events are read last, so that no Event of an observed change is missing.
func Take(ctx context.Context, client dynamic.Interface, scope Scope) (Snapshot, error) {
	s := Snapshot{Namespace: scope.Namespace}
	for _, r := range slices.Concat(resources, scope.Also) {
		list, err := client.Resource(r.GroupVersionResource).Namespace(scope.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return s, fmt.Errorf("take a snapshot: list %s: %w", r.Resource, err)
		}
		for i := range list.Items {
			if obj := &list.Items[i]; r.Kind != "ConfigMap" || obj.GetName() != RootCertificates {
				s.Objects = append(s.Objects, obj)
			}
		}
	}
	for _, name := range scope.Nodes {
		node, err := client.Resource(nodes).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return s, fmt.Errorf("take a snapshot: get node %s: %w", name, err)
		}
		s.Objects = append(s.Objects, node)
	}
	list, err := client.Resource(events).Namespace(scope.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return s, fmt.Errorf("take a snapshot: list events: %w", err)
	}
	for i := range list.Items {
		s.Events = append(s.Events, &list.Items[i])
	}
	s.Taken = time.Now()
	for _, obj := range s.Objects {
		if obj.GetKind() == "Secret" {
			unstructured.RemoveNestedField(obj.Object, "data")
		}
	}
	s.replace(scope.Addresses)
	return s, nil
}
