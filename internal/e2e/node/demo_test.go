package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/threeport/threeport-agent/internal/e2e/operator"
	"github.com/threeport/threeport-agent/internal/e2e/process"
	"github.com/threeport/threeport-agent/internal/e2e/world"
)

// The demo's own timeout, and the limit of a whole demo with compilation and start. Both are long enough for every demo that
// does not hang. The first is shorter, so that the demo itself reports what is missing.
const (
	demoTimeout = 10 * time.Minute
	demoLimit   = 15 * time.Minute
)

// demo is a process of the demo with a real node.
type demo struct {
	*testing.T
	*process.Process
}

// buildDemo compiles the demo once for all tests.
var buildDemo = sync.OnceValues(func() (string, error) {
	return process.Build(context.Background(), filepath.Join(root, "hack"), "./cmd/demo", shared.dir)
})

func startDemo(t *testing.T, flags ...string) demo {
	t.Helper()
	binary, err := buildDemo()
	if err != nil {
		t.Fatal(err)
	}
	p, err := process.Start(binary, nil, append(flags, "--node=real", "--timeout="+demoTimeout.String()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("the demo printed:\n%s", p.Output())
		}
	})
	return demo{t, p}
}

func (d demo) waitFor(text string) {
	d.Helper()
	ctx, cancel := context.WithTimeout(d.Context(), demoLimit)
	defer cancel()
	if _, err := d.WaitFor(ctx, text); err != nil {
		d.Fatal(err)
	}
}

func (d demo) interrupt() {
	d.Helper()
	if err := syscall.Kill(d.PID(), syscall.SIGINT); err != nil {
		d.Fatal(err)
	}
}

// find returns the part of the demo's output that matches the group of a pattern.
func (d demo) find(pattern string) string {
	d.Helper()
	match := regexp.MustCompile(pattern).FindStringSubmatch(d.Output())
	if match == nil {
		d.Fatalf("the output of the demo does not match %s", pattern)
	}
	return match[1]
}

// expectEnd waits for the end of the demo, and checks its exit code and that it left nothing behind.
func (d demo) expectEnd(code int) {
	d.Helper()
	timer := time.NewTimer(demoLimit)
	defer timer.Stop()
	select {
	case <-d.Done():
	case <-timer.C:
		d.Fatalf("the demo did not end within %s", demoLimit)
	}
	got := 0
	if err := d.Stop(demoLimit); err != nil { // the demo has ended; Stop returns its exit code
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			d.Fatal(err)
		}
		got = exit.ExitCode()
	}
	if got != code {
		d.Errorf("the demo ended with exit code %d, want %d", got, code)
	}
	for _, left := range leftOf(d.T, d.find(`Logs, keys and data are in (\S+),`)) {
		d.Errorf("the demo left behind: %s", left)
	}
}

// leftOf returns the remains of a cluster: run directory, control groups and processes.
func leftOf(t *testing.T, runDir string) (left []string) {
	t.Helper()
	if _, err := os.Stat(runDir); !errors.Is(err, fs.ErrNotExist) {
		left = append(left, runDir)
	}
	left = append(left, controlGroups(runDir)...)
	name := filepath.Base(runDir)
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range processes {
		command, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		group, _ := os.ReadFile(filepath.Join(dir, "cgroup"))
		if strings.Contains(string(command)+string(group), name) {
			left = append(left, fmt.Sprintf("process %s: %s", filepath.Base(dir), strings.ReplaceAll(string(command), "\x00", " ")))
		}
	}
	return left
}

func TestDemo_Once(t *testing.T) {
	t.Parallel()
	d := startDemo(t, "--once")
	d.expectEnd(0)
	d.find(`(Everything expected is in the control-plane API)`)
}

// TestDemo_Hints runs the commands that the demo proposes. One of them restarts the agent, which must not end the demo.
func TestDemo_Hints(t *testing.T) {
	t.Parallel()
	d := startDemo(t)
	d.waitFor("Ctrl-C stops everything.")
	if len(leftOf(t, d.find(`Logs, keys and data are in (\S+),`))) < 3 {
		t.Error("the test does not find the directory, the control groups and the processes of the running demo")
	}
	_, hints, _ := strings.Cut(d.Output(), "The cluster, in another terminal:")
	hints, _, _ = strings.Cut(hints, "The web UI:")
	script := "set -e\ncurl() { command curl --fail \"$@\"; }\n"
	for line := range strings.Lines(hints) {
		command, ok := strings.CutPrefix(line, "  ")
		switch {
		case !ok || strings.Contains(command, " port-forward "): // that does not end
		case strings.Contains(command, "kubectl-threeport"):
			script += "! " + command // the workload crash is not Healthy
		default:
			script += command
		}
	}
	kubectl := d.find(`\n  (\S+) get pods -A`)
	script += kubectl + " -n " + operator.Namespace + " delete pods --all --grace-period=1\n" +
		kubectl + " -n " + operator.Namespace + " rollout status deployment/" + operator.Name + " --timeout=" + world.Timeout.String() + "\n"
	out, err := exec.CommandContext(t.Context(), "sh", "-c", script).CombinedOutput()
	if err != nil {
		t.Errorf("the proposed commands failed: %v\n%s\n%s", err, script, out)
	}
	for subject, want := range map[string]string{
		"the crash of a container":  "Back-off restarting failed container",
		"the output of a container": "the database is not there",
		"the log of the agent":      `"msg":"Starting workers"`,
		"the API's rows of Events":  `"Type":"WorkloadEvent"`,
		"the plugin's tree":         "ThreeportWorkload crash",
		"pods on the real node":     "node-real",
		"the scaled Deployment":     "deployment.apps/web scaled",
		"the rollout after the end": "successfully rolled out",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the proposed commands do not show %s (%q):\n%s", subject, want, out)
		}
	}
	d.interrupt()
	d.expectEnd(0)
}

func TestDemo_Interrupted(t *testing.T) {
	t.Parallel()
	for _, phase := range []string{
		"Logs, keys and data are in", // and the image of the workloads is being built
		"Building the agent's image", // and installed
		"Deploying the workloads:",   // and reported
	} {
		t.Run(phase, func(t *testing.T) {
			d := startDemo(t)
			d.waitFor(phase)
			d.interrupt()
			d.expectEnd(130)
		})
	}
}
