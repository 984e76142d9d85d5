package informers

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

// clusterNamespace exists in every cluster during its whole life.
const clusterNamespace = metav1.NamespaceSystem

// ClusterUID returns the UID of the namespace kube-system, which identifies the cluster. It requires the permission to list
// this namespace.
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
