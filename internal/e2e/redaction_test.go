package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/e2e/proxy"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
	"github.com/threeport/threeport-agent/internal/e2e/world"
)

// TestRedactedValues_AreNotKept gives an environment variable, and annotations of a Deployment and of a Secret, confidential
// values. The agent neither sends nor writes nor keeps them.
//
// Unlike the data of Secrets, these values reach the agent, because the API server cannot leave them out. They are in free memory
// until it is used again, and in buffers of connections until the next data. So this test has the runtime overwrite free memory,
// and fills the buffers.
func TestRedactedValues_AreNotKept(t *testing.T) {
	t.Parallel()
	w := newWorldWithoutAgent(t)
	w.permitSecrets()
	const inEnv, inAnnotation, inSecret = "env-battery-staple-4712", "annotation-battery-staple-4713", "secret-battery-staple-4714"
	home := t.TempDir()
	w.command = world.Command{
		Path: shared.plainAgent, Env: []string{"HOME=" + home, "TMPDIR=" + home, "GODEBUG=clobberfree=1", "GOGC=5"},
	}
	w.startAgent("--state-dir=" + filepath.Join(home, "state"))

	web := w.Object(deployment("web", 1))
	web.SetAnnotations(map[string]string{"kopf.zalando.org/last-handled-configuration": inAnnotation, "example.com/kept": "kept"})
	containers := web.Object["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)["containers"].([]any)
	containers[0].(map[string]any)["env"] = []any{
		map[string]any{"name": "DB_PASSWORD", "value": inEnv}, map[string]any{"name": "LEVEL", "value": "info"},
	}
	secret := w.Object(`{apiVersion: v1, kind: Secret, metadata: {name: sesame, annotations: {example.com/copy: ` + inSecret + `}}}`)
	wl := w.Workload("web", v1alpha1.WorkloadTypeInstance)
	wl.Objects = append(wl.Objects, web, secret)
	d, err := w.Upstream.Deploy(w.Ctx, wl)
	w.Must(err)
	w.ExpectStatus(d, "Healthy")
	w.AwaitAgreement(world.Expected(d)...)

	rows, err := w.Upstream.API.Resources(w.Ctx, nil)
	w.Must(err)
	var definitions strings.Builder
	for _, row := range rows {
		definitions.Write(row.RuntimeDefinition)
	}
	for _, text := range []string{
		`{"name":"DB_PASSWORD","value":"[redacted]"}`, `{"name":"LEVEL","value":"info"}`, `"example.com/kept":"kept"`, `"example.com/copy":"[redacted]"`,
	} {
		if !strings.Contains(definitions.String(), text) {
			t.Errorf("the definitions are %s, want %s", definitions.String(), text)
		}
	}
	places := map[string]string{"the agent's log": w.agent.Output(), "the agent's metrics": w.metrics(), "the definitions": definitions.String()}
	for _, r := range w.proxy.Sent(proxy.Any) {
		places["a request"] += r.Path + string(r.Body)
	}
	w.Must(addFiles(home, places))
	values := []string{inEnv, inAnnotation, inSecret}
	for place, text := range places {
		expectWithout(t, place, []byte(text), values...)
	}
	for _, value := range values { // proves that the search works: the control plane stores the manifests
		if _, found, err := searchMemory(w.controlPlane.PID(), value); err != nil || !found {
			t.Fatalf("the search did not find %s in the control plane's memory: %v", value, err)
		}
	}
	fill := w.bufferFiller(d)
	for _, value := range values {
		w.EventuallyWithin(3*time.Minute, "the agent's memory without "+value, func() error {
			fill()
			where, found, err := searchMemory(w.agent.PID(), value)
			if err == nil && found {
				err = fmt.Errorf("it is %s", where)
			}
			return err
		})
	}
}

// bufferFiller returns a function that fills the buffers of the agent's watches: it changes a large object of each watched kind.
// Watches share free buffers, so that of one kind may have data of another.
func (w *agentWorld) bufferFiller(d upstream.Deployed) func() {
	w.Helper()
	const template = `template: {metadata: {labels: {app: filler}}, spec: {restartPolicy: RESTART, containers: [{name: app, image: "example/app:1"}]}}`
	fillers := w.Objects(deployment("filler", 0) + `
---
{apiVersion: v1, kind: Secret, metadata: {name: filler}}
---
{apiVersion: v1, kind: Pod, metadata: {name: filler}, spec: {containers: [{name: app, image: "example/app:1"}]}}
---
{apiVersion: v1, kind: Event, metadata: {name: filler}, involvedObject: {kind: Pod, name: filler, namespace: ` + w.Namespace + `}, type: Normal, reason: Filler}
---
{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: filler}, spec: {replicas: 0, selector: {matchLabels: {app: filler}}, ` +
		strings.Replace(template, "RESTART", "Always", 1) + `}}
---
{apiVersion: batch/v1, kind: Job, metadata: {name: filler}, spec: {suspend: true, ` + strings.Replace(template, "RESTART", "Never", 1) + `}}`)
	for _, filler := range fillers {
		w.CreateObject(filler)
	}
	fillers = append(fillers, world.CustomResource(d))
	n := 0
	return func() {
		n++
		for _, filler := range fillers {
			w.Patch(filler, fmt.Sprintf(`{"metadata":{"annotations":{"example.com/filler":"%d %s"}}}`, n, strings.Repeat("x", 100_000)))
		}
	}
}
