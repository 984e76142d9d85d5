package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/threeport/threeport-agent/internal/e2e/process"
)

// behaveEnv makes the test binary run the command, so that tests observe it as a process.
const behaveEnv = "THREEPORT_BEHAVE_TEST"

// waitLimit is longer than any wait.
const waitLimit = 5 * time.Minute

func TestMain(m *testing.M) {
	if os.Getenv(behaveEnv) != "" {
		main()
	}
	os.Exit(m.Run())
}

// start runs the command as a process, and stops it at the end of the test.
func start(t *testing.T, args ...string) *process.Process {
	t.Helper()
	p, err := process.Start(os.Args[0], []string{behaveEnv + "=1"}, args)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

// await waits for a line of output with a text.
func await(t *testing.T, p *process.Process, text string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	line, err := p.WaitFor(ctx, text)
	if err != nil {
		t.Fatal(err)
	}
	return line
}

// url returns the URL of a process with --listen=127.0.0.1:0.
func url(t *testing.T, p *process.Process) string {
	t.Helper()
	return "http://" + strings.TrimPrefix(await(t, p, "listening on "), "listening on ")
}

// get returns the status code of an answer.
func get(t *testing.T, url string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}

// exitCode waits for the end of a process, and returns its exit code.
func exitCode(t *testing.T, p *process.Process) int {
	t.Helper()
	select {
	case <-p.Done():
	case <-time.After(waitLimit):
		t.Fatalf("the program did not end within %s; it printed %s", waitLimit, p.Output())
	}
	err := p.Stop(waitLimit) // it has ended: Stop returns its exit error
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	if err != nil {
		t.Fatal(err)
	}
	return 0
}

func TestEndpoints(t *testing.T) {
	for _, tc := range []struct {
		args                   []string
		health, ready, startup int
	}{
		{health: 200, ready: 200, startup: 200},
		{args: []string{"--unhealthy"}, health: 500, ready: 200, startup: 200},
		{args: []string{"--unready"}, health: 200, ready: 500, startup: 200},
		{args: []string{"--unstarted"}, health: 200, ready: 200, startup: 500},
		{args: []string{"--unhealthy-after=1ns", "--ready-after=1h"}, health: 500, ready: 500, startup: 200},
		{args: []string{"--unhealthy-after=1h", "--ready-after=1ns"}, health: 200, ready: 200, startup: 200},
	} {
		t.Run(fmt.Sprint(tc.args), func(t *testing.T) {
			base := url(t, start(t, append(tc.args, "--listen=127.0.0.1:0")...))
			for path, want := range map[string]int{"/healthz": tc.health, "/readyz": tc.ready, "/startupz": tc.startup, "/other": 404} {
				if got := get(t, base+path); got != want {
					t.Errorf("%s answers %d, want %d", path, got, want)
				}
			}
		})
	}
}

func TestEndpoints_ChangeWithTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler := behaviour{readyAfter: 5 * time.Second, unhealthyAfter: 10 * time.Second}.handler(time.Now())
		for _, want := range []struct{ health, ready int }{{health: 200, ready: 500}, {health: 200, ready: 200}, {health: 500, ready: 200}} {
			for path, code := range map[string]int{"/healthz": want.health, "/readyz": want.ready} {
				answer := httptest.NewRecorder()
				handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
				if answer.Code != code {
					t.Errorf("%s answers %d at %s, want %d", path, answer.Code, time.Now(), code)
				}
			}
			time.Sleep(5 * time.Second)
		}
	})
}

