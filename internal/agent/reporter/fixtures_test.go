package reporter

import (
	"cmp"
	"fmt"
	"strings"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

var lastID atomic.Int64

// resource lists an object: "apps/v1 Deployment web", in the test's namespace unless another is given before
// the name.
func (w *world) resource(text string) target.Resource {
	words := strings.Fields(strings.ReplaceAll(text, "NS", w.namespace))
	gv, err := schema.ParseGroupVersion(words[0])
	w.must(err)
	namespace, name, ok := strings.Cut(words[2], "/")
	if !ok {
		namespace, name = w.namespace, words[2]
	}
	return target.Resource{
		Ref:     target.Ref{Group: gv.Group, Kind: words[1], Namespace: namespace, Name: name},
		Version: gv.Version, ID: lastID.Add(1),
	}
}

// track declares a workload that lists resources.
func (w *world) track(name string, resources ...string) target.Workload {
	out := target.Workload{
		Name:     w.namespace + "-" + name,
		Instance: target.Instance{Type: target.WorkloadInstance, ID: lastID.Add(1)},
	}
	for _, r := range resources {
		out.Resources = append(out.Resources, w.resource(r))
	}
	w.targets.Track(out)
	return out
}

// configMap is a manifest.
func configMap(name string) string {
	return "{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + ", namespace: NS}, data: {key: value}}"
}

// annotated adds the annotation about Events to a manifest.
func annotated(manifest, value string) string {
	return strings.Replace(manifest, "namespace: NS", "namespace: NS, annotations: {control-plane.threeport.io/events: "+value+"}", 1)
}

// owned adds a controlling owner to a manifest.
func owned(manifest string, owner *unstructured.Unstructured) string {
	return strings.Replace(manifest, "namespace: NS", fmt.Sprintf(
		"namespace: NS, ownerReferences: [{apiVersion: %q, kind: %q, name: %q, uid: %q, controller: true}]",
		owner.GetAPIVersion(), owner.GetKind(), owner.GetName(), owner.GetUID(),
	), 1)
}

const template = `{metadata: {labels: {app: a}}, spec: {containers: [{name: app, image: "example/app:1"}]}}`

func deployment(name string) string {
	return "{apiVersion: apps/v1, kind: Deployment, metadata: {name: " + name + ", namespace: NS}, " +
		"spec: {selector: {matchLabels: {app: a}}, template: " + template + "}}"
}

func replicaSet(name string) string {
	return "{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: " + name + ", namespace: NS}, " +
		"spec: {selector: {matchLabels: {app: a}}, template: " + template + "}}"
}

func pod(name string) string {
	return "{apiVersion: v1, kind: Pod, metadata: {name: " + name + ", namespace: NS}, spec: {containers: [{name: app, image: \"example/app:1\"}]}}"
}

// event is the manifest of an Event about an object.
func event(reason string, about *unstructured.Unstructured) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Event
metadata: {name: %s.%s, namespace: %s}
involvedObject: {apiVersion: %s, kind: %s, namespace: %s, name: %s, uid: "%s"}
reason: %s
message: it happened
lastTimestamp: "2026-01-02T03:04:05Z"
type: Normal
`, about.GetName(), strings.ToLower(reason), cmp.Or(about.GetNamespace(), "default"), about.GetAPIVersion(), about.GetKind(),
		about.GetNamespace(), about.GetName(), about.GetUID(), reason)
}

// statuses returns the statuses of a workload's resources.
func (w *world) statuses(wl target.Workload) []target.ResourceStatus {
	statuses, _ := w.reporter.ResourceStatuses(wl.Name)
	return statuses
}

// expectState waits for the state of a workload's resource.
func (w *world) expectState(wl target.Workload, resource int, want target.State, message string) target.ResourceStatus {
	w.Helper()
	var last target.ResourceStatus
	w.eventually(fmt.Sprintf("%s is %s %q", wl.Resources[resource].Ref, want, message), func() string {
		statuses := w.statuses(wl)
		if len(statuses) <= resource {
			return "there are no statuses"
		}
		if last = statuses[resource]; last.State != want || !strings.Contains(last.Message, message) {
			return fmt.Sprintf("it is %s: %s", last.State, last.Message)
		}
		return ""
	})
	return last
}

// expectLives waits for the operations of an object, as lives formats them.
func (w *world) expectLives(ref target.Ref, want string) {
	w.Helper()
	w.eventually(fmt.Sprintf("operations %s of %s", want, ref), func() string {
		if got := lives(w.sink.operations(ref)); got != want {
			return "they are " + got
		}
		return ""
	})
}

// expectEvent waits until an Event was offered for a resource.
func (w *world) expectEvent(reason string, r target.Resource) {
	w.Helper()
	w.eventually(fmt.Sprintf("the Event %s for %s", reason, r.Ref), func() string {
		events := w.sink.events(reason)
		if len(events) != 1 || events[0].ResourceID != r.ID {
			return fmt.Sprintf("offered is %v", events)
		}
		return ""
	})
}

// expectStatus waits for the last status of a workload.
func (w *world) expectStatus(wl target.Workload, want string) {
	w.Helper()
	w.eventually(fmt.Sprintf("status %s of %s", want, wl.Name), func() string {
		if got := w.sink.status(wl.Instance); got != want {
			return "it is " + got
		}
		return ""
	})
}

// gauge returns the number of informers that run, by the watcher's metrics.
func (w *world) gauge() float64 {
	w.Helper()
	families, err := w.registry.Gather()
	w.must(err)
	total := 0.0
	for _, family := range families {
		if family.GetName() == "threeport_agent_watches" {
			for _, m := range family.GetMetric() {
				total += m.GetGauge().GetValue()
			}
		}
	}
	return total
}

// revoke removes all permissions of a user, and returns when nothing is watched.
func (w *world) revoke(name string) {
	w.Helper()
	w.allow(name, "[]")
	w.must(allowed(w.ctx, name, false)) // else a closed watch may start again
	w.eventually("nothing is watched without permission", func() string {
		if n := w.proxy.watches(""); n > 0 {
			w.proxy.CloseClientConnections() // a running watch outlives its permission
			return fmt.Sprintf("%d watches", n)
		}
		return ""
	})
}
