package store

import (
	"encoding/json"
	"slices"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// maxNamespaces is the number of namespaces of a workload that lists show.
const maxNamespaces = 10

// treeCounts is what a list of workloads shows of a tree.
type treeCounts struct {
	listed, pods threeport.Count // without completed Pods
	filtered     int64           // objects that the tree does not have
	namespaces   string          // of the listed objects, as a JSON array
}

// countTree counts the objects of a tree, of which filters left out others.
func countTree(objects []*storedObject, filtered int64) treeCounts {
	c := treeCounts{filtered: filtered}
	namespaces := []string{}
	for _, o := range objects {
		if o.Listed {
			addTo(&c.listed, o)
			if namespace := o.Object.Namespace; namespace != "" {
				namespaces = append(namespaces, namespace)
			}
		}
		if o.Object.Group == "" && o.Object.Kind == "Pod" && !hasCompleted(o) {
			addTo(&c.pods, o)
		}
	}
	slices.Sort(namespaces)
	namespaces = slices.Compact(namespaces)
	text, _ := json.Marshal(namespaces[:min(len(namespaces), maxNamespaces)]) // strings have no error
	c.namespaces = string(text)
	return c
}

// hasCompleted reports whether a Pod has run to its end. It is not to be ready again.
func hasCompleted(o *storedObject) bool { return o.Health == "Healthy" && o.Reason == "Completed" }

func addTo(c *threeport.Count, o *storedObject) {
	c.Total++
	if o.Health == "Healthy" {
		c.Healthy++
	}
}

// namespaceList returns the namespaces as a list.
func (c *treeCounts) namespaceList() (list []string) {
	_ = json.Unmarshal([]byte(c.namespaces), &list) // countTree wrote them
	return list
}