func TestExit_CodeAndOutput(t *testing.T) {
	for _, tc := range []struct {
		reason string
		args   []string
		code   int
		out    string // a part of its output
	}{
		{reason: "a Job", args: []string{"--exit-after=10ms"}},
		{reason: "at once", args: []string{"--exit-after=0s"}},
		{
			reason: "a crash",
			args:   []string{"--exit-after=10ms", "--exit-code=3", "--listen=127.0.0.1:0"},
			code:   3,
			out:    "listening on",
		},
		{reason: "a probe that fails", args: []string{"--exit-code=1"}, code: 1},
		{reason: "the same in more words", args: []string{"--exit-code=1", "--exit-after=0s"}, code: 1},
		{reason: "with its memory", args: []string{"--allocate=1", "--allocate-after=1h", "--exit-after=0s"}},
		{reason: "help", args: []string{"--help"}, out: "-sleep-on-sigterm"},
		{reason: "unknown flag", args: []string{"--run"}, code: 2, out: "-exit-after"},
		{reason: "stray argument", args: []string{"run"}, code: 2, out: `unexpected argument "run"`},
		{reason: "no exit code", args: []string{"--exit-code=256"}, code: 2, out: "--exit-code is 256: give 0 to 255"},
		{
			reason: "negative duration",
			args:   []string{"--ready-after=-1s"},
			code:   2,
			out:    "--ready-after is -1s: give a duration of 0s or more",
		},
		{reason: "no size", args: []string{"--allocate=64M"}, code: 2, out: "want a number of bytes, or of Ki, Mi or Gi"},
		{reason: "contradiction", args: []string{"--ignore-sigterm", "--sleep-on-sigterm=1s"}, code: 2, out: "give one"},
		{reason: "no address", args: []string{"--listen=127.0.0.1"}, code: 1, out: "behave: --listen: "},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			p := start(t, tc.args...)
			if code := exitCode(t, p); code != tc.code {
				t.Errorf("exit code %d, want %d", code, tc.code)
			}
			if !strings.Contains(p.Output(), tc.out) {
				t.Errorf("printed %s, want %q", p.Output(), tc.out)
			}
		})
	}
}

func TestSIGTERM(t *testing.T) {
	term := func(p *process.Process) {
		if err := syscall.Kill(p.PID(), syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("ends it with 0", func(t *testing.T) {
		p := start(t, "--listen=127.0.0.1:0", "--exit-after=1h", "--exit-code=5")
		url(t, p)
		term(p)
		if code := exitCode(t, p); code != 0 {
			t.Errorf("exit code %d, want 0", code)
		}
	})
	t.Run("is ignored", func(t *testing.T) {
		p := start(t, "--listen=127.0.0.1:0", "--ignore-sigterm")
		base := url(t, p)
		for range 2 {
			term(p)
		}
		await(t, p, "SIGTERM is ignored")
		if got := get(t, base+"/healthz"); got != 200 {
			t.Errorf("the server answers with %d after SIGTERM", got)
		}
	})
	t.Run("is slept on", func(t *testing.T) {
		p := start(t, "--listen=127.0.0.1:0", "--sleep-on-sigterm=1h")
		base := url(t, p)
		term(p)
		await(t, p, "SIGTERM: ending in 1h0m0s")
		if got := get(t, base+"/healthz"); got != 200 {
			t.Errorf("the server answers with %d after SIGTERM", got)
		}
	})
}

func TestExit_Time(t *testing.T) {
	for _, tc := range []struct {
		reason string
		args   []string
		term   time.Duration // when SIGTERM comes
		end    time.Duration
		code   int
		out    string
	}{
		{
			reason: "by itself",
			args:   []string{"--exit-after=10s", "--exit-code=3"},
			term:   time.Hour,
			end:    10 * time.Second,
			code:   3,
		},
		{
			reason: "SIGTERM before that",
			args:   []string{"--exit-after=10s", "--exit-code=3"},
			term:   4 * time.Second,
			end:    4 * time.Second,
			out:    "SIGTERM",
		},
		{
			reason: "a sleep counts from SIGTERM",
			args:   []string{"--sleep-on-sigterm=7s"},
			term:   4 * time.Second,
			end:    11 * time.Second,
			out:    "SIGTERM",
		},
		{
			reason: "a sleep takes the place of the end",
			args:   []string{"--sleep-on-sigterm=7s", "--exit-after=5s", "--exit-code=3"},
			term:   4 * time.Second,
			end:    11 * time.Second,
			out:    "SIGTERM",
		},
		{
			reason: "ignored",
			args:   []string{"--ignore-sigterm", "--exit-after=10s", "--exit-code=3"},
			term:   4 * time.Second,
			end:    10 * time.Second,
			code:   3,
			out:    "SIGTERM",
		},
		{
			reason: "memory in time",
			args:   []string{"--allocate=9Mi", "--allocate-after=9s", "--exit-after=10s"},
			term:   time.Hour,
			end:    10 * time.Second,
			out:    "allocated 9Mi",
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, err := parse(tc.args, io.Discard)
				if err != nil {
					t.Fatal(err)
				}
				begin := time.Now()
				signals := make(chan os.Signal, 1)
				time.AfterFunc(tc.term, func() { signals <- syscall.SIGTERM })
				var out bytes.Buffer
				code, err := b.run(begin, signals, &out)
				if err != nil || code != tc.code || time.Since(begin) != tc.end {
					t.Errorf("ended after %s with %d, %v, want %s with %d", time.Since(begin), code, err, tc.end, tc.code)
				}
				if !strings.Contains(out.String(), tc.out) {
					t.Errorf("printed %s, want %q", out.String(), tc.out)
				}
			})
		})
	}
}

