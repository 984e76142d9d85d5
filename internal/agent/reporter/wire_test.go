package reporter

import (
	"net/http"
	"strings"
	"testing"

	"github.com/threeport/threeport-agent/internal/agent/target"
)

// The proxy sees all requests, behind every transport of the agent.
func TestClients_Secrets_MetadataOnly(t *testing.T) {
	w := newWorld(t, shared.reader, quick())
	const manifest = "{apiVersion: v1, kind: Secret, metadata: {name: NAME, namespace: NS}, stringData: {password: hidden-treasure}}"
	early := w.create(strings.ReplaceAll(manifest, "NAME", "early"))
	w.create(strings.ReplaceAll(manifest, "NAME", "late"))
	first := w.track("first", "v1 Secret early", "v1 ConfigMap none")
	w.expectState(first, 0, target.Present, "")
	w.expectLives(first.Resources[0].Ref, "[1]")
	late := w.track("late", "v1 Secret late") // cached as a stub: fetched
	w.expectLives(late.Resources[0].Ref, "[1]")
	w.patch(early, `{"metadata": {"labels": {"touched": "yes"}}}`)
	w.eventually("the patched Secret is offered", func() string {
		if n := len(w.sink.operations(first.Resources[0].Ref)); n < 2 {
			return "it is not"
		}
		return ""
	})
	owner := w.create(strings.ReplaceAll(manifest, "NAME", "owner"))
	w.targets.Forget(first.Name)
	w.targets.Forget(late.Name) // Secrets are no longer watched: an owner is looked up
	other := w.track("other", "v1 ConfigMap none")
	w.expectState(other, 0, target.Absent, "")
	w.eventually("Secrets are not watched", func() string {
		if w.proxy.watches("/secrets") > 0 {
			return "they are"
		}
		return ""
	})
	asked := len(w.proxy.sent("/secrets"))
	w.create(owned(pod("web"), owner))
	w.eventually("the owner is looked up", func() string {
		if len(w.proxy.sent("/secrets")) == asked {
			return "it is not"
		}
		return ""
	})
	if _, err := w.reporter.DeletionsObserved(w.ctx, other.Name); err != nil {
		t.Error(err)
	}
	for _, r := range w.proxy.sent("/secrets") {
		for kind := range strings.SplitSeq(r.accept, ",") {
			if !strings.HasPrefix(kind, "application/json;as=PartialObjectMetadata") {
				t.Errorf("%s %s?%s accepts %q, want metadata only", r.method, r.path, r.query, r.accept)
			}
		}
	}
	for _, ref := range []target.Ref{first.Resources[0].Ref, late.Resources[0].Ref} {
		for _, op := range w.sink.operations(ref) {
			body, err := op.Definition()
			w.must(err)
			if strings.Contains(string(body), `"data"`) || !strings.Contains(string(body), `"kind":"Secret"`) {
				t.Errorf("offered is %s, want metadata only", body)
			}
		}
	}
}

// The agent's role permits list and watch, not get.
func TestClients_ObjectsAreListed_NotGot(t *testing.T) {
	w := newWorld(t, shared.reader, quick())
	d := w.create(deployment("web"))
	rs := w.create(owned(replicaSet("web"), d))
	w.create(owned(pod("web"), rs))
	w.create("{apiVersion: batch/v1, kind: Job, metadata: {name: job, namespace: NS}, spec: {template: " +
		strings.Replace(template, "spec: {", "spec: {restartPolicy: Never, ", 1) + "}}")
	// The cache keeps a part of these kinds only.
	wl := w.track("wl", "apps/v1 ReplicaSet web", "batch/v1 Job job", "v1 Pod web", "v1 ConfigMap none")
	for i := range 3 {
		w.expectLives(wl.Resources[i].Ref, "[1]")
		body, err := w.sink.operations(wl.Resources[i].Ref)[0].Definition()
		w.must(err)
		if !strings.Contains(string(body), `"spec"`) || strings.Contains(string(body), "managedFields") {
			t.Errorf("reported is %s, want a whole object without managedFields", body)
		}
	}
	w.awaitSync()
	w.eventuallyDeletionsObserved(wl, "all objects are there and known")
	for _, r := range w.proxy.sent("/") {
		review := r.method == http.MethodPost && strings.HasSuffix(r.path, "/selfsubjectaccessreviews")
		discovery := r.method == http.MethodGet && r.query == "" && !strings.Contains(r.path, "/namespaces/")
		list := r.method == http.MethodGet && (strings.Contains(r.query, "watch=true") || strings.Contains(r.query, "resourceVersion=") || strings.Contains(r.query, "fieldSelector=metadata.name"))
		if !review && !discovery && !list {
			t.Errorf("%s %s?%s is no list, watch, discovery or review", r.method, r.path, r.query)
		}
	}
}
