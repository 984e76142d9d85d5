package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// changesAPI is an API with a workload, whose objects are reported by report sets.
type changesAPI struct {
	*testing.T
	url      string
	instance int64
}

// report reports a version of an object, without a definition if it is deleted.
func (a *changesAPI) report(uid string, version int, definition string) {
	a.Helper()
	operation := `"operation":"DELETED"`
	if definition != "" {
		operation = `"operation":"MODIFIED","definition":` + definition
	}
	code, answer := call(a.T, exchange{method: http.MethodPost, path: a.url + "/v0/workload-report-sets", body: fmt.Sprintf(
		`{%s,"reports":[{"instance":{"type":"WorkloadInstance","id":"%d"},"version":"%d",
			"operation":{"resourceInstanceID":"0","object":{"group":"apps","version":"v1","kind":"Deployment","namespace":"n","name":"web","uid":%q},%s}}]}`,
		someAgent, a.instance, version, uid, operation)})
	if code != http.StatusOK {
		a.Fatalf("version %d of %s: the answer is %d %s", version, uid, code, answer)
	}
}

func (a *changesAPI) read(uid string) (d threeport.Definition) {
	a.Helper()
	code, answer := call(a.T, exchange{method: http.MethodGet, path: a.url + "/v0/clusters/c/objects/" + uid})
	if err := json.Unmarshal([]byte(answer), &d); err != nil || code != http.StatusOK {
		a.Fatalf("the answer is %d %s", code, answer)
	}
	return d
}

// deploymentOf is a Deployment as the API server returns it.
func deploymentOf(image, revision string, version, ready int) string {
	return fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"annotations":{"deployment.kubernetes.io/revision":%q},"generation":%[3]d,
		"name":"web","resourceVersion":"%[3]d"},"spec":{"template":{"spec":{"containers":[{"image":%[1]q,"name":"app"}]}}},"status":{"readyReplicas":%[4]d}}`,
		image, revision, version, ready)
}

// The status of a Deployment and the annotation of its controller change within a second of its image.
func TestDefinition_StatusChanges_KeepPreviousSpec(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, address string) {
		t.Helper()
		config := plain()
		config.Database = address
		a := &changesAPI{T: t, url: run(t, config)}
		a.instance = create(t, a.url+"/v0/workload-instances", `{"Name":"web"}`)
		imageOf := func(definition json.RawMessage) string {
			var d struct {
				Spec struct {
					Template struct {
						Spec struct{ Containers []struct{ Image string } }
					}
				}
			}
			if err := json.Unmarshal(definition, &d); err != nil || len(d.Spec.Template.Spec.Containers) != 1 {
				return ""
			}
			return d.Spec.Template.Spec.Containers[0].Image
		}
		var changedAt string
		for version, step := range []struct {
			reason            string
			definition        string
			current, previous string
			changes           bool // the spec
		}{
			{"the first version", deploymentOf("app:1", "1", 1, 0), "app:1", "", true},
			{"the status changes", deploymentOf("app:1", "1", 2, 1), "app:1", "", false},
			{"the image changes", deploymentOf("app:2", "1", 3, 1), "app:2", "app:1", true},
			{"the controller writes its annotation", deploymentOf("app:2", "2", 4, 1), "app:2", "app:1", false},
			{"the status changes", deploymentOf("app:2", "2", 5, 0), "app:2", "app:1", false},
			{"the status changes again", deploymentOf("app:2", "2", 6, 1), "app:2", "app:1", false},
			{"the image changes soon", deploymentOf("app:3", "2", 7, 1), "app:3", "app:1", true},
			{"the Deployment is deleted", "", "", "app:3", true},
		} {
			a.report("web", version+1, step.definition)
			d := a.read("web")
			if got := imageOf(d.Current); got != step.current {
				t.Errorf("%s: the current image is %q, want %q", step.reason, got, step.current)
			}
			if got := imageOf(d.Previous); got != step.previous || (d.PreviousAt != nil) != (step.previous != "") {
				t.Errorf("%s: the previous image is %q of %v, want %q", step.reason, got, d.PreviousAt, step.previous)
			}
			if d.ChangedAt == nil {
				t.Fatalf("%s: the time of the change is missing", step.reason)
			}
			if at := d.ChangedAt.String(); (at != changedAt) != step.changes {
				t.Errorf("%s: the spec changed at %s, before it was %q; want a new time: %t", step.reason, at, changedAt, step.changes)
			} else {
				changedAt = at
			}
			if step.changes && !d.ChangedAt.Equal(d.At) {
				t.Errorf("%s: the spec changed at %s, want the time of the report, %s", step.reason, d.ChangedAt, d.At)
			}
		}
	})
}

// Only the status and metadata of controllers are no change.
func TestDefinition_ChangesOfSpec(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, address string) {
		t.Helper()
		config := plain()
		config.Database = address
		a := &changesAPI{T: t, url: run(t, config)}
		a.instance = create(t, a.url+"/v0/workload-instances", `{"Name":"web"}`)
		for i, test := range []struct {
			reason        string
			before, after string
			changes       bool
		}{
			{"data of a ConfigMap", `{"data":{"a":"1"}}`, `{"data":{"a":"2"}}`, true},
			{"a redacted value", `{"data":{"a":"[redacted]"}}`, `{"data":{"a":"[redacted]"},"metadata":{"generation":2}}`, false},
			{"a label", `{"metadata":{"labels":{"a":"1"}}}`, `{"metadata":{"labels":{"a":"2"}}}`, true},
			{"an annotation", `{"metadata":{"annotations":{"a":"1"}}}`, `{"metadata":{"annotations":{"a":"1","b":"2"}}}`, true},
			{"an annotation instead of a label", `{"metadata":{"annotations":{"a":"1"}}}`, `{"metadata":{"labels":{"a":"1"}}}`, true},
			{
				"metadata of controllers", `{"metadata":{"annotations":{"deployment.kubernetes.io/revision":"1"}}}`,
				`{"metadata":{"annotations":{"pv.kubernetes.io/bound-by-controller":"yes"},"deletionTimestamp":"x","finalizers":["a"],"resourceVersion":"2"}}`, false,
			},
			{"the status", `{"status":{"a":1}}`, `{"status":{"a":[{"status":"2"}]}}`, false},
			{"a field status of the spec", `{"spec":{"status":1}}`, `{"spec":{"status":2}}`, true},
			{"metadata that is no object", `{"metadata":"a"}`, `{"metadata":["b"]}`, false},
			{"another order", `{"kind":"a","spec":{"a":1,"b":2}}`, `{"spec": {"b":2, "a":1}, "kind":"a"}`, false},
		} {
			uid := fmt.Sprint("object-", i)
			a.report(uid, 1, test.before)
			a.report(uid, 2, test.after)
			if d := a.read(uid); (d.Previous != nil) != test.changes {
				t.Errorf("%s: the previous definition is %s, want one: %t", test.reason, d.Previous, test.changes)
			}
		}
	})
}
