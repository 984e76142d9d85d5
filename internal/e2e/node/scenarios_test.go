package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/e2e/operator"
	"github.com/threeport/threeport-agent/internal/e2e/oracle"
	"github.com/threeport/threeport-agent/internal/e2e/scenario"
	"github.com/threeport/threeport-agent/internal/e2e/scenario/recording"
	"github.com/threeport/threeport-agent/internal/e2e/upstream"
	"github.com/threeport/threeport-agent/internal/e2e/world"
)

// The number of scenarios at a time. They keep the machine busy only at their start, and then mostly wait.
const scenariosAtATime = 10

// scenarioLimit is long enough for every scenario that does not hang.
const scenarioLimit = 30 * time.Minute

// The limit of attempts of a scenario. It is repeated if a moment passed unobserved, which proves nothing.
const plays = 3

// The control plane must show a moment before it ends; for lasting moments world.Timeout is the limit. docs/measurements.md has
// the measured delays.
const (
	showEvery = 200 * time.Millisecond
	showFor   = 2 * time.Second // at least; a shorter time does not count
)

// TestScenarios plays each scenario, and compares the status in the control plane with the expected status of each moment.
func TestScenarios(t *testing.T) {
	t.Parallel()
	all := playedScenarios(t)
	results := map[string]chan error{}
	for _, s := range all {
		results[s.Name] = make(chan error, 1)
	}
	run := func(s scenario.Scenario) {
		ctx, cancel := context.WithTimeout(t.Context(), scenarioLimit)
		defer cancel()
		begin := time.Now()
		err := runScenario(ctx, s)
		t.Logf("scenario %s took %s", s.Name, time.Since(begin).Round(time.Second))
		results[s.Name] <- err
	}
	// Parallel subtests are limited to the number of processors, but scenarios mostly wait.
	var running errgroup.Group
	running.Go(func() error {
		var together errgroup.Group
		together.SetLimit(scenariosAtATime)
		for _, s := range longestFirst(all) {
			if !s.Node {
				together.Go(func() error { run(s); return nil })
			}
		}
		_ = together.Wait() // the results have the errors
		for _, s := range all {
			if s.Node {
				run(s)
			}
		}
		return nil
	})
	for _, s := range all {
		t.Run(s.Name, func(t *testing.T) {
			if err := <-results[s.Name]; err != nil {
				t.Error(err)
			}
		})
	}
	_ = running.Wait() // the functions return no error
}

// shortScenarios are those that -short plays: one of each kind of failure.
var shortScenarios = []string{
	"crash-later", "oom-at-once", "image-pull", "secret-key", "init-failing", "rollout", "statefulset", "unschedulable", "node-gone",
	"terminating", "job-failed", "cronjob-failing", "readiness-lost",
}

func playedScenarios(t *testing.T) []scenario.Scenario {
	t.Helper()
	all := scenario.All()
	if !testing.Short() {
		return all
	}
	short := slices.DeleteFunc(all, func(s scenario.Scenario) bool { return !slices.Contains(shortScenarios, s.Name) })
	if len(short) != len(shortScenarios) {
		t.Fatalf("%d of the short scenarios exist, want %d", len(short), len(shortScenarios))
	}
	return short
}

// longestFirst sorts scenarios by the longest limit of their moments: one takes as long as all the others together.
func longestFirst(all []scenario.Scenario) []scenario.Scenario {
	limit := func(s scenario.Scenario) (longest time.Duration) {
		for _, step := range s.Steps {
			longest = max(longest, step.Within)
		}
		return longest
	}
	return slices.SortedStableFunc(slices.Values(all), func(a, b scenario.Scenario) int { return cmp.Compare(limit(b), limit(a)) })
}

// runScenario plays a scenario until all its moments were observed.
func runScenario(ctx context.Context, s scenario.Scenario) error {
	for play := 1; ; play++ {
		err := playScenario(ctx, s, fmt.Sprintf("scenario-%s-%d", s.Name, play))
		if play == plays || ctx.Err() != nil || !errors.Is(err, scenario.ErrNotObserved) {
			return err
		}
	}
}

