package scenario

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/threeport/threeport-agent/internal/e2e/scenario/recording"
)

// everyNamespaceHas are the objects that controllers create in a new namespace. Without them pods are rejected or wait.
var everyNamespaceHas = map[schema.GroupVersionResource]string{
	{Version: "v1", Resource: "serviceaccounts"}: "default",
	{Version: "v1", Resource: "configmaps"}:      recording.RootCertificates,
}

// Prepare creates the namespace, and waits until pods can be created in it.
func (e Env) Prepare(ctx context.Context) error {
	namespace := &unstructured.Unstructured{}
	namespace.SetAPIVersion("v1")
	namespace.SetKind("Namespace")
	namespace.SetName(e.Namespace)
	if _, err := e.Client.Resource(namespaceResource).Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create namespace %s: %w", e.Namespace, err)
	}
	for resource, name := range everyNamespaceHas {
		err := poll(ctx, pollTimeout, func() error {
			_, err := e.Client.Resource(resource).Namespace(e.Namespace).Get(ctx, name, metav1.GetOptions{})
			return err
		})
		if err != nil {
			return fmt.Errorf("wait for namespace %s: %w", e.Namespace, err)
		}
	}
	return nil
}

// Remove deletes the namespace with its objects, without waiting.
func (e Env) Remove(ctx context.Context) error {
	if err := e.Client.Resource(namespaceResource).Delete(ctx, e.Namespace, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("delete namespace %s: %w", e.Namespace, err)
	}
	return nil
}
