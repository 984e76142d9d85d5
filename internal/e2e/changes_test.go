package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

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
	var definition threeport.Definition
	var current, previous appsv1.Deployment
	w.Eventually("the report of the completed rollout", func() (err error) {
		if definition, err = w.definition(uid); err != nil {
			return err
		}
		current = appsv1.Deployment{}
		w.Must(json.Unmarshal(definition.Current, &current))
		if s := current.Status; current.Spec.Template.Spec.Containers[0].Image != changed || s.ObservedGeneration != current.Generation ||
			s.UpdatedReplicas != 2 || s.ReadyReplicas != 2 || s.Replicas != 2 {
			return fmt.Errorf("the image is %s, and the status %+v", current.Spec.Template.Spec.Containers[0].Image, s)
		}
		return nil
	})
	if definition.Previous == nil || definition.ChangedAt == nil {
		t.Fatalf("the previous version is %s, the time of the change %v; want both", definition.Previous, definition.ChangedAt)
	}
	w.Must(json.Unmarshal(definition.Previous, &previous))
	if image := previous.Spec.Template.Spec.Containers[0].Image; image != "example/app:1" {
		t.Errorf("the previous image is %s, want example/app:1", image)
	}
	if !definition.ChangedAt.Before(definition.At) {
		t.Errorf("the spec changed at %s, want a time before the last report at %s", definition.ChangedAt, definition.At)
	}
}
