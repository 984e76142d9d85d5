package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/threeport/threeport-agent/internal/e2e/cluster"
	"github.com/threeport/threeport-agent/internal/e2e/helm"
)

// chart is a Helm chart of the project and the kustomization that it corresponds to.
type chart struct {
	name, base, namespace string
}

var (
	agentChart        = chart{name: "threeport-agent", base: "config/default", namespace: installNamespace}
	controlPlaneChart = chart{name: "threeport-controlplane", base: "config/controlplane", namespace: "threeport-control-plane"}
)

func (c chart) path() string {
	return "config/charts/" + c.name
}

// chartTools are the pinned programs that render charts and kustomizations.
type chartTools struct {
	helm4, helm3, kustomize string
}

// findChartTools returns the programs. The first call builds those that are not in the user's cache.
var findChartTools = sync.OnceValues(func() (chartTools, error) {
	root, err := cluster.SourceTree()
	if err != nil {
		return chartTools{}, err
	}
	var tools chartTools
	const module = "sigs.k8s.io/kustomize/kustomize/v5"
	kustomize := cluster.Program{Source: filepath.Join(root, "hack", "kustomize"), Module: module, Package: module}
	if tools.kustomize, err = kustomize.Build(context.Background(), os.Stderr); err != nil {
		return chartTools{}, err
	}
	if tools.helm4, err = helm.Build(context.Background(), root, 4); err != nil {
		return chartTools{}, err
	}
	if tools.helm3, err = helm.Build(context.Background(), root, 3); err != nil {
		return chartTools{}, err
	}
	return tools, nil
})

// chartTest runs the tools in the root of the source tree.
type chartTest struct {
	*testing.T
	chartTools
}

func newChartTest(t *testing.T) chartTest {
	t.Helper()
	tools, err := findChartTools()
	if err != nil {
		t.Fatalf("find helm and kustomize: %v", err)
	}
	return chartTest{T: t, chartTools: tools}
}

// try runs a command and returns its output and its error, which has the error output.
func (c chartTest) try(name string, args ...string) (string, error) {
	cmd := exec.CommandContext(c.Context(), name, args...)
	cmd.Dir = filepath.Join("..", "..")
	home := c.TempDir() // Helm neither reads nor writes the user's configuration.
	cmd.Env = append(os.Environ(), helm.Environment(home)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s%s", filepath.Base(name), strings.Join(args, " "), err, &stderr, &stdout)
	}
	return stdout.String(), nil
}

// run runs a command that has to succeed.
func (c chartTest) run(name string, args ...string) string {
	c.Helper()
	out, err := c.try(name, args...)
	if err != nil {
		c.Fatal(err)
	}
	return out
}

// chartCase is a kustomization and the values that correspond to it.
type chartCase struct {
	name  string
	chart chart
	// base is the chart's if empty.
	base       string
	components []string
	// overlay are further lines of the kustomization.
	overlay string
	// values are the arguments of Helm, and valuesFile is a values.yaml.
	values     []string
	valuesFile string
	namespace  string
}

