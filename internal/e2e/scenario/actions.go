package scenario

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// podKind is the kind of most involved objects.
const podKind = "Pod"

var (
	deploymentResource = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	namespaceResource  = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	podResource        = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
)

// patch changes an object by a strategic merge patch.
func patch(resource schema.GroupVersionResource, name, change string) func(context.Context, Env) error {
	return func(ctx context.Context, env Env) error {
		_, err := env.Client.Resource(resource).Namespace(env.Namespace).
			Patch(ctx, name, types.StrategicMergePatchType, []byte(change), metav1.PatchOptions{})
		if err != nil {
			return fmt.Errorf("change %s: %w", name, err)
		}
		return nil
	}
}

// remove deletes an object, as kubectl does.
func remove(resource schema.GroupVersionResource, name string) func(context.Context, Env) error {
	return func(ctx context.Context, env Env) error {
		err := env.Client.Resource(resource).Namespace(env.Namespace).Delete(ctx, name, metav1.DeleteOptions{})
		if err != nil {
			return fmt.Errorf("delete %s: %w", name, err)
		}
		return nil
	}
}

func stopKubelet(ctx context.Context, env Env) error { return env.Node.StopKubelet(ctx) }

func startKubelet(ctx context.Context, env Env) error { return env.Node.StartKubelet(ctx) }
