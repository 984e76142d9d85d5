package recording

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// noise are fields that differ in each run and do not show the state of a workload.
var noise = [][]string{
	{"metadata", "managedFields"},
	{"metadata", "resourceVersion"},
	{"metadata", "selfLink"},
	{"involvedObject", "resourceVersion"},
	{"related", "resourceVersion"},
	{"series"}, // it depends on whether the scheduler has tried again
}

// ofPods are such fields of a Pod.
var ofPods = [][]string{
	{"status", "resources"}, // of control groups of version 1: now and then a limit of 2^63 bytes where there is none
}

// machine are the fields of a Node that describe the machine.
var machine = [][]string{
	{"metadata", "annotations"},
	{"status", "addresses"},
	{"status", "allocatable"},
	{"status", "capacity"},
	{"status", "daemonEndpoints"},
	{"status", "features"},
	{"status", "images"},
	{"status", "nodeInfo"},
	{"status", "runtimeHandlers"},
	{"status", "volumesAttached"},
	{"status", "volumesInUse"},
}

// prune returns a copy of an object without noise.
func prune(obj *unstructured.Unstructured) *unstructured.Unstructured {
	out := obj.DeepCopy()
	for _, path := range noise {
		unstructured.RemoveNestedField(out.Object, path...)
	}
	for _, path := range map[string][][]string{podKind: ofPods, nodeKind: machine}[obj.GetKind()] {
		unstructured.RemoveNestedField(out.Object, path...)
	}
	return out
}