// componentValues are the values that correspond to each folder of config/components. Those of rules are the files of the component.
var componentValues = map[string][]string{
	"agent-token":                   {"--set", "components.agent-token=true", "--set", "threeportApiServer=https://threeport.example.org"},
	"all-kinds":                     {"--set", "components.all-kinds=true"},
	"config-file":                   {"--set-file", "config=config/components/config-file/agent.yaml"},
	"controlplane-network-policy":   {"--set", "components.controlplane-network-policy=true"},
	"controlplane-otlp-logs":        {"--set", "otlp.logsEndpoint=http://otel-collector.observability.svc:4318/v1/logs"},
	"controlplane-otlp-traces":      {"--set", "otlp.tracesEndpoint=http://otel-collector.observability.svc:4318/v1/traces"},
	"controlplane-prometheus-rules": {"--set", "components.controlplane-prometheus-rules=true"},
	"controlplane-service-monitor":  {"--set", "components.controlplane-service-monitor=true"},
	"event-filters":                 {"--set-file", "eventFilters=config/components/event-filters/filters.yaml"},
	"health-rules":                  {"--set-file", "healthRules=config/components/health-rules/rules.yaml"},
	"network-policy":                {"--set", "components.network-policy=true"},
	"no-admission-policy":           {"--set", "components.no-admission-policy=true"},
	"otlp-traces":                   {"--set", "otlp.tracesEndpoint=http://otel-collector.observability.svc:4318/v1/traces"},
	"pod-monitor":                   {"--set", "components.pod-monitor=true"},
	"priority-class":                {"--set", "components.priority-class=true"},
	"prometheus-rules":              {"--set", "components.prometheus-rules=true"},
	"redaction-rules":               {"--set-file", "redactionRules=config/components/redaction-rules/rules.yaml"},
	"secrets":                       {"--set", "components.secrets=true"},
}

// addressOverlay sets the address of the agent's control plane, as docs/operating.md describes it.
const addressOverlay = `
configMapGenerator:
- name: threeport-agent
  behavior: merge
  literals: ['THREEPORT_API_SERVER=https://threeport.example.org']
`

func chartCases() []chartCase {
	const postgres = "config/controlplane-postgres"
	usePostgres := []string{"--set", "database=postgres"}
	cases := []chartCase{
		{name: "agent", chart: agentChart},
		{
			name: "agent/threeport", chart: agentChart, base: "config/threeport",
			values: []string{"--set", "components.all-kinds=true,components.secrets=true"},
		},
		{name: "agent/no CRD", chart: agentChart, overlay: noCRDOverlay, values: []string{"--set", "crds.install=false"}},
		{name: "agent/namespace", chart: agentChart, namespace: "elsewhere"},
		{
			name: "agent/all components", chart: agentChart,
			components: []string{"all-kinds", "secrets", "network-policy", "priority-class", "agent-token", "health-rules", "redaction-rules", "event-filters", "config-file"},
			overlay:    addressOverlay,
		},
		{name: "agent/options", chart: agentChart, overlay: podOptionsOverlay + agentOptionsOverlay, valuesFile: podOptionsValues + agentOptionsValues},
		{name: "agent/traces", chart: agentChart, overlay: agentTracesOverlay, valuesFile: agentTracesValues},
		{name: "controlplane/traces", chart: controlPlaneChart, overlay: controlPlaneTracesOverlay, valuesFile: controlPlaneTracesValues},
		{name: "controlplane", chart: controlPlaneChart},
		{name: "controlplane/postgres", chart: controlPlaneChart, base: postgres, values: usePostgres},
		{name: "controlplane/namespace", chart: controlPlaneChart, namespace: "elsewhere"},
		{
			name: "controlplane/all components", chart: controlPlaneChart, base: postgres,
			components: []string{"controlplane-network-policy", "priority-class"}, values: usePostgres,
		},
		{
			name: "controlplane/options", chart: controlPlaneChart, base: postgres, overlay: podOptionsOverlay + controlPlaneOptionsOverlay,
			valuesFile: podOptionsValues + controlPlaneOptionsValues, values: usePostgres,
		},
		{name: "controlplane/OTLP", chart: controlPlaneChart, overlay: otlpOverlay, valuesFile: otlpValues},
		{name: "controlplane/volume", chart: controlPlaneChart, overlay: volumeOverlay, valuesFile: volumeValues},
	}
	for component := range componentValues {
		one := chartCase{name: "component/" + component, chart: agentChart, components: []string{component}}
		switch component {
		case "controlplane-network-policy", "controlplane-otlp-logs", "controlplane-otlp-traces", "controlplane-prometheus-rules", "controlplane-service-monitor":
			one.chart = controlPlaneChart
		case "agent-token":
			one.overlay = addressOverlay
		}
		cases = append(cases, one)
	}
	return append(cases, chartCase{name: "controlplane/priority-class", chart: controlPlaneChart, components: []string{"priority-class"}})
}

