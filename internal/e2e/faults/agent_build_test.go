package faults

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/threeport/threeport-agent/api/v1alpha1"
	"github.com/threeport/threeport-agent/internal/e2e/cluster/cgroup"
	"github.com/threeport/threeport-agent/internal/e2e/process"
	"github.com/threeport/threeport-agent/internal/e2e/world"
)

var asShipped = flag.Bool("as-shipped", false,
	"run the agent without the race detector, with the bounds and the memory limit that config/manager gives it (Linux, root)")

// agentBuild is a build of the agent with its limits and flags.
type agentBuild struct {
	binary     string
	env, flags []string
	maxMemory  int64 // the cap in bytes
	confined   bool  // the kernel enforces it
}

// buildAgent builds the agent with the race detector, which takes several times the memory, or for production.
func buildAgent(ctx context.Context, dir string) (agentBuild, error) {
	if !*asShipped {
		binary, err := process.Build(ctx, root, "./cmd/agent", dir, "-race")
		return agentBuild{binary: binary, maxMemory: 1 << 30}, err
	}
	out, err := shippedBounds()
	if err == nil {
		out.binary, err = process.Build(ctx, root, "./cmd/agent", dir)
	}
	return out, err
}

// shippedBounds reads the memory limits and the number of processors of the agent from its Deployment.
func shippedBounds() (agentBuild, error) {
	manifest, err := os.ReadFile(filepath.Join(root, "config", "manager", "deployment.yaml"))
	if err != nil {
		return agentBuild{}, err
	}
	var deployment appsv1.Deployment
	if err := yaml.UnmarshalStrict(manifest, &deployment); err != nil {
		return agentBuild{}, fmt.Errorf("read the agent's Deployment: %w", err)
	}
	containers := deployment.Spec.Template.Spec.Containers
	if len(containers) != 1 {
		return agentBuild{}, fmt.Errorf("the agent's Deployment has %d containers, expected one", len(containers))
	}
	out := agentBuild{maxMemory: containers[0].Resources.Limits.Memory().Value(), confined: true}
	for _, arg := range containers[0].Args {
		if strings.HasPrefix(arg, "--state-max-bytes=") {
			out.flags = append(out.flags, arg)
		}
	}
	for _, env := range containers[0].Env {
		if slices.Contains([]string{"GOMEMLIMIT", "GOGC", "GOMAXPROCS"}, env.Name) {
			out.env = append(out.env, env.Name+"="+env.Value)
		}
	}
	if out.maxMemory == 0 || len(out.flags) != 1 || len(out.env) != 3 {
		return agentBuild{}, errors.New("the agent's Deployment does not have a memory limit, --state-max-bytes, GOMEMLIMIT, GOGC and GOMAXPROCS, once each")
	}
	return out, nil
}

var groups atomic.Int64

// command returns the agent's command for one process. A control group enforces the memory limit as in a pod: the kernel kills
// a process that exceeds it. The test fails at its end then.
func (e agentBuild) command(w *world.World) world.Command {
	w.Helper()
	if !e.confined {
		return world.Command{Path: e.binary, Env: e.env, Args: e.flags}
	}
	name := fmt.Sprintf("threeport-faults-%d-%d", os.Getpid(), groups.Add(1))
	w.Must(cgroup.Create(name))
	w.Cleanup(func() {
		if err := cgroup.Remove(name, 10*time.Second); err != nil {
			w.Error(err)
		}
	})
	dir, kills := filepath.Join("/sys/fs/cgroup", name), "memory.events"
	err := os.WriteFile(filepath.Join(dir, "memory.max"), fmt.Append(nil, e.maxMemory), 0)
	if errors.Is(err, os.ErrNotExist) { // version 1
		dir, kills = filepath.Join("/sys/fs/cgroup/memory", name), "memory.oom_control"
		err = os.WriteFile(filepath.Join(dir, "memory.limit_in_bytes"), fmt.Append(nil, e.maxMemory), 0)
	}
	if err != nil {
		w.Fatalf("limit the agent's memory: %v", err)
	}
	w.Cleanup(func() {
		if text, err := os.ReadFile(filepath.Join(dir, kills)); err != nil || !slices.Contains(strings.Split(string(text), "\n"), "oom_kill 0") {
			w.Errorf("the agent exceeded %d MiB of memory: %v\n%s", e.maxMemory>>20, err, text)
		}
	})
	enter := []string{"-c", `echo $$ >"$0" && exec "$@"`, filepath.Join(dir, "cgroup.procs"), e.binary}
	return world.Command{Path: "/bin/sh", Env: e.env, Args: append(enter, e.flags...)}
}

// newWorldToMeasure returns a world with a cluster of its own. Its agent is built for production and has the shipped GOMEMLIMIT, but no
// control group: the test measures its memory.
func newWorldToMeasure(t *testing.T, flags ...string) *faultWorld {
	t.Helper()
	w, launch := newIdleWorldToMeasure(t, flags...)
	launch()
	w.AwaitAgent(w.Ctx, w.agent)
	return w
}

// newIdleWorldToMeasure returns such a world without an agent, and a function that starts it.
func newIdleWorldToMeasure(t *testing.T, flags ...string) (w *faultWorld, launch func()) {
	t.Helper()
	build, err := shippedBounds()
	if err != nil {
		t.Fatal(err)
	}
	if build.binary, err = process.Build(t.Context(), root, "./cmd/agent", t.TempDir()); err != nil {
		t.Fatal(err)
	}
	build.confined = false
	w = newWorldOn(t, ownCluster(t))
	return w, func() {
		w.Helper()
		w.agent = w.LaunchAgent(build.command(w.World), slices.Concat(w.protocol.agent, []string{
			"--kubeconfig=" + w.kubeconfig(w.toCluster.Listen), "--threeport-api-server=" + w.toAPI.Listen, "--state-dir=" + filepath.Join(t.TempDir(), "state"),
		}, flags)...)
	}
}

// declareAll creates objects and a ThreeportWorkload that lists them.
func (w *faultWorld) declareAll(objects []*unstructured.Unstructured) {
	w.Helper()
	var resources []string
	for i, obj := range objects {
		w.CreateObject(obj)
		resources = append(resources, fmt.Sprintf("{version: v1, kind: %s, namespace: %s, name: %s, threeportID: %d}", obj.GetKind(), w.Namespace, obj.GetName(), i+1))
	}
	w.Create(fmt.Sprintf("{apiVersion: %s, kind: ThreeportWorkload, metadata: {name: %s}, spec: {workloadType: WorkloadInstance, workloadInstanceId: 1, workloadResourceInstances: [%s]}}",
		v1alpha1.GroupVersion, w.Namespace, strings.Join(resources, ", ")))
}

// expectPeakMemory fails the test if the agent took more bytes of memory at any time.
func (w *faultWorld) expectPeakMemory(most int64) {
	w.Helper()
	peak, err := process.PeakResidentBytes(w.agent.PID())
	w.Must(err)
	w.Logf("the agent took up to %d MiB", peak>>20)
	if peak > most {
		w.Errorf("the agent took %d MiB, want at most %d", peak>>20, most>>20)
	}
}
