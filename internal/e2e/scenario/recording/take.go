package recording

import (
	"context"
	"fmt"
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

// resources are the recorded resources, in the order of a recording: owners before the objects that they own.
var resources = []struct {
	kind     string
	resource schema.GroupVersionResource
}{
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
		if r.kind == kind {
			return i
		}
	}
	return len(resources)
}

// Take reads a namespace and some nodes. The lists are read one after the other, so an object may be newer than its owner; a
// state that lasts is still read consistently. Events are read last, so that no Event of an observed change is missing.
func Take(ctx context.Context, client dynamic.Interface, namespace string, nodeNames ...string) (Snapshot, error) {
	s := Snapshot{Namespace: namespace}
	for _, r := range resources {
		list, err := client.Resource(r.resource).Namespace(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return s, fmt.Errorf("take a snapshot: list %s: %w", r.resource.Resource, err)
		}
		for i := range list.Items {
			if obj := &list.Items[i]; r.kind != "ConfigMap" || obj.GetName() != RootCertificates {
				s.Objects = append(s.Objects, obj)
			}
		}
	}
	for _, name := range nodeNames {
		node, err := client.Resource(nodes).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return s, fmt.Errorf("take a snapshot: get node %s: %w", name, err)
		}
		s.Objects = append(s.Objects, node)
	}
	list, err := client.Resource(events).Namespace(namespace).List(ctx, metav1.ListOptions{})
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
	return s, nil
}
