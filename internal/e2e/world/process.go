package world

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/threeport/threeport-agent/internal/e2e/process"
)

// Command is a program with its additional environment and the first of its arguments.
type Command struct {
	Path string
	Env  []string
	Args []string
}

// Agent is an agent as a process.
type Agent struct {
	*process.Process
	MetricsURL string
	ProbesURL  string
	MayFail    bool // the end of the process with an error is no failure of the test
}

// shownOutput is the length of the shown end of an agent's log, in bytes.
const shownOutput = 16 << 10

// StartAgent starts an agent, and waits until its workers have started. Flags that are repeated have their last value.
func (w *World) StartAgent(command Command, flags ...string) *Agent {
	w.Helper()
	agent := w.LaunchAgent(command, flags...)
	w.AwaitAgent(w.Ctx, agent)
	return agent
}

// LaunchAgent is StartAgent without the wait. At the end of the test the agent is stopped. It fails the test if it ended with
// an error, except by Kill, or if the race detector found a race.
func (w *World) LaunchAgent(command Command, flags ...string) *Agent {
	w.Helper()
	metrics, probes := w.FreeAddress(), w.FreeAddress()
	args := append([]string{}, command.Args...)
	args = append(args, "--auth-enabled=false", "--metrics-bind-address="+metrics, "--health-probe-bind-address="+probes)
	p, err := process.Start(command.Path, command.Env, append(args, flags...))
	w.Must(err)
	agent := &Agent{Process: p, MetricsURL: "http://" + metrics + "/metrics", ProbesURL: "http://" + probes}
	w.Cleanup(func() {
		if err := agent.Stop(Timeout); err != nil && !agent.MayFail {
			w.Errorf("stop the agent: %v", err)
		}
		if err := raceIn(agent.Process); err != nil {
			w.Error(err)
		}
		if w.Failed() && !agent.Killed() {
			w.Logf("the end of the log of the agent with PID %d:\n%s", agent.PID(), End(agent.Output(), shownOutput))
		}
	})
	return agent
}

// AwaitAgent waits until the workers of an agent have started.
func (w *World) AwaitAgent(ctx context.Context, agent *Agent) {
	w.Helper()
	_, err := agent.WaitFor(ctx, "Starting workers")
	w.Must(err)
}

// KillAgent kills an agent, which must still run.
func (w *World) KillAgent(agent *Agent) {
	w.Helper()
	select {
	case <-agent.Done():
		w.Fatalf("the agent ended before the test killed it:\n%s", End(agent.Output(), shownOutput))
	default:
		agent.Kill()
	}
}

// StartControlPlane starts the control-plane API. At the end of the test, KillControlPlane kills it and checks it. Its URL method waits
// until it listens.
func (w *World) StartControlPlane(binary string, flags ...string) *process.Process {
	w.Helper()
	p, err := process.Start(binary, nil, flags)
	w.Must(err)
	w.Cleanup(func() {
		if err := KillControlPlane(p); err != nil {
			w.Error(err)
		}
	})
	return p
}

// KillControlPlane kills a control-plane API. It returns an error if the API ended with an error while it listened, or if the race detector
// found a race. URL returns the error of an API that ends earlier.
func KillControlPlane(p *process.Process) error {
	p.Kill()
	err := raceIn(p)
	if strings.Contains(p.Output(), `"url":`) {
		err = errors.Join(err, p.Err())
	}
	return err
}

// raceIn returns an error if the race detector found a race in a process.
func raceIn(p *process.Process) error {
	if strings.Contains(p.Output(), "DATA RACE") {
		return fmt.Errorf("the race detector found a race in process %d:\n%s", p.PID(), p.Output())
	}
	return nil
}

// FreeAddress returns a loopback address without a listener, as host:port.
func (w *World) FreeAddress() string {
	w.Helper()
	address, err := process.FreeAddress()
	w.Must(err)
	return address
}

// End returns the last n bytes of a text.
func End(text string, n int) string { return text[max(0, len(text)-n):] }

// Metrics returns the agent's metrics in the text format.
func (a *Agent) Metrics(ctx context.Context) (string, error) {
	page, status, err := Fetch(ctx, a.MetricsURL)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("GET %s: HTTP %d: %s", a.MetricsURL, status, page)
	}
	return page, err
}

// Metric returns the sum of the series of a metric. The name may have some of the labels: `reports_total{kind="event"`.
func (a *Agent) Metric(ctx context.Context, name string) (float64, error) {
	page, err := a.Metrics(ctx)
	if err != nil {
		return 0, err
	}
	return sumOf(page, name)
}

// ErrNoSeries means that the metrics do not have a name.
var ErrNoSeries = errors.New("the metrics have no such series")

func sumOf(page, name string) (sum float64, err error) {
	found := false
	for line := range strings.Lines(page) {
		rest, ok := strings.CutPrefix(line, name)
		if !ok || !strings.ContainsAny(rest[:1], " {},") {
			continue
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(rest[strings.LastIndex(rest, " ")+1:]), 64)
		if err != nil {
			return 0, fmt.Errorf("metric %s: %w", name, err)
		}
		sum, found = sum+value, true
	}
	if !found {
		return 0, fmt.Errorf("%s: %w", name, ErrNoSeries)
	}
	return sum, nil
}

// ErrNotReady means that the agent answered that it is not ready.
var ErrNotReady = errors.New("the agent is not ready")

// Ready returns nil if the agent's readiness probe succeeds, and ErrNotReady if the agent is not ready.
func (a *Agent) Ready(ctx context.Context) error {
	page, status, err := Fetch(ctx, a.ProbesURL+"/readyz")
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("%w: HTTP %d: %s", ErrNotReady, status, page)
	}
	return err
}

// Fetch returns a page and its HTTP status.
func Fetch(ctx context.Context, url string) (page string, status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", 0, err
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", 0, err
	}
	defer answer.Body.Close() //nolint:errcheck // only read
	body, err := io.ReadAll(answer.Body)
	return string(body), answer.StatusCode, err
}