// Options of pods that both charts have, as a patch of kustomize and as values.
const (
	podOptionsOverlay = `
patches:
- target: {kind: Deployment}
  patch: |
    - {op: replace, path: /spec/replicas, value: 3}
    - {op: add, path: /spec/template/metadata/annotations, value: {example.org/a: b}}
    - {op: add, path: /spec/template/metadata/labels/example.org~1c, value: d}
    - {op: add, path: /spec/template/spec/affinity, value: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution:
        {nodeSelectorTerms: [{matchExpressions: [{key: disk, operator: Exists}]}]}}}}
    - {op: add, path: /spec/template/spec/imagePullSecrets, value: [{name: registry}]}
    - {op: add, path: /spec/template/spec/nodeSelector/pool, value: system}
    - {op: add, path: /spec/template/spec/priorityClassName, value: system-cluster-critical}
    - {op: add, path: /spec/template/spec/tolerations, value: [{key: system, operator: Exists}]}
    - {op: add, path: /spec/template/spec/topologySpreadConstraints, value: [{maxSkew: 1, topologyKey: rack, whenUnsatisfiable: DoNotSchedule,
        labelSelector: {matchLabels: {example.org/c: d}}}]}
    - {op: add, path: /spec/template/spec/volumes/-, value: {name: extra, secret: {secretName: extra}}}
    - {op: add, path: /spec/template/spec/containers/0/volumeMounts/-, value: {name: extra, mountPath: /extra, readOnly: true}}
    - {op: add, path: /spec/template/spec/containers/0/args/-, value: --version}
    - {op: replace, path: /spec/template/spec/containers/0/imagePullPolicy, value: Always}
    - {op: replace, path: /spec/template/spec/containers/0/resources, value: {requests: {cpu: "1", memory: 96Mi}, limits: {memory: 1Gi}}}
- target: {kind: ServiceAccount}
  patch: |
    - {op: add, path: /metadata/annotations, value: {example.org/role: reader}}
`
	podOptionsValues = `
replicas: 3
podAnnotations: {example.org/a: b}
podLabels: {example.org/c: d, app.kubernetes.io/name: ignored}
affinity:
  nodeAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      nodeSelectorTerms: [{matchExpressions: [{key: disk, operator: Exists}]}]
imagePullSecrets: [{name: registry}]
nodeSelector: {pool: system}
priorityClassName: system-cluster-critical
tolerations: [{key: system, operator: Exists}]
topologySpreadConstraints:
- {maxSkew: 1, topologyKey: rack, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {example.org/c: d}}}
extraVolumes: [{name: extra, secret: {secretName: extra}}]
extraVolumeMounts: [{name: extra, mountPath: /extra, readOnly: true}]
extraArgs: [--version]
resources: {requests: {cpu: "1", memory: 96Mi}, limits: {memory: 1Gi}}
serviceAccount: {annotations: {example.org/role: reader}}
`
	agentOptionsOverlay = `
- target: {kind: Deployment}
  patch: |
    - {op: test, path: /spec/template/spec/containers/0/env/1/name, value: GOMEMLIMIT}
    - {op: remove, path: /spec/template/spec/containers/0/env/1}
    - {op: add, path: /spec/template/spec/containers/0/env/-, value: {name: GOMEMLIMIT, value: 900MiB}}
    - {op: add, path: /spec/template/spec/containers/0/env/-, value: {name: HTTPS_PROXY, value: proxy.example.org}}
images:
- name: threeport-agent
  newName: registry.example.org/agent
  newTag: v1.2.3
` + addressOverlay
	agentOptionsValues = `
image: {repository: registry.example.org/agent, tag: v1.2.3, pullPolicy: Always}
extraEnv: [{name: GOMEMLIMIT, value: 900MiB}, {name: HTTPS_PROXY, value: proxy.example.org}]
threeportApiServer: https://threeport.example.org
`
	controlPlaneOptionsOverlay = `
- target: {kind: Service}
  patch: |
    - {op: add, path: /metadata/annotations, value: {example.org/balancer: internal}}
    - {op: add, path: /spec/type, value: LoadBalancer}
images:
- name: threeport-controlplane
  newName: registry.example.org/controlplane
  digest: sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
`
	controlPlaneOptionsValues = `
image:
  repository: registry.example.org/controlplane
  digest: sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
  pullPolicy: Always
service: {type: LoadBalancer, annotations: {example.org/balancer: internal}}
`
	agentTracesOverlay = `
patches:
- target: {kind: Deployment}
  patch: |
    - {op: add, path: /spec/template/spec/containers/0/args/-, value: "--otlp-traces-endpoint=https://collector.example.org:4318"}
    - {op: add, path: /spec/template/spec/containers/0/args/-, value: --otlp-traces-sample-ratio=0.5}
    - {op: add, path: /spec/template/spec/containers/0/args/-, value: --otlp-headers-file=/etc/threeport/otlp/headers}
    - {op: add, path: /spec/template/spec/containers/0/volumeMounts/-, value: {name: otlp-headers, mountPath: /etc/threeport/otlp, readOnly: true}}
    - {op: add, path: /spec/template/spec/volumes/-, value: {name: otlp-headers, secret: {secretName: traces}}}
`
	agentTracesValues = `otlp: {tracesEndpoint: "https://collector.example.org:4318", tracesSampleRatio: 0.5, headersSecret: traces}`

	controlPlaneTracesOverlay = `
patches:
- target: {kind: Deployment}
  patch: |
    - {op: add, path: /spec/template/spec/containers/0/args/-, value: "--otlp-traces-endpoint=https://collector.example.org:4318"}
    - {op: add, path: /spec/template/spec/containers/0/args/-, value: --otlp-headers-file=/etc/threeport/otlp/headers}
    - {op: add, path: /spec/template/spec/containers/0/volumeMounts/-, value: {name: otlp-headers, mountPath: /etc/threeport/otlp, readOnly: true}}
    - {op: add, path: /spec/template/spec/volumes/-, value: {name: otlp-headers, secret: {secretName: traces}}}
`
	controlPlaneTracesValues = `otlp: {tracesEndpoint: "https://collector.example.org:4318", headersSecret: traces}`

	noCRDOverlay = `
patches:
- patch: |
    apiVersion: apiextensions.k8s.io/v1
    kind: CustomResourceDefinition
    metadata: {name: threeportworkloads.control-plane.threeport.io}
    $patch: delete
`
	otlpOverlay = `
patches:
- target: {kind: Deployment}
  patch: |
    - {op: add, path: /spec/template/spec/containers/0/args/-, value: --otlp-logs-endpoint=https://logs.example.org/v1/logs}
    - {op: add, path: /spec/template/spec/containers/0/args/-, value: --otlp-headers-file=/etc/threeport/otlp/headers}
    - {op: add, path: /spec/template/spec/containers/0/volumeMounts/-, value: {name: otlp-headers, mountPath: /etc/threeport/otlp, readOnly: true}}
    - {op: add, path: /spec/template/spec/volumes/-, value: {name: otlp-headers, secret: {secretName: logs}}}
`
	otlpValues    = `otlp: {logsEndpoint: "https://logs.example.org/v1/logs", headersSecret: logs}`
	volumeOverlay = `
patches:
- target: {kind: PersistentVolumeClaim}
  patch: |
    - {op: replace, path: /spec/resources/requests/storage, value: 100Gi}
    - {op: add, path: /spec/storageClassName, value: fast}
`
	volumeValues = `volume: {size: 100Gi, storageClassName: fast}`
)

