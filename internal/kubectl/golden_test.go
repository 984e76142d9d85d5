package kubectl

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

var update = flag.Bool("update", false, "write testdata/golden")

// goldenTime is the current time in golden files.
var goldenTime = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

// golden compares a text with that of a file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
}

// result is the result of a command.
type result struct {
	code     int
	out, err string
}

// invoke runs the plugin at goldenTime.
func invoke(t *testing.T, in string, args ...string) result {
	t.Helper()
	return invokeAt(t.Context(), func() time.Time { return goldenTime }, in, args...)
}

func invokeAt(ctx context.Context, now func() time.Time, in string, args ...string) result {
	var out, errOut bytes.Buffer
	p := &plugin{
		IOStreams: genericiooptions.IOStreams{In: strings.NewReader(in), Out: &out, ErrOut: &errOut},
		version:   "v1.2.3", now: now,
	}
	code := p.run(ctx, args)
	return result{code, out.String(), errOut.String()}
}

// want fails the test unless a command ended with a code, and printed some texts, on stdout or stderr.
func (r result) want(t *testing.T, code int, texts ...string) {
	t.Helper()
	if r.code != code {
		t.Errorf("exit code %d, want %d", r.code, code)
	}
	for _, text := range texts {
		if !strings.Contains(r.out+r.err, text) {
			t.Errorf("printed\n%s%s\nwithout %q", r.out, r.err, text)
		}
	}
	if t.Failed() {
		t.Logf("stdout:\n%s\nstderr:\n%s", r.out, r.err)
	}
}
