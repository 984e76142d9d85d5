package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/threeport/threeport-agent/internal/e2e/upstream"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// read reads an answer of the control plane as JSON.
func (w *agentWorld) read(path string, into any) error {
	w.Helper()
	req, err := http.NewRequestWithContext(w.Ctx, http.MethodGet, w.Upstream.API.URL+path, http.NoBody)
	w.Must(err)
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer answer.Body.Close() //nolint:errcheck // only read
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: HTTP %d", path, answer.StatusCode)
	}
	return json.NewDecoder(answer.Body).Decode(into)
}

// definition reads the definition of an object of the only cluster.
func (w *agentWorld) definition(uid string) (d threeport.Definition, err error) {
	w.Helper()
	var clusters threeport.List[threeport.Cluster]
	if err := w.read("/v0/clusters", &clusters); err != nil {
		return d, err
	}
	if len(clusters.Items) != 1 {
		return d, fmt.Errorf("%d clusters have reported", len(clusters.Items))
	}
	err = w.read("/v0/clusters/"+clusters.Items[0].ClusterUID+"/objects/"+uid, &d)
	return d, err
}

// detail reads a workload as its page in the web UI does.
func (w *agentWorld) detail(d upstream.Deployed) (out threeport.WorkloadDetail, err error) {
	w.Helper()
	err = w.read(fmt.Sprintf("/v0/workloads/%s/%d", d.Type, d.InstanceID), &out)
	return out, err
}

// awaitRolledOut waits until the control plane has the definition of a Deployment whose rollout of an image is complete.
func (w *agentWorld) awaitRolledOut(uid, image string, replicas int32) (d threeport.Definition) {
	w.Helper()
	w.Eventually("the report of the completed rollout", func() (err error) {
		if d, err = w.definition(uid); err != nil {
			return err
		}
		var current appsv1.Deployment
		w.Must(json.Unmarshal(d.Current, &current))
		if s := current.Status; imageOf(current) != image || s.ObservedGeneration != current.Generation ||
			s.UpdatedReplicas != replicas || s.ReadyReplicas != replicas || s.Replicas != replicas {
			return fmt.Errorf("the image is %s, and the status %+v", imageOf(current), s)
		}
		return nil
	})
	return d
}

// expectPreviousImage checks the image of a Deployment before the latest change of its spec.
func (w *agentWorld) expectPreviousImage(d threeport.Definition, want string) {
	w.Helper()
	if d.Previous == nil || d.ChangedAt == nil {
		w.Fatalf("the previous version is %s, the time of the change %v; want both", d.Previous, d.ChangedAt)
	}
	var previous appsv1.Deployment
	w.Must(json.Unmarshal(d.Previous, &previous))
	if image := imageOf(previous); image != want {
		w.Errorf("the previous image is %s, want %s", image, want)
	}
}

func imageOf(d appsv1.Deployment) string { return d.Spec.Template.Spec.Containers[0].Image }

// A rollout changes the status and an annotation of its Deployment several times. The reported change stays that of the image.
func TestDefinition_Rollout_PreviousHasImageBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.Deploy("web", deployment("web", 2))
	w.ExpectStatus(d, "Healthy")
	uid := string(w.Get(d.Objects[0]).GetUID())
	if !*strictV0 { // the agent sends the latest definition only
		w.Eventually("the definition before the change", func() error {
			_, err := w.definition(uid)
			return err
		})
	}
	const changed = "example/app:2"
	w.patch(d.Objects[0], `{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"`+changed+`"}]}}}}`)
	if *strictV0 { // v0 has the current version only
		w.awaitReplicas(d.Objects[0], 2)
		return
	}
	definition := w.awaitRolledOut(uid, changed, 2)
	w.expectPreviousImage(definition, "example/app:1")
	if !definition.ChangedAt.Before(definition.At) {
		t.Errorf("the spec changed at %s, want a time before the last report at %s", definition.ChangedAt, definition.At)
	}
}