// TestCharts_RenderAsKustomize compares the objects of the charts with those of kustomize, for the defaults and for each option. Helm 3
// and Helm 4 have to render the same objects.
func TestCharts_RenderAsKustomize(t *testing.T) {
	t.Parallel()
	newChartTest(t) // builds the tools once
	for _, test := range chartCases() {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := newChartTest(t)
			want := c.parse(hashedName.ReplaceAllString(c.kustomized(test), "$1\n"))
			delete(want, "Namespace "+test.targetNamespace()) // Helm needs it before it installs a chart.
			for _, helm := range []string{c.helm4, c.helm3} {
				got := c.parse(c.rendered(helm, test))
				c.takeChartAnnotations(got)
				c.expectEqual(helm, got, want)
			}
		})
	}
}

// TestCharts_HaveAllComponents fails for a new component that the charts do not have.
func TestCharts_HaveAllComponents(t *testing.T) {
	folders, err := os.ReadDir("../../config/components")
	if err != nil {
		t.Fatalf("list the components: %v", err)
	}
	for _, folder := range folders {
		if componentValues[folder.Name()] == nil {
			t.Errorf("config/components/%s has no values in the charts: add them, and a line to componentValues", folder.Name())
		}
	}
	if len(folders) != len(componentValues) {
		t.Errorf("config/components has %d components, and componentValues %d", len(folders), len(componentValues))
	}
}

