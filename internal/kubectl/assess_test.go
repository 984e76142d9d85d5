package kubectl

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/threeport/threeport-agent/internal/health"
	"github.com/threeport/threeport-agent/internal/kubectl/manifest"
)

const (
	widgetRules = "testdata/input/rules.yaml"
	configMap   = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: app}\n"
	badWidget   = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\nstatus: {broken: true}\n"

	malformedWorkload = "apiVersion: control-plane.threeport.io/v1alpha1\nkind: ThreeportWorkload\nmetadata: {name: web}\nstatus: {health: {}}\n"
)

func TestAssess_Text(t *testing.T) {
	r := invoke(t, "", "assess", "-f", "testdata/input/objects.yaml", "--rules", widgetRules)
	r.want(t, exitUsage, "objects.yaml: document 5 (line 19): the object has no kind", "objects.yaml: document 6 (line 21): not YAML")
	golden(t, "assess.txt", r.out)
	golden(t, "assess.err", r.err)
}

func TestAssess_JSON(t *testing.T) {
	r := invoke(t, "", "assess", "-f", "testdata/input/objects.yaml", "--rules", widgetRules, "-o", "json")
	r.want(t, exitUsage)
	golden(t, "assess.json", r.out)
	for line := range strings.Lines(r.out) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatal(err)
		}
		var names []string
		for name, value := range fields {
			if _, ok := value.(string); !ok {
				t.Errorf("the field %s is %v, want a string, in %s", name, value, line)
			}
			names = append(names, name)
		}
		slices.Sort(names)
		if want := []string{"apiVersion", "asOf", "kind", "message", "name", "namespace", "reason", "status"}; !slices.Equal(names, want) {
			t.Errorf("%s has %v, want %v", line, names, want)
		}
	}
}

