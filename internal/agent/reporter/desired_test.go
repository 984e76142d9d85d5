package reporter

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/agent/observe"
	"github.com/threeport/threeport-agent/internal/agent/target"
)

// desiredState returns the complete desired state of an instance.
func (w *world) desiredState(instance target.Instance) observe.DesiredState {
	w.Helper()
	var out observe.DesiredState
	w.eventually("the desired state of "+instance.String(), func() string {
		var ok bool
		var err error
		if out, ok, err = w.reporter.DesiredState(w.ctx, instance, time.Time{}); err != nil || !ok {
			return fmt.Sprintf("%v, %v", ok, err)
		}
		return ""
	})
	return out
}

// describe summarizes a desired state: names, reasons of Events, and the status.
func describe(in observe.DesiredState) string {
	var operations, absent, events []string
	for _, op := range in.Operations {
		operations = append(operations, fmt.Sprintf("%s/%d", op.Object.Name, op.Attribution.Resource.ID))
	}
	for _, attribution := range in.Absent {
		absent = append(absent, attribution.Resource.Name)
	}
	for _, ev := range in.Events {
		events = append(events, ev.Reason)
	}
	slices.Sort(operations)
	slices.Sort(absent)
	slices.Sort(events)
	return fmt.Sprintf("%v absent %v events %v %s", operations, absent, events, in.Status.Status)
}

// latest returns the versions of the last reports that were offered of an instance, by key, without trees and operations of
// derived objects, which a DesiredState does not have.
func (r *recorder) latest(instance target.Instance) map[observe.Key]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[observe.Key]string{}
	for _, report := range r.offered {
		op, isOperation := report.(observe.Operation)
		_, isTree := report.(observe.Tree)
		switch {
		case isTree:
		case report.Instance() != instance:
			delete(out, report.Key()) // an Event that was attributed to another instance
		case isOperation && op.Deleted:
			delete(out, report.Key())
		case !isOperation || op.Attribution.Listed:
			out[report.Key()] = report.Version()
		}
	}
	return out
}

// expectAsOffered waits until the desired state equals the last offered reports.
func (w *world) expectAsOffered(instance target.Instance) {
	w.Helper()
	w.eventually("the desired state equals the offered reports", func() string {
		in := w.desiredState(instance)
		got := map[observe.Key]string{in.Status.Key(): in.Status.Version()}
		for _, op := range in.Operations {
			got[op.Key()] = op.Version()
			if body, err := op.Definition(); err != nil || !strings.Contains(string(body), `"metadata"`) {
				return fmt.Sprintf("%s has no body: %s %v", op, body, err)
			}
		}
		for _, ev := range in.Events {
			got[ev.Key()] = ev.Version()
		}
		if want := w.sink.latest(instance); fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Sprintf("it is\n%v\noffered is\n%v", got, want)
		}
		return ""
	})
}

func TestReporter_DesiredState_EqualsOfferedReports(t *testing.T) {
	t.Parallel()
	w := newWorld(t, shared.reader, quick())
	first := w.track("first", "v1 ConfigMap shared")
	w.expectState(first, 0, target.Absent, "")
	w.create(configMap("stub")) // cached before it is listed
	w.create(configMap("shared"))
	d := w.create(deployment("web"))
	rs := w.create(owned(replicaSet("web"), d))
	p := w.create(owned(pod("web"), rs))
	bare := w.create(pod("bare"))
	web := w.track("web", "apps/v1 Deployment web", "v1 ConfigMap stub", "v1 ConfigMap none", "example.org/v1 Kind never",
		"v1 Pod bare", "v1 ConfigMap shared")
	part := target.Workload{Name: web.Name + "-more", Instance: web.Instance, Resources: []target.Resource{
		w.resource("v1 ConfigMap more"),
		web.Resources[1], // also listed by the other part: one row
	}}
	w.targets.Track(part)
	w.create(configMap("more"))
	label := fmt.Sprintf(`{"metadata": {"labels": {"control-plane.threeport.io/workload-instance": "%d"}}}`, web.Instance.ID)
	labelled := w.create(pod("labelled"))
	w.patch(labelled, label)
	for reason, about := range map[string]string{"OfDeployment": deployment("web"), "OfNone": configMap("none")} {
		obj := w.parse(about)
		if reason == "OfDeployment" {
			obj = d
		}
		w.create(event(reason, obj))
	}
	w.create(event("OfPod", p))
	w.create(event("OfLabelled", labelled))
	w.create(event("OfBare", bare))
	w.create(event("OfUnseen", w.ghost(pod("web-66c6ccd947-bh2rs"))))
	w.create(event("OfShared", w.parse(configMap("shared")))) // goes to both
	w.create(event("OfNobody", w.parse(configMap("nobody"))))
	id := func(i int) int64 { return web.Resources[i].ID }
	want := fmt.Sprintf("%v absent [never none] events [OfBare OfDeployment OfLabelled OfNone OfPod OfShared OfUnseen] Down",
		slices.Sorted(slices.Values([]string{
			fmt.Sprintf("web/%d", id(0)), fmt.Sprintf("stub/%d", id(1)), fmt.Sprintf("bare/%d", id(4)),
			fmt.Sprintf("shared/%d", id(5)), fmt.Sprintf("more/%d", part.Resources[0].ID),
		})))
	expect := func(instance target.Instance, want string) {
		t.Helper()
		w.eventually("the desired state is "+want, func() string {
			if got := describe(w.desiredState(instance)); got != want {
				return "it is " + got
			}
			return ""
		})
		w.expectAsOffered(instance)
	}
	expect(web.Instance, want)
	expect(first.Instance, fmt.Sprintf("[shared/%d] absent [] events [OfShared] Healthy", first.Resources[0].ID))
	ended, end := context.WithCancel(w.ctx)
	end()
	if _, ok, err := w.reporter.DesiredState(ended, web.Instance, time.Time{}); ok || !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context the desired state is %v, %v, want the cause of the end", ok, err)
	}

	// The Event of the shared object belongs to both workloads, also when the first one is gone. Deleted Pods keep their Events.
	w.targets.Forget(first.Name)
	w.remove(p)
	w.remove(bare)
	want = strings.NewReplacer(fmt.Sprintf("bare/%d ", id(4)), "", "[never", "[bare never").Replace(want)
	expect(web.Instance, want)
	if _, ok, err := w.reporter.DesiredState(w.ctx, first.Instance, time.Time{}); ok || err != nil {
		t.Errorf("the desired state of an undeclared instance is %v, %v, want none", ok, err)
	}
	if got := w.reporter.Instances(); !slices.Equal(got, []target.Instance{web.Instance}) {
		t.Errorf("declared are %v, want %v", got, web.Instance)
	}
}

