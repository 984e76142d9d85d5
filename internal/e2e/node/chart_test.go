package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/threeport/threeport-agent/internal/e2e/helm"
	"github.com/threeport/threeport-agent/internal/e2e/operator"
)

// helmOfAgent runs the pinned Helm on the namespace of the agent.
type helmOfAgent struct {
	*operatorWorld
	program string
}

func newHelm(w *operatorWorld) helmOfAgent {
	w.Helper()
	program, err := helm.Build(w.Ctx, root, 4)
	w.Must(err)
	return helmOfAgent{w, program}
}

func (h helmOfAgent) try(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, h.program, append(args, "--namespace", operator.Namespace, "--kubeconfig", shared.cluster.Kubeconfig())...)
	home := h.TempDir() // Helm neither reads nor writes the user's configuration.
	cmd.Env = append(os.Environ(), helm.Environment(home)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("helm %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// release runs Helm with a release of the chart, and waits for the rollout.
func (h helmOfAgent) release(command string, args ...string) {
	h.Helper()
	chart := filepath.Join(root, "config", "charts", operator.Name)
	h.Must(h.try(h.Ctx, append([]string{command, operator.Name, chart}, args...)...))
	h.Must(shared.operator.AwaitRollout(h.Ctx))
	h.Eventually("exactly one agent", func() error { return h.agentCount(1) })
}

// TestOperator_Chart_LosesNothing replaces the kustomization by a release of the chart, and upgrades, uninstalls and installs that.
func TestOperator_Chart_LosesNothing(t *testing.T) {
	w := newWorld(t)
	h := newHelm(w)
	d := w.deploy("web", web)
	w.ExpectStatus(d, "Healthy")
	t.Cleanup(func() {
		ctx := context.WithoutCancel(w.Ctx)
		err := h.try(ctx, "uninstall", operator.Name, "--ignore-not-found", "--wait")
		w.Must(errors.Join(err, shared.operator.Apply(ctx)))
		w.Eventually("exactly one agent", func() error { return w.agentCount(1) })
	})
	expectAgreement := func() {
		t.Helper()
		w.ExpectStatus(d, "Healthy")
		w.awaitAgreement(d)
		noMissingPermission(w)
	}

	stop := w.churn()
	h.release("install", append(operator.ChartValues(), "--take-ownership", "--force-conflicts")...)
	h.release("upgrade", "--force-conflicts", "--reset-then-reuse-values", "--set", "extraArgs={--cluster-name=node}")
	stop()
	expectAgreement()

	w.Must(h.try(w.Ctx, "uninstall", operator.Name, "--wait"))
	w.agents(0)
	w.churn()()
	h.release("install", operator.ChartValues()...)
	expectAgreement()
}
