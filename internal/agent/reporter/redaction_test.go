package reporter

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/threeport/threeport-agent/internal/agent/target"
	"github.com/threeport/threeport-agent/internal/redact"
)

// TestReporter_RedactionRules_Change compares the objects in the caches, and not only the definitions. The agent does not keep a
// value that the rules name. It reads a value again that they no longer name.
func TestReporter_RedactionRules_Change(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "rules.yaml")
	write := func(rules string) {
		t.Helper()
		if err := os.WriteFile(path, []byte("rules: ["+rules+"]"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`{group: "", kinds: [ConfigMap], path: data.key, action: drop}`)
	live, err := redact.Open(path, redact.NewMetrics("test"), logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	config := quick()
	config.Redaction = live
	w := newWorld(t, shared.reader, config)
	ctx, cancel := context.WithCancel(w.ctx)
	var running sync.WaitGroup
	running.Go(func() { live.Run(ctx, w.reporter.RedactionChanged) })
	defer func() { cancel(); running.Wait() }()

	w.create(configMap("conf"))
	w.create("{apiVersion: batch/v1, kind: Job, metadata: {name: job, namespace: NS}, spec: {suspend: true, template: " +
		strings.Replace(template, "spec: {", "spec: {hostname: hush, restartPolicy: Never, ", 1) + "}}")
	wl := w.track("wl", "v1 ConfigMap conf", "batch/v1 Job job")
	expect := func(i int, value string, fields ...string) {
		t.Helper()
		w.eventually(fmt.Sprintf("%s is %s", fields, value), func() string {
			object := w.keptObject(wl, i)
			if object == nil {
				return "the object is not known"
			}
			if got, _, _ := unstructured.NestedString(object.Object, fields...); got != value {
				return fmt.Sprintf("the agent keeps %q", got)
			}
			return ""
		})
	}
	hostname := []string{"spec", "template", "spec", "hostname"}
	expect(0, "[redacted]", "data", "key")
	expect(1, "hush", hostname...) // a Job is cached in part, and fetched when it changes
	write(`{group: batch, kinds: [Job], path: spec.template.spec.hostname, action: drop}`)
	expect(0, "value", "data", "key")
	expect(1, "[redacted]", hostname...)
	w.expectState(wl, 0, target.Present, "")
}

// keptObject returns the object of a listed resource as the agent keeps it; nil if it is not known.
func (w *world) keptObject(wl target.Workload, i int) *unstructured.Unstructured {
	w.Helper()
	desired, complete, err := w.reporter.DesiredState(w.ctx, wl.Instance, time.Time{})
	if err != nil || !complete {
		return nil
	}
	for _, op := range desired.Operations {
		if op.Object.Ref == wl.Resources[i].Ref {
			u, _ := op.Body.(*unstructured.Unstructured)
			return u
		}
	}
	return nil
}
