package otlp

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/threeport/threeport-agent/internal/e2e/process"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
	"github.com/threeport/threeport-agent/internal/e2e/world"
)

// tracedWorld is a world with an agent that samples all changes, and a control-plane API. Both send to a collector.
type tracedWorld struct {
	*world.World
	collector *collector
	api       *process.Process
	apiURL    string
	agent     *world.Agent
	workload  upstream.Deployed // has a ConfigMap
}

// newWorld starts the programs, with a workload whose first reports are delivered. The collector runs if it is to be started.
func newWorld(t *testing.T, startCollector bool) *tracedWorld {
	t.Helper()
	w := &tracedWorld{World: world.New(t, shared.clusters.Take(t))}
	w.collector = newCollector(t, "traces")
	if startCollector {
		w.collector.start()
	}
	endpoint := "--otlp-traces-endpoint=http://" + w.collector.address
	w.api = w.StartControlPlane(shared.controlAPI, "--bind-address=127.0.0.1:0", "--auth-enabled=false",
		"--database=sqlite:"+filepath.Join(t.TempDir(), "controlplane.db"), endpoint)
	var err error
	w.apiURL, err = w.api.URL(w.Ctx)
	w.Must(err)
	w.Upstream.API = upstream.API{URL: w.apiURL}
	w.agent = w.StartAgent(world.Command{Path: shared.agent}, "--kubeconfig="+w.Cluster.AgentKubeconfig,
		"--threeport-api-server="+w.apiURL, "--cluster-name=home", endpoint, "--otlp-traces-sample-ratio=1")
	w.workload = w.Deploy("web", world.ConfigMap("conf"))
	w.ExpectStatus(w.workload, "Healthy")
	return w
}

// secretText is the message of Events, which is in no span.
const secretText = "words of a user"

// report creates an Event about the ConfigMap, and waits until the API has it.
func (w *tracedWorld) report(reason string) {
	w.Helper()
	conf := w.Get(w.workload.Objects[0])
	w.Create(fmt.Sprintf(`
apiVersion: events.k8s.io/v1
kind: Event
metadata: {name: %q}
eventTime: "2026-01-02T03:04:05.000001Z"
reportingController: example.com/author
reportingInstance: author-0
action: Writing
type: Warning
reason: %s
note: %s
regarding: {apiVersion: v1, kind: ConfigMap, namespace: %s, name: conf, uid: %q}
`, strings.ToLower(reason), reason, secretText, w.Namespace, conf.GetUID()))
	w.Eventually("Event "+reason+" in the control plane", func() error {
		events, err := w.Upstream.API.Events(w.Ctx, url.Values{"workloadinstanceid": {strconv.FormatInt(w.workload.InstanceID, 10)}})
		if err != nil {
			return err
		}
		for _, ev := range events {
			if *ev.Reason == reason {
				return nil
			}
		}
		return fmt.Errorf("it has %d other Events", len(events))
	})
}

// traceOf waits for the spans of the report of an Event, and returns them by name.
func (w *tracedWorld) traceOf(reason string) map[string]span {
	w.Helper()
	names := []string{"observe", "outbox", "request", "store"}
	var trace map[string]span
	w.Eventually(fmt.Sprintf("one trace of Event %s with the spans %s", reason, names), func() error {
		all := w.collector.spans()
		first := slices.IndexFunc(all, func(s span) bool { return s.Name == "observe" && s.Attributes.get("k8s.event.reason") == reason })
		if first < 0 {
			return fmt.Errorf("none of %d spans is of the Event", len(all))
		}
		trace = map[string]span{}
		for _, s := range all {
			if s.TraceID != all[first].TraceID {
				continue
			}
			if _, twice := trace[s.Name]; twice || !slices.Contains(names, s.Name) {
				w.Fatalf("the trace has one more span %s", s.Name)
			}
			trace[s.Name] = s
		}
		if len(trace) < len(names) {
			return fmt.Errorf("the trace has %d spans", len(trace))
		}
		return nil
	})
	return trace
}