// The desired state is incomplete until the listed kinds and the base kinds have been listed.
func TestReporter_DesiredState_WaitsForTheFirstList(t *testing.T) {
	for _, path := range []string{"/configmaps", "/api/v1/events", "/api/v1/pods", "/replicasets", "/jobs"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			w := newIdleWorld(t, shared.reader, quick())
			hold := make(chan struct{})
			w.proxy.holdWhile(hold, path)
			w.create(configMap("conf"))
			wl := w.track("wl", "v1 ConfigMap conf")
			expectNone := func() {
				t.Helper()
				if in, ok, err := w.reporter.DesiredState(w.ctx, wl.Instance, time.Time{}); ok || err != nil {
					t.Errorf("the desired state is %s, %v, %v, want none yet", describe(in), ok, err)
				}
			}
			expectNone()
			w.run()
			w.eventually("the list is requested, and all informers run", func() string {
				if n := w.gauge(); len(w.proxy.sent(path)) == 0 || n != 5 {
					return fmt.Sprintf("%v informers", n)
				}
				return ""
			})
			w.during(100*time.Millisecond, func() string {
				expectNone()
				return ""
			})
			close(hold)
			if got, want := describe(w.desiredState(wl.Instance)), fmt.Sprintf("[conf/%d]", wl.Resources[0].ID); !strings.HasPrefix(got, want) {
				t.Errorf("the desired state is %s, want %s", got, want)
			}
		})
	}
}

// Resources that the agent cannot see are neither present nor absent in the desired state, which is complete without them.
func TestReporter_DesiredState_LeavesOutInvisibleResources(t *testing.T) {
	t.Parallel()
	reader, _ := user(t, `[{apiGroups: ["", apps, batch], resources: [pods, configmaps, jobs], verbs: [list, watch]}]`)
	w := newWorld(t, reader, quick())
	w.create(configMap("conf"))
	wl := w.track("wl", "v1 ConfigMap conf", "apps/v1 Deployment web", "v1 Secret none", "v1 ConfigMap none")
	w.expectState(wl, 1, target.Forbidden, "")
	w.expectState(wl, 2, target.Forbidden, "")
	// The API server takes some time to learn the role.
	want := fmt.Sprintf("[conf/%d] absent [none] events []", wl.Resources[0].ID)
	w.eventually("the desired state is "+want, func() string {
		got := describe(w.desiredState(wl.Instance))
		return complain(!strings.HasPrefix(got, want), "it is "+got)
	})
	other := w.track("other", "v1 ConfigMap conf") // now cached as a whole; the Pod is not
	p := w.create(pod("web"))
	pods := w.track("pods", "v1 Pod web")
	w.expectLives(pods.Resources[0].Ref, "[1]")
	w.proxy.failWith(func(r *http.Request) int {
		if strings.Contains(r.URL.RawQuery, "fieldSelector") {
			return 500
		}
		return 0
	})
	w.desiredState(other.Instance)
	w.desiredState(pods.Instance) // it was read, and has not changed
	w.patch(p, `{"metadata": {"annotations": {"some": "change"}}}`)
	w.eventually("DesiredState returns the error of reading a changed object", func() string {
		_, ok, err := w.reporter.DesiredState(w.ctx, pods.Instance, time.Time{})
		return complain(ok || err == nil, fmt.Sprintf("it is %v, %v", ok, err))
	})
}

// After its time, DesiredState reads one object that the cache keeps in part, and no further one.
func TestReporter_DesiredState_AfterItsTime_ReadsOneObject(t *testing.T) {
	w := newWorld(t, shared.reader, quick())
	const jobs = 3
	var listed []string
	for i := range jobs {
		name := fmt.Sprintf("job-%d", i)
		w.create("{apiVersion: batch/v1, kind: Job, metadata: {name: " + name + ", namespace: NS}, spec: {suspend: true, template: " +
			strings.Replace(template, "spec: {", "spec: {restartPolicy: Never, ", 1) + "}}")
		listed = append(listed, "batch/v1 Job "+name)
	}
	wl := w.track("wl", listed...)
	var all observe.DesiredState
	w.eventually("all are read", func() string {
		var ok bool
		if all, ok, _ = w.reporter.DesiredState(w.ctx, wl.Instance, time.Time{}); !ok || len(all.Operations) != jobs {
			return fmt.Sprintf("%d of %d", len(all.Operations), jobs)
		}
		return ""
	})
	for _, op := range all.Operations {
		w.reporter.informers.ForgetObject(op.Object.UID)
	}
	for call := range jobs + 1 {
		_, ok, err := w.reporter.DesiredState(w.ctx, wl.Instance, time.Unix(1, 0))
		if err != nil || ok != (call == jobs) {
			t.Errorf("call %d returns %v, %v, want true at the last call only", call, ok, err)
		}
	}
}