func (test chartCase) targetNamespace() string {
	if test.namespace != "" {
		return test.namespace
	}
	return test.chart.namespace
}

// hashedName is the name of the agent's ConfigMap, to which kustomize appends a hash of the content.
var hashedName = regexp.MustCompile(`(name: threeport-agent)-[a-z0-9]{10}\n`)

// kustomized builds an overlay of the case's base with its components.
func (c chartTest) kustomized(test chartCase) string {
	c.Helper()
	folder, err := filepath.EvalSymlinks(c.TempDir())
	if err != nil {
		c.Fatalf("find the folder of the overlay: %v", err)
	}
	root, err := cluster.SourceTree()
	if err != nil {
		c.Fatal(err)
	}
	relative, err := filepath.Rel(folder, root)
	if err != nil {
		c.Fatalf("find the source tree from the overlay: %v", err)
	}
	base := test.base
	if base == "" {
		base = test.chart.base
	}
	overlay := fmt.Sprintf("resources: [%s]\nnamespace: %s\n", filepath.Join(relative, base), test.targetNamespace())
	if len(test.components) > 0 {
		overlay += "components:\n"
		for _, component := range test.components {
			overlay += "- " + filepath.Join(relative, "config/components", component) + "\n"
		}
	}
	c.write(filepath.Join(folder, "kustomization.yaml"), overlay+test.overlay)
	return c.run(c.kustomize, "build", folder)
}

func (c chartTest) write(path, content string) {
	c.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		c.Fatal(err)
	}
}

// rendered renders the chart with the values of the case.
func (c chartTest) rendered(helm string, test chartCase) string {
	c.Helper()
	args := []string{"template", test.chart.name, test.chart.path(), "--namespace", test.targetNamespace()}
	for _, component := range test.components {
		args = append(args, componentValues[component]...)
	}
	if test.valuesFile != "" {
		path := filepath.Join(c.TempDir(), "values.yaml")
		c.write(path, test.valuesFile)
		args = append(args, "--values", path)
	}
	return c.run(helm, append(args, test.values...)...)
}

// parse returns the objects of a YAML stream by kind, namespace and name.
func (c chartTest) parse(stream string) map[string]unstructured.Unstructured {
	c.Helper()
	objects := map[string]unstructured.Unstructured{}
	for document := range strings.SplitSeq("\n"+stream, "\n---\n") {
		var object unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			c.Fatalf("parse an object: %v\n%s", err, document)
		}
		if len(object.Object) == 0 {
			continue
		}
		key := strings.TrimSpace(object.GetKind() + " " + object.GetNamespace() + " " + object.GetName())
		key = strings.Replace(key, "  ", " ", 1)
		if _, ok := objects[key]; ok {
			c.Fatalf("duplicate object %s", key)
		}
		objects[key] = object
	}
	if len(objects) == 0 {
		c.Fatal("there are no objects")
	}
	return objects
}