func TestAssess_ExitCodes(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"b.yaml": badWidget, "a.json": `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"}}`, "notes.txt": "no", "deep/c.yml": configMap,
	} {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	kustomized := t.TempDir()
	if err := os.WriteFile(filepath.Join(kustomized, "kustomization.yaml"), []byte("resources: [a.yaml]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		reason string
		in     string
		args   []string
		code   int
		lines  int
		text   string
	}{
		{reason: "all Healthy", in: configMap, args: []string{"-f", "-"}, lines: 1, text: "Healthy      ConfigMap app/a"},
		{
			reason: "one is not", in: configMap + "---\n" + badWidget, args: []string{"-f", "-"},
			code: 1, lines: 2, text: "Down         Widget w: Broken: Widget w is broken",
		},
		{
			reason: "that status is accepted", in: configMap + "---\n" + badWidget, args: []string{"-f", "-", "--accept", "Down"},
			lines: 2, text: "Down",
		},
		{
			reason: "another one is accepted", in: badWidget, args: []string{"-f", "-", "--accept", "Unknown,Reconciling"},
			code: 1, lines: 1, text: "Down",
		},
		{
			reason: "an invalid document before a Healthy object", in: "x: [\n---\n" + configMap,
			args: []string{"-f", "-"}, code: 2, lines: 1, text: "standard input: document 1 (line 1): not YAML",
		},
		{
			reason: "no kind", in: "metadata: {name: a}\n", args: []string{"-f", "-"},
			code: 2, lines: 1, text: "Unknown      a: NoKind: the object has no kind",
		},
		{reason: "no objects", in: "# none\n", args: []string{"-f", "-"}, code: 2, text: "there are no objects in -"},
		{
			reason: "a file and standard input", in: configMap, args: []string{"-f", folder + "/b.yaml", "-f", "-"},
			code: 1, lines: 2, text: "Widget",
		},
		{
			reason: "a folder, without those in it", args: []string{"-f", folder}, code: 1,
			lines: 2, text: "Healthy      Secret s\nDown         Widget w",
		},
		{reason: "a folder, with those in it", args: []string{"-f", folder, "-R"}, code: 1, lines: 3, text: "ConfigMap app/a"},
		{reason: "a folder without files of that kind", args: []string{"-f", t.TempDir()}, code: 2, text: "there are no files that end in .yaml"},
		{reason: "a kustomization", args: []string{"-f", kustomized}, code: 2, text: "kubectl kustomize " + kustomized + " | kubectl threeport assess -f -"},
		{
			reason: "a ThreeportWorkload", args: []string{"-f", "-"}, code: 1, lines: 1, text: "Down         ThreeportWorkload web: Absent: ConfigMap a does not exist",
			in: "{apiVersion: control-plane.threeport.io/v1alpha1, kind: ThreeportWorkload, metadata: {name: web}, status: {health: Down, reason: Absent, message: ConfigMap a does not exist}}",
		},
		{
			reason: "a malformed ThreeportWorkload before a Healthy object", args: []string{"-f", "-"}, code: 2, lines: 2,
			in:   malformedWorkload + "---\n" + configMap,
			text: "Unknown      ThreeportWorkload web: Malformed: ThreeportWorkload web cannot be decoded: ",
		},
		{reason: "no such file", args: []string{"-f", "nowhere.yaml"}, code: 2, text: "nowhere.yaml: no such file"},
		{reason: "no file", code: 2, text: "give a file or folder with -f"},
		{reason: "an argument", args: []string{"x.yaml"}, code: 2, text: `unexpected argument "x.yaml": give files with -f`},
		{
			reason: "a time that is none", in: configMap, args: []string{"-f", "-", "--now", "noon"},
			code: 2, text: `--now is "noon": give a time such as`,
		},
		{
			reason: "a format that is none", in: configMap, args: []string{"-f", "-", "-o", "xml"},
			code: 2, text: `--output: "xml" is not a format: use json`,
		},
		{reason: "a status that is none", in: configMap, args: []string{"-f", "-", "--accept", "Fine"}, code: 2, text: `"Fine" is not a status`},
		{
			reason: "colours that are none", in: configMap, args: []string{"-f", "-", "--color", "red"},
			code: 2, text: `--color: "red" is not a choice: use auto, always or never`,
		},
		{
			reason: "colours", in: configMap, args: []string{"-f", "-", "--color", "always"},
			lines: 1, text: "\x1b[32mHealthy\x1b[0m      ConfigMap app/a",
		},
		{
			reason: "rules that are none", in: configMap, args: []string{"-f", "-", "--rules", "nowhere.yaml"},
			code: 2, text: "--rules: stat nowhere.yaml",
		},
		{reason: "a flag with a typo", args: []string{"--acept"}, code: 2, text: "unknown flag: --acept: did you mean --accept?"},
		{reason: "an unknown flag", args: []string{"--fast"}, code: 2, text: "unknown flag: --fast: see kubectl threeport assess --help"},
		{
			reason: "text that steers a terminal",
			in:     "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"a\\e[2J\\nb\"}\n",
			args:   []string{"-f", "-"}, lines: 1, text: "ConfigMap a\ufffd[2J b",
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			args := append([]string{"assess"}, tc.args...)
			if !slices.Contains(args, "--rules") {
				args = append(args, "--rules", widgetRules)
			}
			r := invoke(t, tc.in, args...)
			r.want(t, tc.code, tc.text)
			if lines := strings.Count(r.out, "\n"); lines != tc.lines {
				t.Errorf("%d lines, want %d:\n%s", lines, tc.lines, r.out)
			}
		})
	}
}

func TestAssess_Now(t *testing.T) {
	certificate := `
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: c, generation: 1, creationTimestamp: "2026-01-01T00:00:00Z"}
status: {notAfter: "2026-02-01T00:00:00Z", conditions: [{type: Ready, status: "True", observedGeneration: 1}]}
`
	for at, want := range map[string]string{"2026-01-15T00:00:00Z": "Healthy", "2026-02-02T00:00:00Z": "Down"} {
		if r := invoke(t, certificate, "assess", "-f", "-", "--now", at); !strings.HasPrefix(r.out, want) {
			t.Errorf("at %s: %s%s, want %s by the rules that are built in", at, r.out, r.err, want)
		}
	}
}

// A file is a state of the past: it is assessed as of its newest time. Standard input is a state of the present.
func TestAssess_File_AsOfItsNewestTime(t *testing.T) {
	const pending = `
apiVersion: example.com/v1
kind: Database
metadata: {name: db, creationTimestamp: "2024-03-01T09:00:00Z"}
spec: {notAfter: "2025-01-01T00:00:00Z"}
status: {phase: Creating, nextBackupTime: "2024-04-01T00:00:00Z", conditions: [{type: Ready, status: "False", lastTransitionTime: "2024-03-01T09:05:00+0000"}]}
`
	file := filepath.Join(t.TempDir(), "db.yaml")
	if err := os.WriteFile(file, []byte(pending), 0o600); err != nil {
		t.Fatal(err)
	}
	r := invoke(t, "", "assess", "-f", file)
	r.want(t, exitNotHealthy, "Reconciling  Database db")
	if want := file + " is assessed as of 2024-03-01T09:05:00Z, the newest time in it: --now sets another"; !strings.Contains(r.err, want) {
		t.Errorf("stderr is %q, want %q", r.err, want)
	}
	invoke(t, "", "assess", "-f", file, "-o", "json").want(t, exitNotHealthy, `"asOf":"2024-03-01T09:05:00Z"`)
	for _, args := range [][]string{{"-f", "-"}, {"-f", file, "--now", "2024-03-02T12:00:00Z"}} {
		r := invoke(t, pending, append([]string{"assess"}, args...)...)
		r.want(t, exitNotHealthy, "Unhealthy    Database db")
		if strings.Contains(r.err, "as of") {
			t.Errorf("%v: stderr is %q, want no note", args, r.err)
		}
	}
}

func TestAssess_Explain(t *testing.T) {
	const objects = `
{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}, status: {broken: true}}
---
{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: c}, status: {conditions: [{type: Ready, status: "True"}]}}
---
{apiVersion: example.com/v1, kind: Database, metadata: {name: db}, status: {phase: Running, readyReplicas: 1, replicas: 2, conditions: [{type: Ready, status: "False", reason: NoQuorum}]}}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: v}, status: {phase: Failed, message: gone}}
`
	r := invoke(t, objects, "assess", "-f", "-", "--explain", "--now", "2026-01-31T12:00:00Z", "--rules", widgetRules)
	r.want(t, exitNotHealthy)
	golden(t, "assess-explain.txt", r.out)
	r = invoke(t, crashing, "assess", "-f", "-", "--explain", "-o", "json")
	r.want(t, exitNotHealthy, `"derived":"Reconciling ReplicasNotReady by itself; its derived objects count too"`)
}

// crashing are a pod that crashes, and the Deployment and the ReplicaSet that it descends from.
const crashing = `
- {apiVersion: v1, kind: Pod, metadata: {name: web-1-a, namespace: app, uid: p1, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web-1, uid: r1, controller: true}]}, spec: {containers: [{name: c}]}, status: {phase: Running, containerStatuses: [{name: c, restartCount: 5, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 7, reason: Error}}}]}}
- {apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: app, uid: d1, generation: 1}, spec: {replicas: 1}, status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, unavailableReplicas: 1, conditions: [{type: Available, status: "False", reason: MinimumReplicasUnavailable}, {type: Progressing, status: "True", reason: ReplicaSetUpdated}]}}
- {apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web-1, namespace: app, uid: r1, generation: 1, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: d1, controller: true}]}, spec: {replicas: 1}, status: {observedGeneration: 1, replicas: 1}}
`

func TestAssess_IncludesDescendants(t *testing.T) {
	for reason, in := range map[string]string{
		"as given":           crashing,
		"pods without a UID": strings.Replace(crashing, "uid: p1, ", "", 1),
		"with another object in between, and twice": crashing + "- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}" + crashing,
	} {
		t.Run(reason, func(t *testing.T) {
			r := invoke(t, in, "assess", "-f", "-", "-o", "json")
			r.want(t, exitNotHealthy)
			found := 0
			for line := range strings.Lines(r.out) {
				var v verdictLine
				if err := json.Unmarshal([]byte(line), &v); err != nil {
					t.Fatal(err)
				}
				if v.Kind != "Deployment" {
					continue
				}
				found++
				if v.Status != health.Down || v.Reason != "CrashLoopBackOff" || !strings.Contains(v.Message, "Pod web-1-a CrashLoopBackOff") {
					t.Errorf("the Deployment is %+v, want Down for its pod", v)
				}
			}
			if want := strings.Count(in, "kind: Deployment, metadata"); found != want {
				t.Errorf("%d Deployments, want %d", found, want)
			}
		})
	}
}

func TestAssess_MalformedWorkload_DoesNotLoseOthers(t *testing.T) {
	r := invoke(t, crashing+"---\n"+malformedWorkload, "assess", "-f", "-")
	r.want(t, exitUsage, "Down         Deployment app/web: CrashLoopBackOff", "standard input: document 2 (line 6): ThreeportWorkload web cannot be decoded: ")
	if strings.Contains(r.err, "another version") {
		t.Errorf("stderr compares versions, although no agent is asked: %s", r.err)
	}
}

func TestAssess_UsesWarnings(t *testing.T) {
	const pod = `
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: app, uid: p1, creationTimestamp: "2026-01-31T11:55:00Z"}
spec: {containers: [{name: c}]}
status: {phase: Pending, conditions: [{type: PodScheduled, status: "True"}], containerStatuses: [{name: c, state: {waiting: {reason: ContainerCreating}}}]}
---
`
	const event = `
apiVersion: v1
kind: Event
metadata: {name: web.1, namespace: app}
involvedObject: {kind: Pod, name: web, namespace: app, uid: p1}
type: Warning
reason: FailedMount
message: "MountVolume.SetUp failed: secret web-tls not found"
lastTimestamp: "2026-01-31T11:59:00Z"
`
	at := []string{"assess", "-f", "-", "--now", "2026-01-31T12:00:00Z"}
	for reason, in := range map[string]string{
		"with a UID":             pod + strings.Replace(event, "web.1,", "web.1, uid: e1,", 1),
		"without one":            pod + event,
		"without one, before it": event + "---" + pod,
	} {
		t.Run(reason, func(t *testing.T) {
			invoke(t, in, at...).want(t, exitNotHealthy, "Down         Pod app/web: FailedMount")
		})
	}
	invoke(t, pod, at...).want(t, exitNotHealthy, "Reconciling  Pod app/web")
}

func TestAssess_OwnerInAnotherFile(t *testing.T) {
	objects := strings.SplitAfter(strings.TrimPrefix(crashing, "\n"), "\n")
	var args []string
	for i, text := range objects[:3] {
		path := filepath.Join(t.TempDir(), fmt.Sprintf("%d.yaml", i))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "-f", path)
	}
	r := invoke(t, "", append([]string{"assess"}, args...)...)
	r.want(t, exitNotHealthy, "Down         Deployment app/web: CrashLoopBackOff")
}

