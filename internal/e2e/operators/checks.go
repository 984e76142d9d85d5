package operators

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/threeport/threeport-agent/internal/e2e/scenario"
	"github.com/threeport/threeport-agent/internal/e2e/scenario/recording"
)

// within is how long a moment may take.
const within = time.Minute

// moment returns a scenario with one moment, which has the scenario's name.
func moment(name, doc, status string, reached scenario.Check, parts ...scenario.Part) scenario.Scenario {
	return scenario.Scenario{Name: name, Steps: []scenario.Step{{
		Moment: name, Doc: doc, Status: status, Reached: reached, Within: within, Parts: parts,
	}}}
}

// part is a custom resource with the status that a user would give it.
func part(kind, name, status string) scenario.Part {
	return scenario.Part{Kind: kind, Name: name, Status: status}
}

// all combines checks: all must pass.
func all(checks ...scenario.Check) scenario.Check {
	return func(at recording.Snapshot) error {
		for _, check := range checks {
			if err := check(at); err != nil {
				return err
			}
		}
		return nil
	}
}

// object checks an object by its kind and name.
func object(kind, name string, test func(*unstructured.Unstructured) error) scenario.Check {
	return func(at recording.Snapshot) error {
		for _, obj := range at.Objects {
			if obj.GetKind() == kind && obj.GetName() == name {
				return test(obj)
			}
		}
		return fmt.Errorf("there is no %s %s", kind, name)
	}
}

// exists checks that there is an object.
func exists(kind, name string) scenario.Check {
	return object(kind, name, func(*unstructured.Unstructured) error { return nil })
}

// condition checks a condition of an object, and that the controller has seen its latest spec. An empty reason means any.
func condition(kind, name, conditionType, status, reason string) scenario.Check {
	return object(kind, name, func(obj *unstructured.Unstructured) error {
		list, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
		return conditionIn(list, obj, conditionType, status, reason)
	})
}

func conditionIn(list []any, obj *unstructured.Unstructured, conditionType, status, reason string) error {
	for _, item := range list {
		c, ok := item.(map[string]any)
		if !ok || c["type"] != conditionType {
			continue
		}
		if c["status"] == status && (reason == "" || c["reason"] == reason) {
			return nil
		}
		return fmt.Errorf("condition %s of %s is %v %v: %v", conditionType, obj.GetName(), c["status"], c["reason"], c["message"])
	}
	return fmt.Errorf("%s has no condition %s", obj.GetName(), conditionType)
}

// text checks a text in an object by its path, such as "status.phase". An item of a list is its index.
func text(kind, name, path, want string) scenario.Check {
	return object(kind, name, func(obj *unstructured.Unstructured) error {
		got, _, _ := unstructured.NestedString(obj.Object, strings.Split(path, ".")...)
		if got != want {
			return fmt.Errorf("%s of %s is %q, want %q", path, name, got, want)
		}
		return nil
	})
}

// patch changes an object by a merge patch.
func patch(resource recording.Resource, name, change string) func(context.Context, scenario.Env) error {
	return func(ctx context.Context, env scenario.Env) error {
		_, err := env.Client.Resource(resource.GroupVersionResource).Namespace(env.Namespace).
			Patch(ctx, name, types.MergePatchType, []byte(change), metav1.PatchOptions{})
		if err != nil {
			return fmt.Errorf("change %s %s: %w", resource.Kind, name, err)
		}
		return nil
	}
}
