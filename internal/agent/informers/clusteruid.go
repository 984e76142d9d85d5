package informers

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

// clusterNamespace is in every cluster from its start on to its end.
const clusterNamespace = metav1.NamespaceSystem

// ClusterUID returns what a cluster is known by: the UID of its namespace kube-system. It takes permission to list this
// one namespace.
func (c *Clients) ClusterUID(ctx context.Context) (string, error) {
	gvr := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	obj, err := c.fetchMetadata(ctx, gvr, target.Ref{Kind: "Namespace", Name: clusterNamespace})
	switch {
	case err != nil:
		return "", fmt.Errorf("find the cluster's UID: %w", err)
	case obj.UID == "":
		return "", errors.New("find the cluster's UID: namespace " + clusterNamespace + " has none")
	}
	return string(obj.UID), nil
}
