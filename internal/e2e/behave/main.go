// Command behave is the program of test containers. Its flags define whether and how it fails.
//
//	behave --listen=:8080 --ready-after=5s                    a server that starts slowly
//	behave --listen=:8080 --unhealthy-after=10s               a server that fails its liveness probe
//	behave --exit-after=3s --exit-code=1 --message="no luck"  a program that crashes
//	behave --allocate=64Mi                                    a program that exceeds its memory limit
//	behave --exit-after=5s                                    a Job; a slow preStop hook
//	behave --exit-code=1                                      a probe or a hook that fails
//
// Durations count from the start of the process. Unless a flag changes it, SIGTERM ends the process at once with exit code 0.
// Invalid flags cause exit code 2.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// The exit codes besides 0 and --exit-code.
const (
	exitFailed = 1
	exitUsage  = 2
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run runs the command, and returns its exit code.
func run(args []string, stdout, stderr io.Writer) int {
	start := time.Now()
	// First of all: the kernel ignores signals to PID 1 of a container that the process does not handle.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	defer signal.Stop(signals)
	b, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return exitUsage // parse has said why
	}
	code, err := b.run(start, signals, stdout)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "behave:", err)
		return exitFailed
	}
	return code
}

// run follows the flags until the end of the process, and returns its exit code.
func (b behaviour) run(start time.Time, signals <-chan os.Signal, stdout io.Writer) (int, error) {
	if err := b.leaveMessage(stdout); err != nil {
		return 0, err
	}
	failed := make(chan error, 1)
	if b.listen != "" {
		listener, err := net.Listen("tcp", b.listen) //nolint:noctx // it listens until the process ends
		if err != nil {
			return 0, fmt.Errorf("--listen: %w", err)
		}
		server := &http.Server{Handler: b.handler(start), ReadHeaderTimeout: 10 * time.Second}
		defer server.Close() //nolint:errcheck // the process ends
		go func() { failed <- server.Serve(listener) }()
		_, _ = fmt.Fprintln(stdout, "listening on", listener.Addr())
	}
	var ending, growing <-chan time.Time
	code := b.exitCode
	if b.exits {
		ending = time.After(time.Until(start.Add(b.exitAfter)))
	}
	if b.allocate > 0 {
		growing = time.After(time.Until(start.Add(b.allocateAfter)))
	}
	var memory ballast
	for {
		select {
		case err := <-failed:
			return 0, fmt.Errorf("serve: %w", err)
		case <-growing:
			growing = nil
			if memory.grow(b.allocate) {
				growing = time.After(stepPause)
				continue
			}
			_, _ = fmt.Fprintln(stdout, "allocated", b.allocate)
		case <-signals:
			if b.ignoreSIGTERM {
				_, _ = fmt.Fprintln(stdout, "SIGTERM is ignored")
				continue
			}
			_, _ = fmt.Fprintln(stdout, "SIGTERM: ending in", b.sleepOnSIGTERM)
			ending, code, signals = time.After(b.sleepOnSIGTERM), 0, nil
		case <-ending:
			return code, nil
		}
	}
}

// leaveMessage writes --message to the termination log. It does so at the start, because a process that exceeds its memory
// limit is killed without notice.
func (b behaviour) leaveMessage(stdout io.Writer) error {
	if b.message == "" {
		return nil
	}
	_, _ = fmt.Fprintln(stdout, b.message)
	file, err := os.OpenFile(b.terminationLog, os.O_WRONLY|os.O_TRUNC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("--message: %w", err)
	}
	_, err = io.WriteString(file, b.message)
	return errors.Join(err, file.Close())
}

// handler serves the endpoints of probes.
func (b behaviour) handler(start time.Time) http.Handler {
	mux := http.NewServeMux()
	for path, well := range map[string]func() bool{
		"/healthz":  func() bool { return !b.unhealthy && (b.unhealthyAfter == 0 || time.Since(start) < b.unhealthyAfter) },
		"/readyz":   func() bool { return !b.unready && time.Since(start) >= b.readyAfter },
		"/startupz": func() bool { return !b.unstarted },
	} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			if !well() {
				http.Error(w, strings.TrimPrefix(path, "/")+": no", http.StatusInternalServerError)
				return
			}
			_, _ = fmt.Fprintln(w, "ok")
		})
	}
	return mux
}