func TestTraces_Event_IsOneTraceOfBothPrograms(t *testing.T) {
	t.Parallel()
	w := newWorld(t, true)
	w.report("Traced")
	w.Must(w.agent.Stop(world.Timeout)) // it exports the last spans
	trace := w.traceOf("Traced")
	observe, outbox, request, store := trace["observe"], trace["outbox"], trace["request"], trace["store"]
	if observe.ParentSpanID != "" || outbox.ParentSpanID != observe.SpanID || request.ParentSpanID != outbox.SpanID || store.ParentSpanID != request.SpanID {
		t.Errorf("the spans do not follow each other: %+v", trace)
	}
	if outbox.begin().Before(observe.begin()) || request.begin().Before(outbox.begin()) || store.begin().Before(request.begin()) ||
		store.end().After(request.end()) || request.end().After(outbox.end()) {
		t.Errorf("the times of the spans are not in order: %+v", trace)
	}
	for _, s := range trace {
		service, cluster := "threeport-agent", "home"
		if s.Name == "store" {
			service, cluster = "threeport-controlplane", "" // no token fixes the name
		}
		if got := s.resource.get("service.name"); got != service {
			t.Errorf("%s is of the service %s, want %s", s.Name, got, service)
		}
		if s.Name == "request" { // its parent names the object
			continue
		}
		for name, want := range map[string]string{
			"k8s.object.kind": "ConfigMap", "k8s.object.name": "conf", "k8s.namespace.name": w.Namespace, "threeport.report.kind": "event",
			"threeport.workload.type": "WorkloadInstance", "threeport.workload.id": strconv.FormatInt(w.workload.InstanceID, 10),
		} {
			if got := s.Attributes.get(name); got != want {
				t.Errorf("%s of %s is %q, want %q", name, s.Name, got, want)
			}
		}
		if got := s.resource.get("k8s.cluster.name") + s.Attributes.get("k8s.cluster.name"); got != cluster {
			t.Errorf("%s is of the cluster %q, want %q", s.Name, got, cluster)
		}
	}
	if outbox.Attributes.get("threeport.report.left") != "delivered" || outbox.Attributes.get("threeport.report.attempts") != "1" ||
		store.Attributes.get("threeport.report.outcome") != "created" {
		t.Errorf("the report left as %v, and was stored as %v", outbox.Attributes, store.Attributes)
	}
	w.expectKinds()
	if text, err := os.ReadFile(w.collector.file); err != nil || strings.Contains(string(text), secretText) {
		t.Errorf("the spans have the message of the Event (%v)", err)
	}
}

// expectKinds waits until the traces of all kinds of reports have a span of the API.
func (w *tracedWorld) expectKinds() {
	w.Helper()
	w.Eventually("traces of all kinds of reports", func() error {
		all := w.collector.spans()
		stored := map[string]bool{}
		for _, s := range all {
			if s.Name == "store" {
				stored[s.Attributes.get("threeport.report.kind")] = true
			}
		}
		if len(stored) != 4 {
			return fmt.Errorf("stored are %v", stored)
		}
		return nil
	})
}

// expectFailedSpans waits until a program has counted spans whose request failed.
func (w *tracedWorld) expectFailedSpans(metricsURL, prefix string) {
	w.Helper()
	program := world.Agent{MetricsURL: metricsURL}
	w.Eventually("failed spans in the metrics of "+metricsURL, func() error {
		failed, err := program.Metric(w.Ctx, prefix+`_otlp_spans_total{result="failed"}`)
		if err == nil && failed == 0 {
			err = errors.New("it is 0")
		}
		return err
	})
}

func TestTraces_DeadCollector_DeliveryGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, false) // the first reports are delivered without the collector
	w.report("First")
	w.expectFailedSpans(w.agent.MetricsURL, "threeport_agent")
	w.expectFailedSpans(w.apiURL+"/metrics", "controlplane")
	w.report("Second")
	w.collector.start()
	changes := 0
	for program, p := range map[string]*process.Process{"agent": w.agent.Process, "API": w.api} {
		w.Eventually("the recovery of the export in the log of the "+program, func() error {
			changes++ // makes spans
			w.Patch(w.workload.Objects[0], fmt.Sprintf(`{"metadata":{"annotations":{"example.com/change":"%d"}}}`, changes))
			if !strings.Contains(p.Output(), "The export of traces succeeds again") {
				return errors.New("it is not there")
			}
			return nil
		})
		if lines := strings.Count(p.Output(), "The export of traces fails"); lines != 1 {
			t.Errorf("the log of the %s has %d lines about the failure, want 1", program, lines)
		}
	}
	w.report("Third")
	w.traceOf("Third")
}