func TestAssessor_LongInput_BoundedMemory(t *testing.T) {
	var got []string
	a := newAssessor(nil, clock{present: goldenTime})
	a.limit = 10
	a.emit = func(v verdictLine) error {
		got = append(got, v.Name)
		return nil
	}
	var want []string
	for i := range 95 {
		name := fmt.Sprint(i)
		want = append(want, name)
		object := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}}
		if i%3 == 0 {
			object["metadata"] = map[string]any{"name": name, "uid": "uid-" + name}
		}
		if err := a.add(manifest.Document{Object: object}); err != nil {
			t.Fatal(err)
		}
		if len(a.held) > a.limit {
			t.Fatalf("the assessor holds %d objects, want at most %d", len(a.held), a.limit)
		}
	}
	if err := a.finish(); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestAssess_LongOwnerChain assesses long chains, cycles and wide trees of owners. The time must not grow with the square
// of their size.
func TestAssess_LongOwnerChain(t *testing.T) {
	const n = 20_000
	owned := func(i int, owners ...int) *unstructured.Unstructured {
		var refs []any
		for _, o := range owners {
			refs = append(refs, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": fmt.Sprint("u", o)})
		}
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": fmt.Sprint(i), "uid": fmt.Sprint("u", i), "ownerReferences": refs},
		}}
	}
	for reason, owners := range map[string]func(i int) []int{
		"chain":  func(i int) []int { return []int{i + 1} },
		"circle": func(i int) []int { return []int{(i + 1) % n} },
		"itself": func(i int) []int { return []int{i} },
		"bush":   func(i int) []int { return []int{(i + 1) % n, (i + 2) % n, (i * 7) % n} },
		"star":   func(int) []int { return []int{0} },
	} {
		t.Run(reason, func(t *testing.T) {
			objects := make([]heldObject, n)
			for i := range objects {
				objects[i].Unstructured = owned(i, owners(i)...)
			}
			lines := make([]*verdictLine, n)
			for i := range lines {
				lines[i] = &verdictLine{}
			}
			newAssessor(nil, clock{present: goldenTime}).assessTogether(lines, objects)
			for i, line := range lines {
				if line.Status != health.Healthy {
					t.Fatalf("object %d is %+v, want Healthy", i, line)
				}
			}
		})
	}
}

