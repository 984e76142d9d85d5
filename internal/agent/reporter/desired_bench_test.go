package reporter

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/threeport/threeport-agent/internal/agent/informers"
	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// object is the JSON of an object.
type object = map[string]any

// staticAPI serves lists that do not change, by path. Its watches deliver nothing.
type staticAPI map[string]object

func (s staticAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch body, ok := s[r.URL.Path]; {
	case r.Method == http.MethodPost:
		_ = json.NewEncoder(w).Encode(object{
			"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "status": object{"allowed": true},
		})
	case !ok:
		http.NotFound(w, r)
	case r.URL.Query().Get("sendInitialEvents") != "":
		w.WriteHeader(http.StatusBadRequest) // the informer lists instead
	case r.URL.Query().Get("watch") != "":
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	default:
		_ = json.NewEncoder(w).Encode(body)
	}
}

// add adds a kind to discovery, and its objects.
func (s staticAPI) add(root, apiVersion, kind, resource, listKind string, items []object) {
	if s[root] == nil {
		s[root] = object{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": apiVersion, "resources": []object{}}
	}
	s[root]["resources"] = append(s[root]["resources"].([]object), object{
		"name": resource, "kind": kind, "namespaced": true, "verbs": []string{"list", "watch"},
	})
	s[root+"/"+resource] = object{"kind": listKind, "apiVersion": apiVersion, "metadata": object{"resourceVersion": "1"}, "items": items}
}

// metadata is the metadata of an object with its owner, if it has one.
func metadata(name string, owner ...object) object {
	return object{"namespace": "ns", "name": name, "uid": "uid-" + name, "resourceVersion": "1", "ownerReferences": owner}
}

// BenchmarkReporter_DesiredState computes the desired states of 1,000 workloads with 60 Events each.
func BenchmarkReporter_DesiredState(b *testing.B) {
	const workloads, pods, events = 1000, 6, 10
	var daemonSets, podItems, eventItems []object
	targets := target.NewRegistry()
	var instances []target.Instance
	for n := range workloads {
		web := fmt.Sprintf("web-%d", n)
		daemonSets = append(daemonSets, object{"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata(web)})
		owner := object{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": web, "uid": "uid-" + web, "controller": true}
		for p := range pods {
			pod := fmt.Sprintf("%s-%d", web, p)
			podItems = append(podItems, object{"metadata": metadata(pod, owner)})
			for e := range events {
				eventItems = append(eventItems, object{
					"metadata":       metadata(fmt.Sprintf("%s.%d", pod, e)),
					"involvedObject": object{"apiVersion": "v1", "kind": "Pod", "namespace": "ns", "name": pod, "uid": "uid-" + pod},
				})
			}
		}
		instances = append(instances, target.Instance{Type: target.WorkloadInstance, ID: int64(n + 1)})
		ref := target.Ref{Group: "apps", Kind: "DaemonSet", Namespace: "ns", Name: web}
		targets.Track(target.Workload{Name: web, Instance: instances[n], Resources: []target.Resource{{Ref: ref, Version: "v1", ID: int64(n + 1)}}})
	}
	api := staticAPI{}
	api.add("/api/v1", "v1", "Pod", "pods", "PodList", podItems)
	api.add("/api/v1", "v1", "Event", "events", "EventList", eventItems)
	api.add("/apis/apps/v1", "apps/v1", "DaemonSet", "daemonsets", "DaemonSetList", daemonSets)
	api.add("/apis/apps/v1", "apps/v1", "ReplicaSet", "replicasets", "ReplicaSetList", nil)
	api.add("/apis/batch/v1", "batch/v1", "Job", "jobs", "JobList", nil)
	measureDesired(b, runOn(b, api, targets), instances, pods*events)
}

// BenchmarkReporter_DesiredState_SharedObject computes the desired states of 300 workloads that list the same object, which has 3,000
// Events.
func BenchmarkReporter_DesiredState_SharedObject(b *testing.B) {
	const workloads, events = 300, 3000
	api, targets := staticAPI{}, target.NewRegistry()
	var instances []target.Instance
	ref := target.Ref{Group: "apps", Kind: "DaemonSet", Namespace: "ns", Name: "web"}
	for n := range int64(workloads) {
		instance := target.Instance{Type: target.WorkloadInstance, ID: n + 1}
		targets.Track(target.Workload{
			Name: fmt.Sprint(n), Instance: instance, Resources: []target.Resource{{Ref: ref, Version: "v1", ID: n + 1}},
		})
		if instances = append(instances, instance); len(instances) > target.MaxEventInstances { // the Events are not reported to the others
			instances = instances[:target.MaxEventInstances]
		}
	}
	var eventItems []object
	for e := range events {
		eventItems = append(eventItems, object{
			"metadata":       metadata(fmt.Sprintf("web.%d", e)),
			"involvedObject": object{"apiVersion": "apps/v1", "kind": "DaemonSet", "namespace": "ns", "name": "web", "uid": "uid-web"},
		})
	}
	api.add("/api/v1", "v1", "Pod", "pods", "PodList", nil)
	api.add("/api/v1", "v1", "Event", "events", "EventList", eventItems)
	api.add("/apis/apps/v1", "apps/v1", "DaemonSet", "daemonsets", "DaemonSetList", []object{{
		"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata("web"),
	}})
	api.add("/apis/apps/v1", "apps/v1", "ReplicaSet", "replicasets", "ReplicaSetList", nil)
	api.add("/apis/batch/v1", "batch/v1", "Job", "jobs", "JobList", nil)
	measureDesired(b, runOn(b, api, targets), instances, events)
}

// measureDesired measures the desired states of instances that have one object and a number of Events each.
func measureDesired(b *testing.B, r *Reporter, instances []target.Instance, events int) {
	b.Helper()
	desired := func() bool {
		for _, instance := range instances {
			state, ok, err := r.DesiredState(b.Context(), instance, time.Time{})
			if err != nil {
				b.Fatal(err)
			}
			if !ok || len(state.Events) != events || len(state.Operations) != 1 {
				return false
			}
		}
		return true
	}
	for begin := time.Now(); !desired(); {
		if time.Since(begin) > waitLimit {
			b.Fatal("the desired states are not complete")
		}
	}
	for b.Loop() {
		if !desired() {
			b.Fatal("a desired state is not complete")
		}
	}
}

// noSink is a Sink that takes reports and knows none.
type noSink struct{}

func (noSink) Reoffer() <-chan struct{}                         { return nil }
func (noSink) Offer(observe.Report)                             {}
func (noSink) Reopen(target.Instance)                           {}
func (noSink) IsSyncDeferred(target.Instance) bool              { return false }
func (noSink) RetrySync(target.Instance)                        {}
func (noSink) Cancel(observe.Key)                               {}
func (noSink) ForgetExcept(observe.Subject, ...observe.Key)     {}
func (noSink) DropRejected(observe.Subject, ...target.Instance) {}
func (noSink) Knows(observe.Key) bool                           { return false }
func (noSink) Has(observe.Report) bool                          { return false }
func (noSink) Drop(observe.Event, string) bool                  { return false }
func (noSink) IsConfirmed(target.Instance) bool                 { return true }
func (noSink) Events() iter.Seq[types.UID]                      { return slices.Values([]types.UID(nil)) }
func (noSink) ForgetRestoredEvents()                            {}

// runOn runs a reporter on an API server until the benchmark ends.
func runOn(b *testing.B, api http.Handler, targets *target.Registry) *Reporter {
	b.Helper()
	server := httptest.NewServer(api)
	clients, err := informers.NewClients(&rest.Config{Host: server.URL})
	if err != nil {
		b.Fatal(err)
	}
	r := New(DefaultConfig(), clients, targets, noSink{}, nil, NewMetrics(prometheus.NewRegistry()), logr.Discard(), func(string) {})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.Run(ctx)
	}()
	b.Cleanup(func() {
		cancel()
		<-ended
		server.Close()
	})
	return r
}