func TestMemory_IsOccupied(t *testing.T) {
	p := start(t, "--allocate=70Mi")
	await(t, p, "allocated 70Mi")
	got, err := process.ResidentBytes(p.PID())
	if err != nil || got < 70<<20 { // with the race detector it is twice that
		t.Errorf("the program occupies %d MiB (%v), want at least 70", got>>20, err)
	}
}

func TestTerminationLog_HasMessage(t *testing.T) {
	dir := t.TempDir()
	there, missing := filepath.Join(dir, "there"), filepath.Join(dir, "missing")
	if err := os.WriteFile(there, []byte("a longer text of an earlier run"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, log := range []string{there, missing} {
		p := start(t, "--message=no luck", "--termination-log="+log, "--exit-code=1")
		if code := exitCode(t, p); code != 1 || !strings.Contains(p.Output(), "no luck\n") {
			t.Errorf("the program ended with code %d and printed %s", code, p.Output())
		}
	}
	if text, err := os.ReadFile(there); err != nil || string(text) != "no luck" {
		t.Errorf("the file has %q, %v", text, err)
	}
	if _, err := os.Stat(missing); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that was not there is: %v", err)
	}
	if p := start(t, "--message=x", "--termination-log="+dir, "--exit-after=0s"); exitCode(t, p) != 1 || !strings.Contains(p.Output(), "--message: ") {
		t.Errorf("with a folder as the file, the program printed %s", p.Output())
	}
}

func TestSize_ParseAndString(t *testing.T) {
	for _, tc := range []struct {
		text  string
		want  size
		shown string // empty: it is refused
	}{
		{text: "0", shown: "0"},
		{text: "1000", want: 1000, shown: "1000"},
		{text: "64Mi", want: 64 << 20, shown: "64Mi"},
		{text: "1024Mi", want: 1 << 30, shown: "1Gi"},
		{text: "1536Ki", want: 1536 << 10, shown: "1536Ki"},
		{text: "9007199254740991Ki", want: math.MaxInt64 - 1023, shown: "9007199254740991Ki"},
		{text: "9007199254740992Ki"},
		{text: "-1"},
		{},
		{text: "Mi"},
		{text: "64M"},
		{text: "64MiB"},
		{text: "6 4"},
	} {
		var got size
		err := got.UnmarshalText([]byte(tc.text))
		if (err == nil) != (tc.shown != "") || got != tc.want || (err == nil && got.String() != tc.shown) {
			t.Errorf("%q is %d (%s), %v, want %d (%s)", tc.text, got, got, err, tc.want, tc.shown)
		}
	}
}