func TestWarnings_KeepsLatestEvent(t *testing.T) {
	var objects []*unstructured.Unstructured
	for _, event := range []map[string]any{
		{"kind": "Event", "type": "Warning", "reason": "Old", "message": "o", "involvedObject": map[string]any{"uid": "a"}, "lastTimestamp": "2026-01-31T11:00:00Z"},
		{"kind": "Event", "type": "Warning", "reason": "New", "message": "n", "involvedObject": map[string]any{"uid": "a"}, "series": map[string]any{"lastObservedTime": "2026-01-31T11:30:00.000001Z"}, "eventTime": "2026-01-31T10:00:00.000000Z"},
		{"kind": "Event", "type": "Normal", "reason": "Fine", "involvedObject": map[string]any{"uid": "a"}, "lastTimestamp": "2026-01-31T11:45:00Z"},
		{"kind": "Event", "type": "Warning", "reason": "Newer", "note": "of the newer API", "regarding": map[string]any{"uid": "b"}, "deprecatedLastTimestamp": nil, "eventTime": "2026-01-31T10:00:00.000000Z"},
		{"kind": "Event", "type": "Warning", "reason": "Timeless", "involvedObject": map[string]any{"uid": "c"}},
		{"kind": "Event", "type": 7, "involvedObject": "d"},
		{"kind": "Incident", "type": "Warning", "involvedObject": map[string]any{"uid": "e"}, "lastTimestamp": "2026-01-31T11:00:00Z"},
	} {
		objects = append(objects, &unstructured.Unstructured{Object: event})
	}
	got := warnings(objects)
	if len(got) != 2 || got["a"].Reason != "New" || got["b"].Message != "of the newer API" || !got["b"].Time.Equal(goldenTime.Add(-2*time.Hour)) {
		t.Errorf("the latest Warnings are %v", got)
	}
}

