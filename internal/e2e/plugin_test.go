package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/threeport/threeport-agent/internal/e2e/upstream"
)

// plugin returns a command of the kubectl plugin for the world's cluster. It ends with the test.
func (w *agentWorld) plugin(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(w.Ctx, shared.plugin, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+w.Cluster.Kubeconfig(), "KUBECACHEDIR="+w.cache, "NO_COLOR=1")
	return cmd
}

// exitOf runs a command, and returns its exit code and its output.
func exitOf(cmd *exec.Cmd) (code int, out string, err error) {
	text, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode(), string(text), nil
	}
	return 0, string(text), err
}

// expectPlugin waits until a command of the plugin exits with a code and prints a text.
func (w *agentWorld) expectPlugin(code int, text string, args ...string) {
	w.Helper()
	w.Eventually(fmt.Sprintf("kubectl threeport %v to exit with %d and print %q", args, code, text), func() error {
		got, out, err := exitOf(w.plugin(args...))
		if err == nil && (got != code || !strings.Contains(out, text)) {
			err = fmt.Errorf("it exits with %d and prints %s", got, out)
		}
		return err
	})
}

// statusRow is a part of the output of `status -o json`.
type statusRow struct {
	WorkloadInstanceID       json.Number
	WorkloadInstanceIDString string
	Since, NotHealthySince   time.Time
}

func (w *agentWorld) statusJSON(d upstream.Deployed) (row statusRow, err error) {
	w.Helper()
	_, out, err := exitOf(w.plugin("status", d.Name, "-o", "json"))
	if err != nil {
		return row, err
	}
	return row, json.Unmarshal([]byte(out), &row)
}