// takeChartAnnotations removes the annotations that only the charts have: those for Helm, and the checksum that replaces the hash in
// the name of the ConfigMap.
func (c chartTest) takeChartAnnotations(objects map[string]unstructured.Unstructured) {
	c.Helper()
	const policy, checksum = "helm.sh/resource-policy", "checksum/config"
	for key, object := range objects {
		policyWant := ""
		if kind := object.GetKind(); kind == "CustomResourceDefinition" || kind == "PersistentVolumeClaim" {
			policyWant = "keep"
		}
		if got := takeAnnotation(object.Object, policy, "metadata"); got != policyWant {
			c.Errorf("%s has the annotation %s=%q, want %q", key, policy, got, policyWant)
		}
		got := takeAnnotation(object.Object, checksum, "spec", "template", "metadata")
		if want := key == "Deployment "+object.GetNamespace()+" threeport-agent"; (len(got) == 64) != want {
			c.Errorf("the pods of %s have the annotation %s=%q; want one: %t", key, checksum, got, want)
		}
	}
}

// takeAnnotation removes an annotation from the metadata at a path and returns its value.
func takeAnnotation(object map[string]any, name string, metadata ...string) string {
	path := append(slices.Clone(metadata), "annotations")
	annotations, _, _ := unstructured.NestedStringMap(object, path...)
	value, ok := annotations[name]
	if !ok {
		return ""
	}
	unstructured.RemoveNestedField(object, append(slices.Clone(path), name)...)
	if len(annotations) == 1 {
		unstructured.RemoveNestedField(object, path...)
	}
	return value
}

func (c chartTest) expectEqual(helm string, got, want map[string]unstructured.Unstructured) {
	c.Helper()
	name := filepath.Base(helm)
	for key, object := range want {
		rendered, ok := got[key]
		if !ok {
			c.Errorf("%s renders no %s", name, key)
			continue
		}
		for _, difference := range differences(rendered.Object, object.Object, "") {
			c.Errorf("%s, %s%s", name, key, difference)
		}
	}
	for key := range got {
		if _, ok := want[key]; !ok {
			c.Errorf("%s renders %s, which kustomize does not build", name, key)
		}
	}
}

// differences returns the fields of two objects that differ.
func differences(got, want any, path string) []string {
	gotFields, ok := got.(map[string]any)
	wantFields, both := want.(map[string]any)
	if ok && both {
		return differentFields(gotFields, wantFields, path)
	}
	gotItems, ok := got.([]any)
	wantItems, both := want.([]any)
	if ok && both && len(gotItems) == len(wantItems) {
		var found []string
		for i, item := range wantItems {
			found = append(found, differences(gotItems[i], item, fmt.Sprintf("%s[%d]", path, i))...)
		}
		return found
	}
	if reflect.DeepEqual(got, want) {
		return nil
	}
	return []string{fmt.Sprintf("%s is\n\t%v, kustomize has\n\t%v", path, got, want)}
}

func differentFields(got, want map[string]any, path string) []string {
	var found []string
	for field, value := range want {
		found = append(found, differences(got[field], value, path+"."+field)...)
	}
	for field, value := range got {
		if _, ok := want[field]; !ok {
			found = append(found, fmt.Sprintf("%s.%s is %v, kustomize has no such field", path, field, value))
		}
	}
	return found
}

// TestCharts_Lint runs `helm lint`, which also validates the defaults with the schema.
func TestCharts_Lint(t *testing.T) {
	t.Parallel()
	c := newChartTest(t)
	for _, helm := range []string{c.helm4, c.helm3} {
		c.run(helm, "lint", "--strict", agentChart.path(), controlPlaneChart.path())
	}
}

