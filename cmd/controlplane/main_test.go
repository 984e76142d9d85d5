package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRunRefuses(t *testing.T) {
	for _, tc := range []struct {
		reason string
		args   []string
		code   int
		out    string // a part of what it prints
	}{
		{"version", []string{"--version"}, 0, "controlplane "},
		{"help", []string{"--help"}, 0, "-bind-address"},
		{"unknown flag", []string{"--port=1"}, 2, "-bind-address"},
		{"stray argument", []string{"serve"}, 2, `unexpected argument "serve"`},
		{"bad address", []string{"--bind-address=1323"}, 2, "accepted is HOST:PORT"},
		{"bad database", []string{"--database=postgres://user:hunter2@host/db"}, 2, "accepted are sqlite:FILE and sqlite::memory:"},
		{"no certificate", []string{"--cert-file=/nowhere/tls.crt", "--database=sqlite::memory:"}, 1, "--auth-enabled=false"},
		{"no directory", []string{"--auth-enabled=false", "--database=sqlite:/nowhere/rows.db"}, 1, "/nowhere/rows.db"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			var out bytes.Buffer
			if code := run(t.Context(), tc.args, &out, &out); code != tc.code {
				t.Errorf("exit code %d, want %d", code, tc.code)
			}
			if !strings.Contains(out.String(), tc.out) || strings.Contains(out.String(), "hunter2") {
				t.Errorf("printed %s, want %q", out.String(), tc.out)
			}
		})
	}
}

func TestRunServes(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	read, write := io.Pipe()
	exit := make(chan int, 1)
	go func() {
		code := run(ctx, []string{
			"--auth-enabled=false", "--bind-address=127.0.0.1:0", "--database=sqlite:" + filepath.Join(t.TempDir(), "rows.db"),
		}, io.Discard, write)
		_ = write.Close()
		exit <- code
	}()
	var line struct{ URL string }
	if err := json.NewDecoder(read).Decode(&line); err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, line.URL+"/healthz", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("health: %d", resp.StatusCode)
	}
	cancel()
	if rest, err := io.ReadAll(read); err != nil || len(rest) > 1 {
		t.Errorf("printed more than the line that says where it listens: %s, %v", rest, err)
	}
	if code := <-exit; code != 0 {
		t.Errorf("exit code %d", code)
	}
}