func TestAssess_Interrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	read, write := io.Pipe()
	defer write.Close() //nolint:errcheck // it ends the goroutine that reads
	p := &plugin{IOStreams: genericiooptions.NewTestIOStreamsDiscard(), now: time.Now}
	p.In = read
	done := make(chan int)
	go func() { done <- p.run(ctx, []string{"assess", "-f", "-"}) }()
	if _, err := write.Write([]byte(configMap + "---\n")); err != nil {
		t.Fatal(err)
	}
	cancel()
	if code := <-done; code != exitUsage {
		t.Errorf("exit code %d, want %d", code, exitUsage)
	}
}

func BenchmarkAssess(b *testing.B) {
	var text strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&text, "%s---\n", strings.Replace(configMap, "name: a", fmt.Sprintf("name: a%d", i), 1))
	}
	folder := b.TempDir()
	path := filepath.Join(folder, "a.yaml")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		r := invokeAt(b.Context(), time.Now, "", "assess", "-f", path)
		if r.code != 0 {
			b.Fatal(r)
		}
	}
}

// FuzzAssess assesses arbitrary input. Each object has one line, and no line has control characters.
func FuzzAssess(f *testing.F) {
	f.Add([]byte(configMap + "---\n" + badWidget))
	f.Add([]byte(crashing))
	for _, name := range []string{"objects.yaml", "workloads.yaml"} {
		data, err := os.ReadFile(filepath.Join("testdata", "input", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":1,"ownerReferences":[{"uid":2}]},"status":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		objects := 0
		for d := range manifest.Documents(t.Context(), "in", strings.NewReader(string(data))) {
			if d.Object != nil {
				objects++
			}
		}
		r := invoke(t, string(data), "assess", "-f", "-", "-o", "json")
		lines := 0
		for line := range strings.Lines(r.out) {
			var v verdictLine
			if err := json.Unmarshal([]byte(line), &v); err != nil {
				t.Fatalf("the line %q is no JSON: %v", line, err)
			}
			if !slices.Contains(statuses, v.Status) || v.Status != health.Healthy && (v.Reason == "" || v.Message == "") {
				t.Errorf("the verdict %s has no cause", line)
			}
			if (v.Kind == "" || v.APIVersion == "") && v.Status == health.Healthy {
				t.Errorf("the document %s without kind or version is Healthy", line)
			}
			lines++
		}
		if lines != objects {
			t.Errorf("the output has %d lines for %d objects", lines, objects)
		}
		if r.code != exitHealthy && r.code != exitNotHealthy && r.code != exitUsage {
			t.Errorf("the exit code is %d", r.code)
		}
	})
}

// TestAssess_Scripts assesses objects by health scripts of Argo CD.
func TestAssess_Scripts(t *testing.T) {
	folder := t.TempDir()
	script := filepath.Join(folder, "example.com", "Widget", "health.lua")
	if err := os.MkdirAll(filepath.Dir(script), 0o700); err != nil {
		t.Fatal(err)
	}
	const source = `
hs = { status = "Progressing", message = "Waiting for the status" }
if obj.status ~= nil and obj.status.broken then
  hs.status = "Degraded"
  hs.message = "It is broken"
end
return hs`
	if err := os.WriteFile(script, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	r := invoke(t, badWidget, "assess", "-f", "-", "--explain", "--rules", folder)
	r.want(t, exitNotHealthy, "Unhealthy", "Widget w: Degraded: Widget w is degraded: It is broken", "the script for Widget.example.com at "+script)
	if err := os.WriteFile(filepath.Join(folder, "example.com_Widget.lua"), []byte("return {}"), 0o600); err != nil {
		t.Fatal(err)
	}
	r = invoke(t, badWidget, "assess", "-f", "-", "--rules", folder)
	r.want(t, exitUsage, "there is a rule for Widget.example.com already, at "+filepath.Join(folder, "example.com"))
}