// TestCharts_RefuseBadValues expects an error that names the key of a wrong value.
func TestCharts_RefuseBadValues(t *testing.T) {
	t.Parallel()
	c := newChartTest(t)
	for _, test := range []struct {
		reason string
		chart  chart
		values string
		want   []string
	}{
		{reason: "unknown value", chart: agentChart, values: "replica=2", want: []string{"replica", "not allowed"}},
		{reason: "unknown nested value", chart: agentChart, values: "image.name=x", want: []string{"image", "name", "not allowed"}},
		{reason: "unknown component", chart: agentChart, values: "components.all-kind=true", want: []string{"components", "all-kind", "not allowed"}},
		{reason: "component of another chart", chart: controlPlaneChart, values: "components.secrets=true", want: []string{"components", "secrets", "not allowed"}},
		{reason: "text as boolean", chart: agentChart, values: "crds.install=maybe", want: []string{"crds", "install", "boolean"}},
		{reason: "empty address", chart: agentChart, values: "threeportApiServer=", want: []string{"threeportApiServer"}},
		{reason: "token over HTTP", chart: agentChart, values: "components.agent-token=true", want: []string{"threeportApiServer", "https://"}},
		{reason: "flag without dashes", chart: agentChart, values: "extraArgs={leader-elect=false}", want: []string{"extraArgs", "0", "^--"}},
		{reason: "unnamed variable", chart: agentChart, values: "extraEnv[0].value=x", want: []string{"extraEnv", "0", "name"}},
		{reason: "tag as digest", chart: agentChart, values: "image.digest=v1", want: []string{"image", "digest", "sha256"}},
		{reason: "unknown database", chart: controlPlaneChart, values: "database=mysql", want: []string{"database", "sqlite", "postgres"}},
		{reason: "SQLite replicas", chart: controlPlaneChart, values: "replicas=2", want: []string{"replicas", "maximum"}},
		{reason: "unknown volume value", chart: controlPlaneChart, values: "volume.class=fast", want: []string{"volume", "class", "not allowed"}},
	} {
		for _, helm := range []string{c.helm4, c.helm3} {
			_, err := c.try(helm, "template", "x", test.chart.path(), "--set", test.values)
			if _, failed := errors.AsType[*exec.ExitError](err); !failed {
				c.Errorf("%s: %s renders the chart with %s: %v", test.reason, filepath.Base(helm), test.values, err)
				continue
			}
			_, message, _ := strings.Cut(err.Error(), "\n")
			for _, want := range test.want {
				if !strings.Contains(message, want) {
					c.Errorf("%s: the error of %s does not have %q:\n%s", test.reason, filepath.Base(helm), want, message)
				}
			}
		}
	}
}

// TestCharts_Package packages the charts as `make charts`. The version in a chart is a semantic version, and the image has the tag
// and the registry of the release.
func TestCharts_Package(t *testing.T) {
	t.Parallel()
	c := newChartTest(t)
	for _, test := range []struct {
		version, registry    string
		chartVersion, images string
	}{
		{version: "v1.2.3", registry: "registry.example.org/team", chartVersion: "1.2.3", images: "registry.example.org/team/%s:v1.2.3"},
		{version: "v1.2.3-4-g01ab2cd", chartVersion: "1.2.3-4-g01ab2cd", images: "%s:v1.2.3-4-g01ab2cd"},
		{version: "0123456", chartVersion: "0.0.0-git-0123456", images: "%s:0123456"},
	} {
		folder := c.TempDir()
		c.run("hack/charts/package.sh", test.version, test.registry, folder, c.helm4)
		for _, chart := range []chart{agentChart, controlPlaneChart} {
			rendered := c.run(c.helm3, "template", "x", filepath.Join(folder, chart.name+"-"+test.chartVersion+".tgz"))
			if want := "image: " + fmt.Sprintf(test.images, chart.name) + "\n"; !strings.Contains(rendered, want) {
				c.Errorf("version %s: the package of %s does not have %q", test.version, chart.name, want)
			}
		}
	}
}
