package e2e

import (
	"errors"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/threeport/threeport-agent/internal/e2e/upstream"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// treeObject reads an object of a workload's tree by its UID.
func (w *agentWorld) treeObject(d upstream.Deployed, uid string) (threeport.Object, error) {
	w.Helper()
	detail, err := w.detail(d)
	if err != nil {
		return threeport.Object{}, err
	}
	for _, o := range detail.Objects {
		if o.Object.UID == uid {
			return o, nil
		}
	}
	return threeport.Object{}, fmt.Errorf("the tree has no object %s", uid)
}

// A ReplicaSet of an earlier revision leaves the tree, and is not deleted. A listed object that is deleted has the times of both
// its creation and its deletion.
func TestTree_RolloutAndDeletion_OnlyDeletedObjectIsDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.Deploy("web", deployment("web", 2), "{apiVersion: v1, kind: ConfigMap, metadata: {name: conf}}")
	w.ExpectStatus(d, "Healthy")
	w.ExpectOperation(d, 1, threeport.OperationAdded) // a deletion before it would replace its report
	replicaSets := w.Object("{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: any}}")
	resource, err := w.Upstream.Resource(replicaSets)
	w.Must(err)
	list, err := resource.List(w.Ctx, metav1.ListOptions{})
	w.Must(err)
	if len(list.Items) != 1 {
		t.Fatalf("the Deployment has %d ReplicaSets, want 1", len(list.Items))
	}
	old, conf := &list.Items[0], w.Get(d.Objects[1])

	w.patch(d.Objects[0], `{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"example/app:2"}]}}}}`)
	w.Remove(d.Objects[1])
	w.ExpectOperation(d, 1, threeport.OperationDeleted)
	w.Get(old)     // it exists
	if *strictV0 { // v0 has no trees
		return
	}
	w.Eventually("the tree without both objects", func() error {
		gone, err := w.treeObject(d, string(conf.GetUID()))
		if err != nil {
			return err
		}
		unused, err := w.treeObject(d, string(old.GetUID()))
		switch {
		case err != nil:
			return err
		case gone.Gone == nil || unused.Gone == nil:
			return errors.New("one of the objects is in the tree")
		case gone.Deleted == nil || gone.Created == nil || gone.Deleted.Before(*gone.Created):
			return fmt.Errorf("the ConfigMap was created at %v and deleted at %v", gone.Created, gone.Deleted)
		case unused.Deleted != nil:
			return fmt.Errorf("the ReplicaSet was deleted at %s", unused.Deleted)
		}
		return nil
	})
}
