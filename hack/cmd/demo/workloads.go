package main

import (
	"context"
	"embed"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
)

// The manifests work on real and fake nodes. On a real node containers run internal/e2e/behave, whose flags define the failure.
// On fake nodes an annotation defines it; see internal/e2e/cluster/stages. Both define the same failure.
//
//go:embed manifests
var manifests embed.FS

// namespace is the namespace of the workloads' objects.
const namespace = "demo"

// Placeholders of the manifests, replaced when the objects are created. The registered definitions keep them.
const (
	instanceIDPlaceholder = "$INSTANCE_ID"
	passwordPlaceholder   = "$PASSWORD"
)

// The final statuses of the workloads.
const (
	healthy = "Healthy"
	down    = "Down"
)

// hookAnnotation marks hooks of a Helm chart, which are not listed.
const hookAnnotation = "helm.sh/hook"

// workload is a workload of the demo with the expected reports. Its objects are in manifests/NAME.yaml.
type workload struct {
	name string
	typ  v1alpha1.WorkloadType
	// status is the expected status of the instance.
	status string
	// reasons are reasons of Events that must be reported.
	reasons []string
}

func workloads() []workload {
	return []workload{
		{
			name: "web", typ: v1alpha1.WorkloadTypeInstance, status: healthy,
			reasons: []string{"ScalingReplicaSet", "SuccessfulCreate", "Scheduled", "Started"},
		},
		{name: "image", typ: v1alpha1.WorkloadTypeInstance, status: down, reasons: []string{"Scheduled", "Pulling", "Failed", "BackOff"}},
		{name: "crash", typ: v1alpha1.WorkloadTypeInstance, status: down, reasons: []string{"Started", "BackOff"}},
		{name: "db", typ: v1alpha1.WorkloadTypeInstance, status: healthy, reasons: []string{"SuccessfulCreate", "Started"}},
		{name: "report", typ: v1alpha1.WorkloadTypeInstance, status: healthy, reasons: []string{"SuccessfulCreate", "Started", "Completed"}},
		{name: "custom", typ: v1alpha1.WorkloadTypeInstance, status: healthy, reasons: []string{reasonReady, "ScalingReplicaSet", "Started"}},
		{name: "chart", typ: v1alpha1.WorkloadTypeHelmInstance, status: healthy, reasons: []string{"ScalingReplicaSet", "Scheduled", "Started"}},
	}
}

// deployed is a workload with its IDs in the control plane.
type deployed struct {
	workload
	upstream.Deployed
}

func (d deployed) helm() bool { return d.typ == v1alpha1.WorkloadTypeHelmInstance }

// deploy does the work of an upstream controller: it registers the workload, replaces the placeholders, creates the objects,
// and declares them to the agent.
func (w workload) deploy(ctx context.Context, up *upstream.Upstream, password string) (deployed, error) {
	d := deployed{workload: w}
	text, err := manifests.ReadFile("manifests/" + w.name + ".yaml")
	if err != nil {
		return d, fmt.Errorf("read manifests: %w", err)
	}
	templates, err := upstream.Parse(string(text))
	if err != nil {
		return d, err
	}
	d.Deployed, err = up.Register(ctx, upstream.Workload{Name: w.name, Type: w.typ, Objects: withoutHooks(templates)})
	if err != nil {
		return d, err
	}

	manifest := strings.NewReplacer(instanceIDPlaceholder, strconv.FormatInt(d.InstanceID, 10), passwordPlaceholder, password).Replace(string(text))
	objects, err := upstream.Parse(manifest)
	if err != nil {
		return d, err
	}
	for _, obj := range objects {
		if _, err := up.Create(ctx, obj); err != nil {
			return d, err
		}
	}
	return d, up.Declare(ctx, d.Deployed)
}

func withoutHooks(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, obj := range objects {
		if obj.GetAnnotations()[hookAnnotation] == "" {
			out = append(out, obj)
		}
	}
	return out
}