// playScenario deploys a scenario's workload, and compares each moment. It returns ErrNotObserved only if there is no other error.
func playScenario(ctx context.Context, s scenario.Scenario, namespace string) (err error) {
	client, err := dynamic.NewForConfig(shared.cluster.Config())
	if err != nil {
		return err
	}
	env := scenario.Env{Client: client, Namespace: namespace, Node: scenario.ClusterNode{Cluster: shared.cluster}}
	if err := env.Prepare(ctx); err != nil {
		return err
	}
	objects, err := s.Objects(env)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(objects, func(obj *unstructured.Unstructured) bool { return obj.GetKind() == "Secret" }) {
		if err := permitSecrets(ctx); err != nil {
			return err
		}
	}
	d, err := shared.upstream.Deploy(ctx, upstream.Workload{
		Name: env.Namespace, Type: v1alpha1.WorkloadTypeInstance, Objects: objects,
	})
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), world.Timeout)
		defer cancel()
		err = errors.Join(err, shared.upstream.Delete(ctx, d), env.Remove(ctx))
	}()
	var wrong []error
	err = s.Play(ctx, env, func(ctx context.Context, step scenario.Step, _ recording.Snapshot) error {
		err := expectShown(ctx, s, step, env, d)
		if errors.Is(err, scenario.ErrNotObserved) {
			return err
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", step.Moment, err))
		}
		return ctx.Err()
	})
	switch {
	case len(wrong) > 0 && err != nil:
		return fmt.Errorf("%w\n%s", errors.Join(wrong...), err.Error())
	case err != nil:
		return err
	}
	agree, cancel := context.WithTimeout(ctx, world.Timeout)
	defer cancel()
	return errors.Join(append(wrong, shared.oracle.AwaitOnly(agree, shared.api, []oracle.Expected{{Deployed: d}}))...)
}

// permitSecrets installs the component secrets, and waits until the agent may watch Secrets.
func permitSecrets(ctx context.Context) error {
	if _, err := shared.upstream.InstallComponent(ctx, root, "secrets"); err != nil {
		return err
	}
	agent := "--as=system:serviceaccount:" + operator.Namespace + ":" + operator.Name
	var last error
	err := wait.PollUntilContextTimeout(ctx, showEvery, world.Timeout, true, func(ctx context.Context) (bool, error) {
		_, last = shared.operator.Kubectl(ctx, "auth", "can-i", "watch", "secrets", "--all-namespaces", agent)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait for the permission to watch Secrets: %w", last)
	}
	return nil
}

// expectShown waits until the control plane has shown a moment for a while. It returns ErrNotObserved if the moment ended before
// that.
func expectShown(ctx context.Context, s scenario.Scenario, step scenario.Step, env scenario.Env, d upstream.Deployed) error {
	deadline := time.NewTimer(world.Timeout)
	defer deadline.Stop()
	ticker := time.NewTicker(showEvery)
	defer ticker.Stop()
	since := time.Now()
	for {
		err := shows(ctx, step, d)
		if err != nil {
			since = time.Now()
		} else if time.Since(since) >= showFor {
			return nil
		}
		at, over := s.Take(ctx, env)
		if over == nil {
			over = step.Reached(at)
		}
		switch {
		case over == nil:
		case err == nil: // the control plane showed the status, but the moment was too short
			return fmt.Errorf("%w for %s before the moment ended: %w", scenario.ErrNotObserved, showFor, over)
		default:
			return fmt.Errorf("the control plane did not show the status before the moment ended: %w", errors.Join(err, over))
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-deadline.C:
			return cmp.Or(err, fmt.Errorf("the control plane shows %s only for short times", step.Status))
		}
	}
}

// flaps is part of the message of a ThreeportWorkload whose status changes all the time.
const flaps = "changes in 10 min"

// shows returns nil if the control plane shows a status, and the ThreeportWorkload the reason.
func shows(ctx context.Context, step scenario.Step, d upstream.Deployed) error {
	got, err := shared.api.Status(ctx, upstream.WorkloadInstances, d.InstanceID)
	if err != nil {
		return err
	}
	reason, err := workloadReason(ctx, d.Name)
	if err != nil {
		return err
	}
	want := step.Status
	if want == scenario.Down && strings.Contains(reason, flaps) {
		want = scenario.Unhealthy
	}
	if got != want {
		return fmt.Errorf("the control plane shows %q because of %q, want %s", got, reason, want)
	}
	if !strings.Contains(reason, step.Reason) {
		return fmt.Errorf("the control plane shows %s because of %q, want the reason %s", got, reason, step.Reason)
	}
	return nil
}

// workloadReason returns the reason and the message in the status of a ThreeportWorkload.
func workloadReason(ctx context.Context, name string) (string, error) {
	client, err := dynamic.NewForConfig(shared.cluster.Config())
	if err != nil {
		return "", err
	}
	workload, err := client.Resource(v1alpha1.GroupVersion.WithResource("threeportworkloads")).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("get ThreeportWorkload %s: %w", name, err)
	}
	reason, _, err := unstructured.NestedString(workload.Object, "status", "reason")
	if err != nil {
		return "", err
	}
	message, _, err := unstructured.NestedString(workload.Object, "status", "message")
	return reason + ": " + message, err
}
