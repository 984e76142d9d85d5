package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/threeport/threeport-agent/internal/e2e/process"
)

// The tests of the whole demo run its binary with fake nodes; internal/e2e/node has those with a real one. The limits are long
// enough on a slow and busy machine. They cover the demo's own waits, a whole demo with the first build of the control plane,
// and its end.
const (
	demoTimeout = 10 * time.Minute
	startLimit  = 30 * time.Minute
	stopLimit   = 5 * time.Minute
)

var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "threeport-demo-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	root, err := sourceTree()
	if err == nil {
		binary, err = process.Build(context.Background(), filepath.Join(root, "hack"), "./cmd/demo", dir)
	}
	code := 1
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	} else {
		code = m.Run()
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// start runs the demo, and stops it at the end of the test.
func start(t *testing.T, args ...string) *process.Process {
	t.Helper()
	p, err := process.Start(binary, nil, append([]string{"--timeout=" + demoTimeout.String()}, args...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("the demo printed:\n%s", p.Output())
		}
	})
	return p
}

// expectExit waits for the end of the demo, and checks its exit code.
func expectExit(t *testing.T, p *process.Process, limit time.Duration, code int) {
	t.Helper()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-p.Done():
	case <-timer.C:
		t.Fatalf("expected the demo to end within %s", limit)
	}
	err := p.Stop(stopLimit) // Stop returns the exit code of the ended process
	if code == 0 && err != nil {
		t.Errorf("expected exit 0, got %v", err)
	}
	if want := fmt.Sprintf("exit status %d", code); code != 0 && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("expected %q, got %v", want, err)
	}
}

func waitFor(t *testing.T, p *process.Process, text string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startLimit)
	defer cancel()
	line, err := p.WaitFor(ctx, text)
	if err != nil {
		t.Fatal(err)
	}
	return line
}

func TestDemo_Once(t *testing.T) {
	t.Parallel()
	p := start(t, "--once")
	expectExit(t, p, startLimit, 0)
	for _, w := range workloads() {
		resources := `\d+/\d+ .*(ADDED|MODIFIED) \d+`
		typ := "Workload"
		if (deployed{workload: w}).helm() {
			resources, typ = "-", "HelmWorkload"
		}
		cause := ""
		if w.status != "Healthy" {
			cause = `( +|\n  ).+` // beside it, or below
		}
		line := regexp.MustCompile(`(?m)^` + w.name + ` +` + typ + ` +` + w.status + ` +` + resources + ` +\d+/\d+` + cause + `$`)
		if !line.MatchString(p.Output()) {
			t.Errorf("expected the table to have a line for %s like %s", w.name, line)
		}
	}
}

func TestDemo_OnceTimesOut_PrintsLogs(t *testing.T) {
	t.Parallel()
	p := start(t, "--once", "--timeout=1ns")
	expectExit(t, p, startLimit, exitFailed)
	for _, want := range []string{
		"expectations are not met after 1ns",
		"custom: expected the agent to report an Event with the reason Ready",

		"The end of the agent's log:",
		"The end of the control-plane API's log:",
	} {
		if !strings.Contains(p.Output(), want) {
			t.Errorf("expected the output to have %q", want)
		}
	}
}

func TestDemo_InterruptedWhileUp_LeavesNothing(t *testing.T) {
	t.Parallel()
	p := start(t)
	waitFor(t, p, "Ctrl-C stops everything.")
	if !strings.Contains(p.Output(), "Everything expected is in the control-plane API") {
		t.Error("expected the workloads to be reported before the hints")
	}
	pids, addresses, dir := printedResources(t, p.Output())
	for name, pid := range pids {
		if !alive(pid) {
			t.Errorf("expected %s to run as process %d", name, pid)
		}
	}
	for _, address := range addresses {
		if !listening(t, address) {
			t.Errorf("expected something to listen on %s", address)
		}
	}

	send(t, p, syscall.SIGINT)
	expectExit(t, p, stopLimit, 0)
	for name, pid := range pids {
		if alive(pid) {
			t.Errorf("expected %s to end with the demo, process %d still runs", name, pid)
		}
	}
	for _, address := range addresses {
		if listening(t, address) {
			t.Errorf("expected nothing to listen on %s after the demo", address)
		}
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("expected %s to be removed, got %v", dir, err)
	}
}

func TestDemo_InterruptedWhileStarting_Ends(t *testing.T) {
	t.Parallel()
	for _, phase := range []string{"Starting a Kubernetes control plane", "Building ./cmd/agent"} {
		t.Run(phase, func(t *testing.T) {
			t.Parallel()
			p := start(t)
			waitFor(t, p, phase)
			send(t, p, syscall.SIGTERM)
			expectExit(t, p, stopLimit, exitInterrupted)
			if !strings.Contains(p.Output(), errInterrupted.Error()) {
				t.Errorf("expected the demo to say %q", errInterrupted)
			}
		})
	}
}

