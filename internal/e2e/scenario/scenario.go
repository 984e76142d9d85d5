package scenario

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"

	"github.com/threeport/threeport-agent/internal/e2e/scenario/recording"
)

//go:embed manifests
var manifests embed.FS

// The statuses of a workload in the control plane. Package health defines the same; it is not imported, because its tests use
// the recordings of these scenarios.
const (
	Healthy     = "Healthy"
	Reconciling = "Reconciling"
	Unhealthy   = "Unhealthy"
	Down        = "Down"
	Unknown     = "Unknown"
)

// Scenario is a workload with its moments.
type Scenario struct {
	// Name is the name of the manifest.
	Name string
	// Steps are played in this order.
	Steps []Step
	// Node is set if the steps act on the node. Nothing else may run on the node at that time.
	Node bool
	// Second is the second of a minute at which to deploy a workload that depends on the clock; else 0.
	Second int
	// Operator is set for a workload of custom resources.
	Operator *Operator
}

// Operator is the operator that reconciles the custom resources of a scenario.
type Operator struct {
	// Manifests has NAME.yaml for each of its scenarios.
	Manifests fs.FS
	// Resources are the recorded custom resources.
	Resources []recording.Resource
	// Versions are the programs with their versions, such as "cert-manager v1.21.2".
	Versions string
}

// Step is an action on a workload, and the moment that follows.
type Step struct {
	// Moment is the name of the recording; empty for none.
	Moment string
	// Doc describes the moment in a sentence.
	Doc string
	// Do is the action; nil for none.
	Do func(ctx context.Context, env Env) error
	// Reached returns nil at the moment.
	Reached Check
	// Within is how long that may take; 0 for pollTimeout.
	Within time.Duration
	// Status is the expected status of the workload. Reason is the expected reason: empty if the workload is healthy, or if
	// several reasons are right.
	Status, Reason string
	// Parts are the expected statuses of the custom resources.
	Parts []Part
}

// Part is a custom resource with the status that a user would give it.
type Part struct {
	Kind, Name, Status string
}

// ErrNotObserved means that a moment was not observed. A busy machine may miss a short moment, and most moments occur once.
var ErrNotObserved = errors.New("the moment was not observed")

// Check returns nil if a snapshot has the wanted content, else an error that names the difference.
type Check func(at recording.Snapshot) error

// Env is the environment of a scenario.
type Env struct {
	Client    dynamic.Interface
	Namespace string
	// Node is the real node. Only scenarios that act on it need it.
	Node Node
	// Addresses are the addresses in manifests, and those of this run in their place. Recordings have the former.
	Addresses map[string]string
}

// Node has the actions of scenarios on the real node.
type Node interface {
	// Name returns the name of the Node object.
	Name() string
	// StopKubelet ends the kubelet; containers go on.
	StopKubelet(ctx context.Context) error
	// StartKubelet starts the kubelet again.
	StartKubelet(ctx context.Context) error
}

// The interval and the limit of waiting for a moment. The limit is longer than any moment takes on a slow and busy machine.
const (
	pollInterval = 500 * time.Millisecond
	pollTimeout  = 5 * time.Minute
)

// Take takes a snapshot with the content of the scenario's recordings.
func (s Scenario) Take(ctx context.Context, env Env) (recording.Snapshot, error) {
	scope := recording.Scope{Namespace: env.Namespace, Addresses: map[string]string{}}
	if s.Node {
		scope.Nodes = []string{env.Node.Name()}
	}
	if s.Operator != nil {
		scope.Also = s.Operator.Resources
	}
	for inManifest, here := range env.Addresses {
		scope.Addresses[here] = inManifest
	}
	return recording.Take(ctx, env.Client, scope)
}

// manifest returns the text of the workload's manifest.
func (s Scenario) manifest() ([]byte, error) {
	if s.Operator != nil {
		return fs.ReadFile(s.Operator.Manifests, s.Name+".yaml")
	}
	return manifests.ReadFile("manifests/" + s.Name + ".yaml")
}

// Objects returns the workload's objects, to be created in their order.
func (s Scenario) Objects(env Env) ([]*unstructured.Unstructured, error) {
	text, err := s.manifest()
	if err != nil {
		return nil, fmt.Errorf("scenario %s: %w", s.Name, err)
	}
	var addresses []string
	for inManifest, here := range env.Addresses {
		addresses = append(addresses, inManifest, here)
	}
	var out []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(strings.NewReplacer(addresses...).Replace(string(text))), 4096); ; {
		obj := &unstructured.Unstructured{}
		err := decoder.Decode(&obj.Object)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("scenario %s: %w", s.Name, err)
		}
		obj.SetNamespace(env.Namespace)
		if target, ok := obj.Object["spec"].(map[string]any); ok && target["targetNamespace"] != nil {
			target["targetNamespace"] = env.Namespace
		}
		out = append(out, obj)
	}
}

// Doc describes the workload. It is the comment at the head of the manifest.
func (s Scenario) Doc() string {
	text, _ := s.manifest()
	head, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSpace(strings.TrimPrefix(head, "#"))
}

// Comment returns the head of a moment's recording.
func Comment(s Scenario, step Step) string {
	target := "record-fixtures"
	if s.Operator != nil {
		target = "record-operators"
	}
	lines := []string{s.Doc(), step.Doc, fmt.Sprintf("A user would call it %s. Written by make %s: do not edit.", step.Status, target)}
	for _, p := range step.Parts {
		lines = append(lines, fmt.Sprintf("A user would call %s %s %s.", p.Kind, p.Name, p.Status))
	}
	if s.Operator != nil {
		lines = append(lines, "The status is of "+s.Operator.Versions+".")
	}
	return strings.Join(lines, "\n")
}

// AwaitSecond waits until it is time to deploy the workload.
func (s Scenario) AwaitSecond(ctx context.Context) error {
	if s.Second == 0 {
		return nil
	}
	second := time.Duration(s.Second) * time.Second
	next := time.Now().Add(-second).Truncate(time.Minute).Add(time.Minute + second)
	timer := time.NewTimer(time.Until(next))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Play executes the steps of a scenario whose objects exist. At each moment with a name it calls a function, and continues
// when the function has returned.
func (s Scenario) Play(ctx context.Context, env Env, seen func(context.Context, Step, recording.Snapshot) error) error {
	for i, step := range s.Steps {
		name := step.Moment
		if name == "" {
			name = fmt.Sprintf("step %d", i+1)
		}
		if step.Do != nil {
			if err := step.Do(ctx, env); err != nil {
				return fmt.Errorf("scenario %s, %s: %w", s.Name, name, err)
			}
		}
		at, err := s.await(ctx, env, step)
		if err != nil {
			return fmt.Errorf("scenario %s, wait for %s: %w: %w", s.Name, name, ErrNotObserved, err)
		}
		if step.Moment == "" {
			continue
		}
		if err := seen(ctx, step, at); err != nil {
			return fmt.Errorf("scenario %s, at %s: %w", s.Name, name, err)
		}
	}
	return nil
}

// await takes snapshots until the moment of a step.
func (s Scenario) await(ctx context.Context, env Env, step Step) (at recording.Snapshot, err error) {
	err = poll(ctx, cmp.Or(step.Within, pollTimeout), func() error {
		if at, err = s.Take(ctx, env); err != nil {
			return err
		}
		return step.Reached(at)
	})
	return at, err
}

// poll repeats a function until it returns no error, or until a limit.
func poll(ctx context.Context, within time.Duration, ask func() error) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		err := ask()
		if err == nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("%w; last: %w", ctx.Err(), err)
		}
	}
}