func TestDemo_APIDies_Ends(t *testing.T) {
	t.Parallel()
	p := start(t)
	waitFor(t, p, "Ctrl-C stops everything.")
	pids, _, _ := printedResources(t, p.Output())
	if err := syscall.Kill(pids["controlplane"], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	expectExit(t, p, stopLimit, exitFailed)
	for _, want := range []string{"the control-plane API ended unexpectedly", "The end of the control-plane API's log:"} {
		if !strings.Contains(p.Output(), want) {
			t.Errorf("expected the output to have %q", want)
		}
	}
	if alive(pids["etcd"]) {
		t.Error("expected the cluster to be stopped with the demo")
	}
}

// The plugin notices the dead agent by its Lease.
func TestDemo_AgentDies_Continues(t *testing.T) {
	t.Parallel()
	p := start(t)
	waitFor(t, p, "Ctrl-C stops everything.")
	plugin := find(t, p.Output(), `(?m)^  (\S+/kubectl-threeport) status$`)
	kubeconfig := find(t, p.Output(), `export KUBECONFIG=(.+)`)
	const (
		codeNotHealthy = 1 // the workload crash is Down
		codeOutdated   = 4
	)
	awaitStatus(t, plugin, kubeconfig, codeNotHealthy, "CrashLoopBackOff")

	pids, _, _ := printedResources(t, p.Output())
	if err := syscall.Kill(pids["agent"], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	waitFor(t, p, "The agent ended. The demo continues without it")
	awaitStatus(t, plugin, kubeconfig, codeOutdated, "kubectl threeport status --fresh")

	waitFor(t, p, "--leader-election-namespace=")
	command := strings.Fields(find(t, p.Output(), `(?m)^  (\S+/agent --.+)$`))
	agent, err := process.Start(command[0], nil, command[1:])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(agent.Kill)
	awaitStatus(t, plugin, kubeconfig, codeNotHealthy, "CrashLoopBackOff")
	if err := agent.Stop(stopLimit); err != nil {
		t.Error(err)
	}
	send(t, p, syscall.SIGINT)
	expectExit(t, p, stopLimit, 0)
}

// awaitStatus runs the plugin until it exits with a code and prints a text.
func awaitStatus(t *testing.T, plugin, kubeconfig string, code int, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), demoTimeout)
	defer cancel()
	err := poll(ctx, func(ctx context.Context) (again bool, err error) {
		cmd := exec.CommandContext(ctx, plugin, "status", "--kubeconfig", kubeconfig)
		out, _ := cmd.CombinedOutput() // the code is in the state
		if got := cmd.ProcessState.ExitCode(); got != code || !strings.Contains(string(out), text) {
			return true, fmt.Errorf("expected %s to exit with %d and to print %q, it exits with %d:\n%s", plugin, code, text, got, out)
		}
		return false, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestDemo_InvalidFlags_ExitsWithUsageError(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--no-such-flag"}, {"--timeout=-1s"}, {"--node=other"}, {"argument"}} {
		expectExit(t, start(t, args...), stopLimit, exitUsage)
	}
}

// printedResources returns the processes, addresses and the folder that the demo has printed.
func printedResources(t *testing.T, output string) (pids map[string]int, addresses []string, dir string) {
	t.Helper()
	pids = map[string]int{}
	for part := range strings.SplitSeq(find(t, output, `(?m)^Processes: (.+)$`), ", ") {
		name, number, _ := strings.Cut(part, " ")
		pid, err := strconv.Atoi(number)
		if err != nil {
			t.Fatalf("expected a process ID, got %q", part)
		}
		pids[name] = pid
	}
	kubeconfig := find(t, output, `export KUBECONFIG=(.+)`)
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{
		config.Host,
		find(t, output, `The control-plane API listens at (\S+)`),
		find(t, output, `curl -s (http://\S+)/metrics`),
		find(t, output, `curl -s (http://\S+)/readyz`),
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		addresses = append(addresses, u.Host)
	}
	return pids, addresses, filepath.Dir(kubeconfig)
}

func find(t *testing.T, text, pattern string) string {
	t.Helper()
	match := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if match == nil {
		t.Fatalf("expected the output to match %s", pattern)
	}
	return match[1]
}

func send(t *testing.T, p *process.Process, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(p.PID(), s); err != nil {
		t.Fatal(err)
	}
}

func alive(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

func listening(t *testing.T, address string) bool {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}
